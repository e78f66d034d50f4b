package project

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/schema"
)

// The bounds of a config on disk.
const (
	MaxFileSize = 1 << 20 // bytes of one of its files
	MaxFiles    = 1000
)

// secretsDir is the only place outside a project's directory that ${file:PATH} may name: where container platforms
// mount secrets.
const secretsDir = "/run/secrets/"

// rootReader reads config files inside one directory. os.Root keeps every path inside it, symbolic links included.
type rootReader struct {
	root *os.Root
	read map[string][]byte // what was read, by name
}

// Files reads files of a directory as those of a config are read: regular ones, none that are huge.
func Files(root *os.Root) schema.Reader { return &rootReader{root: root, read: map[string][]byte{}} }

// ReadFile reads one file within the bounds.
func (r *rootReader) ReadFile(name string) ([]byte, error) {
	if data, ok := r.read[name]; ok {
		return data, nil
	}
	if len(r.read) >= MaxFiles {
		return nil, schema.ErrTooMany
	}
	data, err := readIn(r.root, name)
	if err == nil {
		r.read[name] = data
	}
	return data, err
}

func readIn(root *os.Root, name string) ([]byte, error) {
	name = filepath.FromSlash(name)
	info, err := root.Stat(name) // before opening: to open a pipe would wait for its writer
	if err != nil {
		return nil, readError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, schema.ErrNoFile
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, readError(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileSize {
		return nil, schema.ErrTooLarge
	}
	return data, nil
}

// Glob gives the files that match a pattern, links that lead out of the directory left out.
func (r *rootReader) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(r.root.FS(), pattern)
	return slices.DeleteFunc(names, hidden), err
}

// readError tells a path that leaves the root, for which os.Root has no exported error, from other failures.
func readError(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) && strings.Contains(pathError.Err.Error(), "escapes") {
		return schema.ErrOutside
	}
	return err
}

// folder gives where a folder really is, with forward slashes, or says what is wrong with it.
func (r *rootReader) folder(name string) (target, problem string) {
	info, err := r.root.Stat(filepath.FromSlash(name))
	if err != nil {
		if readError(err) == schema.ErrOutside { //nolint:errorlint // it gives just this
			return "", "lies outside the project's directory"
		}
		return "", "is not there: make the folder, inside the project's directory"
	}
	if !info.IsDir() {
		return "", "is no folder"
	}
	if target, err = filepath.EvalSymlinks(r.path(name)); err != nil {
		return "", "can't be read"
	}
	return filepath.ToSlash(target), ""
}

// path is the machine's path of a file.
func (r *rootReader) path(name string) string {
	return filepath.Join(r.root.Name(), filepath.FromSlash(name))
}

// secretReader reads what ${file:PATH} names: inside the project's directory, or in secretsDir, but not the files that
// hold the service's own secrets: who writes a config need not know those.
type secretReader struct {
	root    *os.Root
	private []string
	sealed  bool
}

// ReadFile reads one secret.
func (r secretReader) ReadFile(name string) ([]byte, error) {
	if !path.IsAbs(name) {
		return r.readIn(r.root, name)
	}
	inside, ok := strings.CutPrefix(path.Clean(name), secretsDir)
	if !ok || r.sealed {
		return nil, schema.ErrOutside
	}
	root, err := os.OpenRoot(secretsDir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // opened for reading
	return r.readIn(root, inside)
}

func (r secretReader) readIn(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, readError(err)
	}
	for _, p := range r.private {
		if own, err := os.Stat(p); err == nil && os.SameFile(own, info) {
			return nil, schema.ErrOutside
		}
	}
	return readIn(root, name)
}
