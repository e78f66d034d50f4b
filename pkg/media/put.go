package media

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// hold keeps a file in place while a record that will name it is being written. There is one for a path, whoever put the
// file there.
type hold struct {
	uploads int
	made    bool      // by one of them; else it was there before
	kept    bool      // one of them has its record
	touched time.Time // of the file, by the last of them: another process that takes it gives it another
}

// maxTries is how often Put tries a name that others are at, too.
const maxTries = 20

// Put puts the file in place, durably: under its name, or under one with digits of its hash when other content has that.
// Where the same content has the name already, that file stays. Until Keep or Discard, nothing removes it.
func (st *Staged) Put(ctx context.Context, p Place) (Info, error) {
	folder, err := p.folder()
	if err != nil {
		return Info{}, err
	}
	if st.temp == "" {
		return Info{}, errs.Wrap(errors.New("the upload has been put in place or discarded"), "put a file in place")
	}
	st.folder = path.Dir(folder)
	const short, long = 8, 16
	for _, suffix := range []string{"", "-" + st.info.Hash[:short], "-" + st.info.Hash[:long], "-" + st.info.Hash} {
		name := suffixed(st.info.Name, suffix)
		done, err := st.putAs(ctx, folder, name)
		if err != nil {
			if _, ours := errors.AsType[*errs.Error](err); ours || ctx.Err() != nil {
				return Info{}, err
			}
			return Info{}, unwritten(err, "put a file in place")
		}
		if done {
			st.info.Name = name
			st.dropTemp()
			return st.info, nil
		}
	}
	return Info{}, errs.New(errs.Conflict, "file_name_taken", "other files have the name %s: send it under another", st.info.Name)
}

// putAs says whether it could put the file under that name, which other content can have.
func (st *Staged) putAs(ctx context.Context, folder, name string) (done bool, err error) {
	target := path.Join(folder, name)
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		there, err := st.store.root.Lstat(target)
		if err == nil {
			same, err := st.sameAs(ctx, target, there)
			if err == nil && !same {
				return false, nil
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		done, err := st.take(ctx, folder, target, there)
		if done || err != nil {
			return done, err
		}
	}
	return false, errs.NewBusy("file_name_busy", "others are uploading the same file: try again")
}

// take links the file to target, or holds what is there. It gives false when that is no more as it was seen.
func (st *Staged) take(ctx context.Context, folder, target string, there os.FileInfo) (done bool, err error) {
	s, now := st.store, st.store.opts.Now()
	defer s.lock(st.folder)()
	if err := s.claims.share(ctx, st.folder); err != nil {
		return false, err
	}
	leave, ok, err := s.uploads.pass()
	defer func() {
		if !done {
			s.claims.release(st.folder)
			if ok {
				leave()
			}
		}
	}()
	if !ok {
		return false, cmp.Or(err, error(errReplaced))
	}
	st.leave = leave
	if there != nil {
		is, err := s.root.Lstat(target)
		if err != nil || !os.SameFile(there, is) {
			return false, nil // it is gone: the caller looks again
		}
		if err := s.root.Chtimes(target, now, now); err != nil { // a sweep elsewhere sees that it is wanted
			return false, err
		}
		st.hold(target, false, now)
		return true, nil
	}
	if err := s.makeFolder(folder); err != nil {
		return false, retry(err)
	}
	if err := s.root.Chtimes(st.temp, now, now); err != nil {
		return false, err
	}
	if err := s.root.Link(st.temp, target); err != nil {
		return false, retry(err)
	}
	if err := s.sync(folder); err != nil {
		return false, errors.Join(err, s.root.Remove(target))
	}
	st.info.ModTime = now
	st.hold(target, true, now)
	return true, nil
}

// retry passes no error on that comes of others who work in the same folder: one has taken the name, or has removed the
// folder because it was empty.
func retry(err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sameAs says that a file in place has the content of the upload.
func (st *Staged) sameAs(ctx context.Context, target string, there os.FileInfo) (bool, error) {
	if !there.Mode().IsRegular() || there.Size() != st.info.Size {
		return false, nil
	}
	if err := st.store.checkPath(target); err != nil {
		return false, err
	}
	file, err := st.store.root.Open(target)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // it was only read
	sum, err := hashOf(ctx, file)
	return sum == st.info.Hash, err
}

func (st *Staged) hold(target string, made bool, touched time.Time) {
	s := st.store
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds[target]
	if h == nil {
		h = &hold{}
		s.holds[target] = h
	}
	h.uploads++
	h.made = h.made || made
	h.touched = touched
	st.held = target
}

// letGo ends the hold. It gives that of a file that has to go: it was put there for records that were not written.
func (st *Staged) letGo(keep bool) (orphan *hold) {
	s := st.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.release(st.folder)
	st.leave()
	h := s.holds[st.held]
	h.uploads--
	h.kept = h.kept || keep
	if h.uploads > 0 {
		return nil
	}
	delete(s.holds, st.held)
	if h.made && !h.kept {
		return h
	}
	return nil
}

// isHeld says that an upload holds the file.
func (s *Store) isHeld(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[target] != nil
}

// Keep says that the record which names the file is durable. Discard then does nothing.
func (st *Staged) Keep() {
	if st.held != "" {
		st.letGo(true)
		st.held = ""
	}
}

// Discard removes what the upload left on the disk, unless Keep came before or another upload has the same file. What
// can't be removed is swept later.
func (st *Staged) Discard() {
	st.dropTemp()
	if st.held == "" {
		return
	}
	s, target := st.store, st.held
	defer s.lock(st.folder)()
	if h := st.letGo(false); h != nil {
		if err := s.removeOrphan(st.folder, target, h.touched); err != nil {
			s.opts.Logger.Warn("a file without a record stays until it is swept", "file", target, "error", err)
		}
		s.removeEmpty(path.Dir(target), st.folder)
	}
	st.held = ""
}

// removeOrphan removes a file that was put in place for nothing, unless another process has taken it since.
func (s *Store) removeOrphan(folder, target string, touched time.Time) error {
	end, ok, err := s.exclude(folder)
	if !ok {
		return err
	}
	defer end()
	info, err := s.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.ModTime().Equal(touched):
		return nil
	}
	return s.root.Remove(target)
}

// removeEmpty removes folders where they are empty.
func (s *Store) removeEmpty(folders ...string) {
	for _, folder := range folders {
		_ = s.root.Remove(folder) // it fails where there is something in it
	}
}
