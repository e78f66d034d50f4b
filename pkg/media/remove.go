package media

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Live gives the files that a record names, by Key: an empty map when there is no such record, nil when it can't say, as
// for a folder of no collection that it knows. What it can't say is never removed.
type Live func(ctx context.Context, dir, record string) (map[string]bool, error)

// Key is the name of a file within its record.
func Key(field, name string) string { return field + "/" + name }

// Remove removes files of a record, by Key, that it named before and that live no more gives: it is asked anew, as
// another write may name one again. Nothing is wrong with a file that is not there. The message of an error has the cause.
func (s *Store) Remove(ctx context.Context, dir, record string, keys []string, live Live) error {
	folder, err := recordFolder(dir, record)
	if err != nil {
		return err
	}
	defer s.lock(folder)()
	var targets []string
	for _, key := range keys {
		if target, ok := fileOf(folder, key); ok {
			targets = append(targets, target)
		}
	}
	err = s.removeUnnamed(ctx, dir, record, targets, live)
	s.removeEmpty(folder)
	return err
}

// RemoveRecord removes the files of a record that was deleted, and those that live does not give. Those of an upload that
// goes on stay until it ends.
func (s *Store) RemoveRecord(ctx context.Context, dir, record string, live Live) error {
	folder, err := recordFolder(dir, record)
	if err != nil {
		return err
	}
	defer s.lock(folder)()
	var targets, fields []string
	err = s.entries(folder, func(field fs.DirEntry) error {
		sub := path.Join(folder, field.Name())
		if !field.IsDir() {
			targets = append(targets, sub)
			return nil
		}
		fields = append(fields, sub)
		return s.entries(sub, func(e fs.DirEntry) error {
			targets = append(targets, path.Join(sub, e.Name()))
			return nil
		})
	})
	if err != nil {
		err = uncleaned(folder, err)
	}
	if failed := s.removeUnnamed(ctx, dir, record, targets, live); err == nil {
		err = failed
	}
	s.removeEmpty(fields...)
	s.removeEmpty(folder)
	return err
}

// removeUnnamed removes those of the files that neither the record names nor an upload holds. Whoever has the lock of the
// record calls it: an upload whose file is not held now has its record, which live then sees, or takes the lock behind us.
// Where an upload of another process is at the record, all stay until they are swept.
func (s *Store) removeUnnamed(ctx context.Context, dir, record string, targets []string, live Live) error {
	targets = slices.DeleteFunc(targets, s.isHeld)
	if len(targets) == 0 {
		return nil
	}
	end, ok, err := s.exclude(path.Join(dir, record))
	if !ok {
		s.later(dir, record, live)
		return err
	}
	defer end()
	named, err := live(ctx, dir, record)
	if err != nil || named == nil {
		return err
	}
	keep := namedFiles(path.Join(dir, record), named)
	var failed error
	for _, target := range targets {
		if keep[target] {
			continue
		}
		if err := s.removeFile(target); err != nil {
			s.opts.Logger.WarnContext(ctx, "a file that no record names can't be removed; that is tried again later", "file", target, "error", err)
			if failed == nil {
				failed = err
			}
		}
		s.removeEmpty(path.Dir(target))
	}
	return failed
}

// exclude keeps uploads of other processes away from a record, if none of them is at it, and no Hold keeps files where they are.
func (s *Store) exclude(folder string) (end func(), ok bool, err error) {
	leave, ok, err := s.removals.pass()
	if !ok {
		return nil, false, unexcluded(folder, err)
	}
	let, ok, err := s.claims.exclude(folder)
	if !ok {
		leave()
		return nil, false, unexcluded(folder, err)
	}
	return func() {
		let()
		leave()
	}, true, nil
}

func unexcluded(folder string, err error) error {
	if err == nil {
		return nil
	}
	return uncleaned(folder, err)
}

// namedFiles are the paths of what a record names.
func namedFiles(folder string, named map[string]bool) map[string]bool {
	out := make(map[string]bool, len(named))
	for key := range named {
		if target, ok := fileOf(folder, key); ok {
			out[target] = true
		}
	}
	return out
}

// CheckRemove says with the error of Remove what would keep it from removing files of a record, so that the record need not
// be changed. It removes nothing.
func (s *Store) CheckRemove(dir, record string, keys []string) error {
	folder, err := recordFolder(dir, record)
	if err != nil {
		return err
	}
	defer s.lock(folder)()
	for _, key := range keys {
		target, ok := fileOf(folder, key)
		if !ok {
			continue
		}
		if err := s.tryRemove(target); err != nil {
			return uncleaned(target, err)
		}
	}
	return nil
}

// tryRemove finds out whether a file could be removed by removing another name of it: that needs the same rights.
func (s *Store) tryRemove(target string) error {
	info, err := s.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.IsDir():
		return syscall.EISDIR
	case err != nil:
		return err
	}
	probe := path.Join(path.Dir(target), "."+rand.Text())
	if err := s.root.Link(target, probe); err != nil {
		return err
	}
	return s.root.Remove(probe)
}

func (s *Store) removeFile(target string) error {
	err := s.root.Remove(target)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return uncleaned(target, err)
}

func uncleaned(target string, err error) error {
	return errs.New(errs.Invalid, "file_cleanup_failed", "%s can't be removed: %s", path.Base(target), cause(err)).With(err)
}

// fileOf gives the path of a file by its Key.
func fileOf(folder, key string) (string, bool) {
	i := strings.LastIndexByte(key, '/')
	if i < 1 || !plainName(key[i+1:]) {
		return "", false
	}
	return path.Join(folder, fieldFolder(key[:i]), key[i+1:]), true
}

// entries calls f for what is in a folder, which can be very much. Nothing is in a folder that is not there, or goes
// meanwhile: others remove the empty folders of records, too.
func (s *Store) entries(folder string, f func(fs.DirEntry) error) error {
	info, err := s.root.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := s.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only read
	const batch = 256
	for {
		list, err := dir.ReadDir(batch)
		for _, e := range list {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Sweep removes what crashes left: files put in place before that time which no record names, temporary files as old,
// and empty folders of records. Let the time be longer ago than a write can take, such as an hour: another process may be at one. It stops
// at the first error of live, and passes over what can't be removed, of which it gives the first error.
func (s *Store) Sweep(ctx context.Context, before time.Time, live Live) (removed int, err error) {
	w := &sweep{s: s, before: before, live: live}
	err = w.temporary(ctx)
	if err == nil {
		err = w.folder(ctx, ".")
	}
	if err == nil {
		err = w.failed
	}
	return w.removed, err
}

// Orphans calls found for each file that Sweep would remove as no record names it, until that fails, with the folder of its
// collection and its record. Its name may be what a record keeps from the caller, so it is not told. Nothing is written, and
// no other process is kept from its uploads: what one is about to name may be among them.
func (s *Store) Orphans(ctx context.Context, before time.Time, live Live, found func(dir, record string, bytes int64) error) error {
	w := &sweep{s: s, before: before, live: live, found: found}
	if err := w.folder(ctx, "."); err != nil {
		return err
	}
	return w.failed
}

type sweep struct {
	s       *Store
	before  time.Time
	live    Live
	found   func(dir, record string, bytes int64) error // is told of the orphans, which are not removed; nil: they are
	removed int
	failed  error // the first
}

func (w *sweep) temporary(ctx context.Context) error {
	return w.s.entries(tmpDir, func(e fs.DirEntry) error {
		w.s.mu.Lock()
		ours := w.s.temps[e.Name()]
		w.s.mu.Unlock()
		if info, err := e.Info(); err == nil && !ours && older(info, w.before) {
			w.remove(path.Join(tmpDir, e.Name()))
		}
		return ctx.Err()
	})
}

// folder looks for the folders of records.
func (w *sweep) folder(ctx context.Context, name string) error {
	return w.s.entries(name, func(e fs.DirEntry) error {
		switch sub := path.Join(name, e.Name()); {
		case ctx.Err() != nil:
			return ctx.Err()
		case !e.IsDir() || name == "." && !plainName(e.Name()): // such as tmpDir
			return nil
		case recordID.MatchString(e.Name()):
			if name == "." { // no Place is there
				return nil
			}
			return w.record(ctx, name, e.Name())
		default:
			return w.folder(ctx, sub)
		}
	})
}

// record removes the orphans of one record. The record is asked for only where there is something old.
func (w *sweep) record(ctx context.Context, dir, id string) error {
	s, folder := w.s, path.Join(dir, id)
	var old, fields []string
	err := s.entries(folder, func(field fs.DirEntry) error {
		if field.IsDir() {
			fields = append(fields, path.Join(folder, field.Name()))
		}
		return s.entries(path.Join(folder, field.Name()), func(e fs.DirEntry) error {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && older(info, w.before) {
				old = append(old, path.Join(folder, field.Name(), e.Name()))
			}
			return nil
		})
	})
	if err != nil {
		w.fail(uncleaned(folder, err))
		return nil
	}
	defer s.lock(folder)()
	if len(old) > 0 {
		if err := w.orphans(ctx, dir, id, old); err != nil {
			return err
		}
	}
	if w.found == nil {
		s.removeEmpty(fields...)
		s.removeEmpty(folder)
	}
	return nil
}

// orphans removes those of the files that the record does not name, and that nobody has put there again meanwhile.
func (w *sweep) orphans(ctx context.Context, dir, id string, files []string) error {
	s := w.s
	files = slices.DeleteFunc(files, s.isHeld) // before the record is read: see removeUnnamed
	if w.found == nil {
		end, ok, err := s.exclude(path.Join(dir, id))
		if !ok {
			return err
		}
		defer end()
	}
	named, err := w.live(ctx, dir, id)
	if err != nil || named == nil {
		return err
	}
	keep := namedFiles(path.Join(dir, id), named)
	for _, target := range files {
		info, err := s.root.Lstat(target)
		switch {
		case err != nil || !older(info, w.before) || keep[target]:
		case w.found == nil:
			w.remove(target)
		default:
			if err := w.found(dir, id, info.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *sweep) remove(target string) {
	if err := w.s.root.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.fail(uncleaned(target, err))
		return
	}
	w.removed++
}

func (w *sweep) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
}
