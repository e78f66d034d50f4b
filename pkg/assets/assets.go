package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Folder is the folder of an asset: a slash-separated path inside a project's directory.
type Folder struct{ Dir, Path string }

// File is an open file of an asset. Close it.
type File struct {
	*os.File

	Name     string // without its folders
	Type     string // the media type that its ending stands for; "": unknown
	Hash     string // SHA-256 of its content in hex
	Modified time.Time
}

// Assets reads files of assets. It is safe for concurrent use.
type Assets struct {
	private []string
	now     func() time.Time

	mu    sync.Mutex
	known map[key]*hashed
}

// maxKnown bounds the files whose hashes are kept.
const maxKnown = 10_000

// settled is how old a file must be for its hash to be kept: one that is written again at once may have the same time.
const settled = 2 * time.Second

type key struct {
	folder Folder
	name   string
}

// hashed is a file as it was, and its hash once done is closed.
type hashed struct {
	info fs.FileInfo
	done chan struct{}
	hash string
	err  error
}

// New makes an Assets. private names files that hold secrets of the service and are never served.
func New(now func() time.Time, private []string) *Assets {
	return &Assets{private: private, now: now, known: map[key]*hashed{}}
}

// Open opens the file of a folder at a slash-separated path. Whatever is no regular file below the folder is not found:
// links that lead out of it, folders, hidden files, names that mean something else on another system.
func (a *Assets) Open(ctx context.Context, folder Folder, name string) (*File, error) {
	if folder.Dir == "" || !isName(name) {
		return nil, errs.ErrNotFound
	}
	f, info, err := a.open(folder, name)
	if err != nil {
		return nil, errs.ErrNotFound.With(err)
	}
	hash, err := a.hash(ctx, key{folder, name}, f, info)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, errs.Wrap(err, "read an asset")
	}
	return &File{File: f, Name: path.Base(name), Type: typeOf(name), Hash: hash, Modified: info.ModTime()}, nil
}

// open opens a regular file within its folder, which is itself within the project's directory.
func (a *Assets) open(folder Folder, name string) (*os.File, fs.FileInfo, error) {
	project, err := os.OpenRoot(folder.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer project.Close() //nolint:errcheck // opened for reading
	root, err := project.OpenRoot(filepath.FromSlash(folder.Path))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // opened for reading
	name = filepath.FromSlash(name)
	info, err := root.Stat(name) // before opening: to open a pipe would wait for its writer
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || a.isPrivate(info) {
		return nil, nil, fs.ErrPermission
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && (!info.Mode().IsRegular() || a.isPrivate(info)) { // another one by now
		err = fs.ErrPermission
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, nil, err
	}
	return f, info, nil
}

// isPrivate says that a file holds secrets of the service.
func (a *Assets) isPrivate(info fs.FileInfo) bool {
	for _, p := range a.private {
		if own, err := os.Stat(p); err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}

// hash gives the hash of a file's content, reading it only if it is another one than the last time. Of many who ask at
// once one reads.
func (a *Assets) hash(ctx context.Context, k key, f *os.File, info fs.FileInfo) (string, error) {
	a.mu.Lock()
	h := a.known[k]
	if h != nil && os.SameFile(h.info, info) && h.info.Size() == info.Size() && h.info.ModTime().Equal(info.ModTime()) {
		a.mu.Unlock()
		select {
		case <-h.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if h.err == nil {
			return h.hash, nil
		}
		return read(ctx, f) // what kept the other from it, such as that they had left, need not keep this one
	}
	if len(a.known) >= maxKnown {
		clear(a.known)
	}
	h = &hashed{info: info, done: make(chan struct{})}
	a.known[k] = h
	a.mu.Unlock()

	h.hash, h.err = read(ctx, f)
	if h.err != nil || a.now().Sub(info.ModTime()) < settled {
		a.mu.Lock()
		if a.known[k] == h {
			delete(a.known, k)
		}
		a.mu.Unlock()
	}
	close(h.done)
	return h.hash, h.err
}

// read hashes a file, and goes back to its beginning.
func read(ctx context.Context, f *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, &reader{ctx, f}); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// reader ends with its context.
type reader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
