package media

import (
	"context"
	"errors"
	"hash/maphash"
	"os"
	"path/filepath"
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
	if s := l.stores[namespace]; s != nil {
		return s, nil
	}
	if l.closed {
		return nil, errStopping
	}
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return nil, errBadNamespace(namespace)
	}
	s, err := Open(filepath.Join(l.dir, namespace), l.opts)
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

// Drop removes all files of a namespace, of which no record is left, durably. One that has none is no error.
func (l *Library) Drop(namespace string) error {
	if !filepath.IsLocal(namespace) || !plainName(namespace) {
		return errBadNamespace(namespace)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if s := l.stores[namespace]; s != nil {
		delete(l.stores, namespace)
		err = s.Close()
	}
	root, opening := folder.OpenExisting(l.dir, nil)
	if errors.Is(opening, os.ErrNotExist) {
		return nil
	}
	if opening != nil {
		return unwritten(opening, "drop the files of a project")
	}
	defer root.Close() //nolint:errcheck // its changes are synced
	err = errors.Join(err, root.RemoveAll(namespace))
	if err == nil {
		err = root.Sync(".")
	}
	return unwritten(err, "drop the files of a project")
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
