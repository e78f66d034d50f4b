// Package files is the module files of scripts: it reads the files of one project's directory, and nothing outside.
//
// What does not live here: uploads and media, which are records' files, and the loading of a config (pkg/project).
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// Limits of one call.
const (
	MaxFile    = 5 << 20
	maxEntries = 10_000
)

// Files reads one directory. It implements script.Host for files.*.
type Files struct{ root *os.Root }

// New reads in root, which stays the caller's to close.
func New(root *os.Root) *Files { return &Files{root} }

// Call is files.read, files.list or files.exists, with one path.
func (f *Files) Call(_ context.Context, op string, args bson.A) (any, error) {
	name := ""
	if len(args) > 0 {
		name, _ = args[0].(string)
	}
	name = path.Clean(name)
	if !fs.ValidPath(name) {
		return nil, errs.New(errs.Invalid, "bad_path", "%q is no path inside the project", name)
	}
	switch op {
	case "files.read":
		return f.read(name)
	case "files.list":
		return f.list(name)
	case "files.exists":
		info, err := f.root.Stat(name)
		return err == nil && (info.Mode().IsRegular() || info.IsDir()), nil
	}
	return nil, errs.New(errs.Invalid, "no_module", "%s is not there", op)
}

// refused hides what the system says.
func refused(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errs.New(errs.NotFound, "no_file", "there is no file %s in the project", name).With(err)
	}
	return errs.New(errs.Invalid, "bad_file", "%s can't be read", name).With(err)
}

func (f *Files) read(name string) (any, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, refused(name, err)
	}
	if !info.Mode().IsRegular() { // a pipe would never end
		return nil, refused(name, errors.New("not a regular file"))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, refused(name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, refused(name, err)
	}
	if len(data) > MaxFile {
		return nil, errs.New(errs.TooLarge, "file_too_large", "%s is larger than 5 MiB", name)
	}
	return bson.Binary{Data: data}, nil
}

func (f *Files) list(name string) (any, error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, refused(name, err)
	}
	defer func() { _ = dir.Close() }() // it was only read
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, refused(name, err)
	}
	if len(entries) > maxEntries {
		return nil, errs.New(errs.TooLarge, "directory_too_large", "%s has more than %d entries", name, maxEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	list := bson.A{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			continue
		}
		list = append(list, bson.D{{Key: "name", Value: e.Name()}, {Key: "directory", Value: info.IsDir()}, {Key: "size", Value: info.Size()}})
	}
	return list, nil
}
