package folder

import (
	"io"
	"io/fs"
	"os"
)

// File is a file of a Folder.
type File struct {
	file   *os.File
	folder *Folder
	name   string
}

// Write writes what is to come next.
func (f *File) Write(p []byte) (int, error) {
	if err := f.folder.ask("write", f.name); err != nil {
		n, _ := f.file.Write(p[:len(p)/2]) // a disk that is full takes some of it
		return n, err
	}
	return f.file.Write(p)
}

// Read reads what comes next.
func (f *File) Read(p []byte) (int, error) {
	if err := f.folder.ask("read", f.name); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

func (f *File) readFull(p []byte) (int, error) { return io.ReadFull(f, p) }

// Sync makes durable what was written.
func (f *File) Sync() error {
	if err := f.folder.ask("sync", f.name); err != nil {
		return err
	}
	return f.file.Sync()
}

// Stat tells how large it is.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Close closes it, also when it fails.
func (f *File) Close() error {
	err := f.file.Close()
	if fault := f.folder.ask("close", f.name); err == nil {
		err = fault
	}
	return err
}
