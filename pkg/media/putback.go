package media

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
)

// asideDir has a folder for each PutBack that has files which can't be put in place yet.
const asideDir = ".restore"

// PutBack puts files of a snapshot where records name them, in two steps. Bring puts those in place whose place is free, where no record
// is that names them yet, and keeps the others aside, since records there still name what is in their places. Replace then puts these
// in place. Whatever happens in between, Replace can be called again, by another process, too. It belongs to one goroutine.
type PutBack struct {
	s  *Store
	id string

	synced bool // each step is: not everything can be synced at once
}

// PutBack begins to put files back, while h lasts. id names what is aside: letters and digits.
func (h *Hold) PutBack(id string) *PutBack { return h.s.putBack(id) }

func (s *Store) putBack(id string) *PutBack {
	return &PutBack{s: s, id: id, synced: !folder.CanSyncAll}
}

// ReplaceAside is Replace of a PutBack with that id, which another process may have begun. Where there is none it does nothing.
func (s *Store) ReplaceAside(ctx context.Context, id string) error { return s.putBack(id).Replace(ctx) }

// DropAside drops what a PutBack with that id has aside. What it has put in place is swept, where no record names it.
func (s *Store) DropAside(id string) error {
	if err := s.folder.RemoveAll(path.Join(asideDir, id)); err != nil {
		return unwritten(err, "drop what was to be put back")
	}
	return nil
}

// Returned says what became of a file.
type Returned uint8

// What Bring does.
const (
	WasThere Returned = iota // the same file, or one of the same content
	Linked
	Copied
)

// Back is a file to be put back.
type Back struct {
	Dir, Record, Key string

	Hash string // of its content: SHA-256 in hex
	Size int64
}

// Bring brings a file of another folder, which becomes durable with Sync. aside says that it waits for Replace.
func (b *PutBack) Bring(ctx context.Context, f Back, from *folder.Folder, name string) (how Returned, aside bool, err error) {
	at, err := recordFolder(f.Dir, f.Record)
	if err != nil {
		return 0, false, err
	}
	target, ok := fileOf(at, f.Key)
	if !ok {
		return 0, false, errs.New(errs.Invalid, "bad_file_name", "%q can't be the name of a file", path.Base(f.Key))
	}
	source, err := from.Stat(name)
	if err != nil {
		return 0, false, errs.Wrap(err, "look at a file of a snapshot")
	}
	defer b.s.lock(at)()
	for range maxTries {
		there, err := b.s.root.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			how, err = b.place(ctx, from, name, target)
			if err == nil || retry(err) != nil {
				return how, false, unwrittenBack(ctx, err)
			}
			continue // others have come, or have removed the folder
		case err != nil:
			return 0, false, errs.Wrap(err, "look at the place of a file")
		}
		same, err := b.same(ctx, f, target, source, there)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return 0, false, err
		case same:
			return WasThere, false, b.touch(target)
		}
		how, err = b.place(ctx, from, name, path.Join(asideDir, b.id, target))
		if errors.Is(err, fs.ErrExist) { // it was brought before
			err = nil
		}
		return how, true, unwrittenBack(ctx, err)
	}
	return 0, false, errs.NewBusy("file_name_busy", "others are uploading the same file: try again")
}

// Keep says whether the file in place has the content with the hash of f. Then it stays, and a sweep leaves it.
func (b *PutBack) Keep(ctx context.Context, f Back) (bool, error) {
	at, err := recordFolder(f.Dir, f.Record)
	if err != nil {
		return false, err
	}
	target, ok := fileOf(at, f.Key)
	if !ok {
		return false, nil
	}
	defer b.s.lock(at)()
	there, err := b.s.root.Lstat(target)
	same := false
	if err == nil {
		f.Size = there.Size()
		same, err = b.same(ctx, f, target, nil, there)
	}
	if same && err == nil {
		err = b.touch(target)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return same, unwrittenBack(ctx, err)
}

// place puts a file under a name that is free.
func (b *PutBack) place(ctx context.Context, from *folder.Folder, name, target string) (Returned, error) {
	if err := b.makeFolder(path.Dir(target)); err != nil {
		return 0, err
	}
	linked, err := folder.Bring(ctx, from, name, b.s.folder, target)
	if err != nil {
		return 0, err
	}
	if err := b.touch(target); err != nil {
		return 0, err
	}
	how := Copied
	if linked {
		how = Linked
	}
	if b.synced {
		return how, b.s.folder.Sync(path.Dir(target))
	}
	return how, nil
}

// touch has a sweep see that the file is wanted, though no record names it yet.
func (b *PutBack) touch(target string) error {
	now := b.s.opts.Now()
	return b.s.root.Chtimes(target, now, now)
}

// makeFolder makes a folder and what is above it.
func (b *PutBack) makeFolder(name string) error {
	if b.synced {
		return b.s.makeFolder(name)
	}
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		if err := b.s.folder.Make(name[:end]); err != nil {
			return err
		}
	}
	return b.s.checkPath(name)
}

// same says that what is in place is the file, or has its content. source may be nil.
func (b *PutBack) same(ctx context.Context, f Back, target string, source, there os.FileInfo) (bool, error) {
	if !there.Mode().IsRegular() || there.Size() != f.Size {
		return false, nil
	}
	if source != nil && os.SameFile(source, there) {
		return true, nil
	}
	file, err := b.s.root.Open(target)
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sum, err := hashOf(ctx, file)
	return sum == f.Hash, err
}

// Sync has everything be on disk that was brought.
func (b *PutBack) Sync() error {
	if b.synced {
		return nil
	}
	return unwrittenBack(context.Background(), b.s.folder.SyncAll())
}

// Replace puts in place what is aside. It is on disk then.
func (b *PutBack) Replace(ctx context.Context) error {
	aside := path.Join(asideDir, b.id)
	if _, err := b.s.root.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := b.replace(ctx, aside, "."); err != nil {
		return unwrittenBack(ctx, err)
	}
	if err := b.Sync(); err != nil {
		return err
	}
	return b.s.DropAside(b.id)
}

// replace moves the files of a folder aside, whose place is the folder to.
func (b *PutBack) replace(ctx context.Context, aside, to string) error {
	list, err := b.s.folder.Entries(aside)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, target := path.Join(aside, e.Name()), path.Join(to, e.Name())
		if e.IsDir() {
			if err := b.replace(ctx, name, target); err != nil {
				return err
			}
			continue
		}
		if err := b.makeFolder(to); err != nil {
			return err
		}
		if err := b.s.folder.Rename(name, target); err != nil {
			return err
		}
	}
	if b.synced && to != "." {
		return b.s.folder.Sync(to)
	}
	return nil
}

func unwrittenBack(ctx context.Context, err error) error {
	if _, ours := errors.AsType[*errs.Error](err); ours || err == nil || ctx.Err() != nil {
		return err
	}
	return unwritten(err, "put a file back")
}
