package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// File is a file that takes its place only when it is whole: until Commit, what stood there before stays. It is
// readable by its owner only. It works on every system that svcctl is built for, which renameio does not.
type File struct {
	*os.File
	target string
}

// CreateFile begins a file in the directory of path. Through a symbolic link, the file it leads to is replaced. What is no
// file, such as a folder or /dev/null, is not replaced: that is an error.
func CreateFile(path string) (*File, error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that can be replaced: give another one, or - for stdout", path)
	}
	const most = 100 // bytes of its name: with more behind them, one that a folder takes would be too long
	base := filepath.Base(path)
	f, err := os.CreateTemp(filepath.Dir(path), "."+base[:min(len(base), most)]+".*") // mode 0600
	if err != nil {
		return nil, err
	}
	return &File{File: f, target: path}, nil
}

// Commit syncs the file, puts it in its place in one step, and syncs the folder, so that it is there when the machine loses power.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.target); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.target))
}

// syncFolder has the names in a folder be on the disk, on systems and file systems that can say so.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // who may write into a folder need not be able to read it
	}
	defer dir.Close() //nolint:errcheck // it is only read
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// Discard drops the file unless it was committed. It may be called after Commit.
func (f *File) Discard() {
	_ = f.Close()           // closed already after Commit
	_ = os.Remove(f.Name()) // renamed already after Commit
}

// WriteFile writes a file whole, or not at all, as Commit does it; mode is what it has in the end.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Commit()
}

// ReplaceFile writes a small file in one step, without waiting for the disk: a process that is killed leaves the old or the
// new one, a machine that loses power perhaps an older one.
func ReplaceFile(path string, data []byte) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), f.target)
}
