package embedded_test

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fault says which call of a file system fails, and how.
type fault struct {
	at      int64 // counted from 1; 0: none
	forGood bool  // and all calls behind it
	reads   bool  // counts the calls that read, not those that change something
	short   bool  // a write writes half of what it is given, before it fails
	err     syscall.Errno
}

func (f fault) String() string {
	kind, what, how := "once", "changes", ""
	if f.forGood {
		kind = "for good"
	}
	if f.reads {
		what = "reads"
	}
	if f.short {
		how = " short"
	}
	return fmt.Sprintf("%d %s %s%s", int(f.err), what, kind, how)
}

// faultFS is a file system of which calls fail. Files that are closed, renamed or locked and free space can't fail to be
// in real life, or it makes no difference.
type faultFS struct {
	vfs.FS
	fault
	off            atomic.Bool
	changes, reads atomic.Int64
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

func (f *faultFS) fails(n int64) bool {
	return f.at > 0 && !f.off.Load() && (n == f.at || (f.forGood && n > f.at))
}

func (f *faultFS) change() error {
	if n := f.changes.Add(1); !f.fault.reads && f.fails(n) {
		return f.err
	}
	return nil
}

func (f *faultFS) read() error {
	if n := f.reads.Add(1); f.fault.reads && f.fails(n) {
		return f.err
	}
	return nil
}

func (f *faultFS) file(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.change(); err != nil {
		return nil, err
	}
	return f.file(f.FS.Create(name, c))
}

func (f *faultFS) Link(from, to string) error {
	if err := f.change(); err != nil {
		return err
	}
	return f.FS.Link(from, to)
}

func (f *faultFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.file(f.FS.Open(name, opts...))
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.change(); err != nil {
		return nil, err
	}
	return f.file(f.FS.OpenReadWrite(name, c, opts...))
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.file(f.FS.OpenDir(name))
}

func (f *faultFS) Remove(name string) error {
	if err := f.change(); err != nil && f.err != syscall.ENOSPC { // that takes no space
		return err
	}
	return f.FS.Remove(name)
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.change(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faultFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.change(); err != nil {
		return nil, err
	}
	return f.file(f.FS.ReuseForWrite(from, to, c))
}

func (f *faultFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := f.change(); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, perm)
}

func (f *faultFS) List(dir string) ([]string, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.FS.List(dir)
}

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) Write(p []byte) (n int, err error) {
	err = f.fs.change()
	if err == nil {
		return f.File.Write(p)
	}
	if f.fs.short {
		if n, writeErr := f.File.Write(p[:len(p)/2]); writeErr != nil {
			return n, writeErr
		}
		n = len(p) / 2
	}
	return n, err
}

func (f *faultFile) Preallocate(offset, length int64) error {
	if err := f.fs.change(); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *faultFile) Sync() error {
	if err := f.fs.change(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.change(); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultFile) SyncTo(length int64) (fullSync bool, err error) {
	if err := f.fs.change(); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}

func (f *faultFile) Read(p []byte) (int, error) {
	if err := f.fs.read(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.read(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

var _ io.ReaderAt = (*faultFile)(nil)
