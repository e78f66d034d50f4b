package media

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
)

// Library has the files of all projects: a Store for each namespace, in a folder of that name, opened when it is first
// asked for. It is safe for concurrent use.
type Library struct {
	dir  string
	opts Options

	mu     sync.Mutex
	stores map[string]*Store
	closed bool
}

// NewLibrary keeps the files of projects below dir, which is made with the first of them.
func NewLibrary(dir string, opts Options) *Library {
	return &Library{dir: dir, opts: opts, stores: map[string]*Store{}}
}

// Store gives the files of a namespace. Who asks must not close it.
func (l *Library) Store(namespace string) (*Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dir := filepath.Join(l.dir, namespace)
	if s := l.stores[namespace]; s != nil {
		if !s.isGone() {
			return s, nil
		}
		delete(l.stores, namespace) // another process has dropped it, as what a restore had made that was undone; who still uses it finds nothing in it
		if err := s.Close(); err != nil {
			l.opts.Logger.Warn("the folder of uploads that is there no more was not closed", "folder", dir, "error", err)
		}
	}
	if l.closed {
		return nil, errStopping
	}
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return nil, errBadNamespace(namespace)
	}
	s, err := Open(dir, l.opts)
	if err != nil {
		return nil, unwritten(err, "open the files of a project")
	}
	l.stores[namespace] = s
	return s, nil
}

func errBadNamespace(namespace string) error {
	return errs.New(errs.Invalid, "bad_namespace", "%q is no namespace that can have files", namespace)
}

// Orphans is that of a namespace's Store. A look leaves no trace: what has no folder has no files, and gets none, nor what uploads
// need in it.
func (l *Library) Orphans(ctx context.Context, namespace string, before time.Time, live Live, found func(dir, record string, bytes int64) error) error {
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return errBadNamespace(namespace)
	}
	l.mu.Lock()
	s := l.stores[namespace]
	l.mu.Unlock()
	if s == nil {
		root, err := os.OpenRoot(filepath.Join(l.dir, namespace))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return errs.Wrap(err, "open the files of a project")
		}
		defer root.Close() //nolint:errcheck // it was only read
		s = &Store{root: root, opts: l.opts, seed: maphash.MakeSeed()}
	}
	return s.Orphans(ctx, before, live, found)
}

// Namespaces lists those that have a folder, served or not. None is there before the first upload.
func (l *Library) Namespaces() ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errs.Wrap(err, "list the folders of uploads")
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && plainName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Drop removes all files of a namespace, of which no record is left, durably. One that has none is no error. Nobody waits for that who asks
// for the files of a namespace meanwhile: of this one there are none any more, and new ones stay.
func (l *Library) Drop(namespace string) error {
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return errBadNamespace(namespace)
	}
	root, err := folder.OpenExisting(l.dir, l.opts.Fault)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritten(err, "drop the files of a project")
	}
	defer root.Close() //nolint:errcheck // its changes are synced
	err = l.putAway(root, namespace)
	if err == nil {
		err = root.Sync(".")
	}
	return unwritten(errors.Join(err, removeDropped(root)), "drop the files of a project")
}

// DropAside is that of a namespace's Store. What has no folder gets none: it may have been dropped meanwhile, and would count as files of a project that is registered no more.
func (l *Library) DropAside(namespace, id string) error {
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return errBadNamespace(namespace)
	}
	if _, err := os.Lstat(filepath.Join(l.dir, namespace)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	s, err := l.Store(namespace)
	if err != nil {
		return err
	}
	return s.DropAside(id)
}

// droppedMark begins the names of folders of namespaces that are dropped. Nothing is in them that anybody needs.
const droppedMark = ".dropped-"

// putAway takes the name away from the folder of a namespace.
func (l *Library) putAway(root *folder.Folder, namespace string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var closing error
	if s := l.stores[namespace]; s != nil {
		delete(l.stores, namespace)
		closing = s.Close()
	}
	err := root.Rename(namespace, droppedMark+rand.Text())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(closing, err)
}

// RemoveDropped removes what a crash has left of namespaces that were dropped.
func (l *Library) RemoveDropped() error {
	root, err := folder.OpenExisting(l.dir, l.opts.Fault)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritten(err, "remove files of projects")
	}
	defer root.Close() //nolint:errcheck // what it removes nobody looks for
	return unwritten(removeDropped(root), "remove files of projects")
}

// removeDropped may be at it at the same time as others are.
func removeDropped(root *folder.Folder) error {
	entries, err := root.Entries(".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), droppedMark) {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	return err
}

// Close ends the use of all folders. Files that were opened can be read on.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var err error
	for _, s := range l.stores {
		err = errors.Join(err, s.Close())
	}
	clear(l.stores)
	return err
}
