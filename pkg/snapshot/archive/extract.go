package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// Extract reads the files of the archive into a folder, which has to be empty (Conflict), and the stream to its end. Files and
// folders are durable when it returns, the manifest last. A stream that is no backup, or a file that is not as announced, is
// refused (Invalid): then, and after any other error, the folder is as empty as before. It works once. progress may be nil;
// it is called within Extract, often.
func (r *Reader) Extract(ctx context.Context, to *os.Root, progress func(Progress)) (err error) {
	if err := empty(to); err != nil {
		return err
	}
	x := &extraction{
		Reader: r, to: to, folders: map[string]bool{}, buffer: make([]byte, copyBuffer),
		meter: meter{Progress: Progress{FilesTotal: len(r.files), BytesTotal: r.total}, tell: progress},
	}
	defer func() {
		if err != nil {
			err = x.undo(err)
		}
	}()
	for i := range r.files {
		if err := r.header(i); err != nil {
			return err
		}
		if err := x.file(ctx, &r.files[i], r.frames); err != nil {
			return err
		}
		if err := r.zeros(padding(r.files[i].Size), r.files[i].Name); err != nil {
			return err
		}
	}
	if err := r.end(); err != nil {
		return err
	}
	return x.finish()
}

func empty(to *os.Root) error {
	folder, err := to.Open(".")
	if err != nil {
		return errs.Wrap(err, "open the folder of a restore")
	}
	defer folder.Close() //nolint:errcheck // it was read
	switch _, err := folder.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return errs.Wrap(err, "read the folder of a restore")
	}
	return errs.New(errs.Conflict, "folder_not_empty", "the folder that the backup is to be unpacked into is not empty: give an empty one")
}

type extraction struct {
	*Reader
	to      *os.Root
	folders map[string]bool // that were made
	tops    []string        // what was made in the folder itself
	buffer  []byte
	meter   meter
}

// file writes what is announced, and holds it against its SHA-256.
func (x *extraction) file(ctx context.Context, f *File, from io.Reader) error {
	if err := x.folder(path.Dir(f.Name)); err != nil {
		return err
	}
	sum := sha256.New()
	err := x.create(f.Name, func(file *os.File) error {
		return x.meter.copyFile(ctx, io.MultiWriter(sum, toDisk{file}), from, f, x.buffer)
	})
	switch {
	case err != nil:
		return unread(err)
	case !bytes.Equal(sum.Sum(nil), f.SHA256[:]):
		return reading.refuse(f.Name, "has another SHA-256 than the manifest says")
	}
	return nil
}

// create makes a file, has it filled, and makes it durable.
func (x *extraction) create(name string, fill func(*os.File) error) error {
	file, err := x.to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return inTheWay(name, err)
	}
	x.made(name)
	err = fill(file)
	if err == nil {
		if err = file.Sync(); err != nil {
			err = unstored(err, "sync a file of a backup")
		}
	}
	if closing := file.Close(); err == nil && closing != nil {
		err = unstored(closing, "close a file of a backup")
	}
	return err
}

// folder makes a folder and those above it.
func (x *extraction) folder(name string) error {
	if name == "." || x.folders[name] {
		return nil
	}
	if err := x.folder(path.Dir(name)); err != nil {
		return err
	}
	if err := x.to.Mkdir(name, folderMode); err != nil {
		return inTheWay(name, err)
	}
	x.made(name)
	x.folders[name] = true
	return nil
}

func (x *extraction) made(name string) {
	if !strings.Contains(name, "/") {
		x.tops = append(x.tops, name)
	}
}

// inTheWay is the error about what could not be made. What is there already has another name in the backup, or the file
// system would not have it: nothing is written over.
func inTheWay(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return errs.New(errs.Conflict, "backup_name_taken", "the file %s of the backup is there already under a name that this file system takes for the same: "+
			"restore onto one that tells upper and lower case apart, and into a folder that nothing else writes to", quote(name)).With(err)
	}
	return unstored(err, "make a file of a backup")
}

// finish makes the folders durable, and then the manifest.
func (x *extraction) finish() error {
	for _, folder := range slices.Sorted(maps.Keys(x.folders)) {
		if err := x.sync(folder); err != nil {
			return err
		}
	}
	if err := x.create(ManifestName, func(file *os.File) error {
		_, err := toDisk{file}.Write(x.manifest)
		return err
	}); err != nil {
		return err
	}
	return x.sync(".")
}

func (x *extraction) sync(folder string) error {
	f, err := x.to.Open(folder)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return unstored(err, "sync a folder of a backup")
	}
	return nil
}

// undo removes what was made, after err.
func (x *extraction) undo(err error) error {
	for _, name := range x.tops {
		if failed := x.to.RemoveAll(name); failed != nil {
			err = errors.Join(err, errs.Wrap(failed, "remove what is left of a restore"))
		}
	}
	return err
}

// toDisk writes to a file, and tells the kinds of its errors.
type toDisk struct{ file *os.File }

func (d toDisk) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	if err != nil {
		err = unstored(err, "write a file of a backup")
	}
	return n, err
}
