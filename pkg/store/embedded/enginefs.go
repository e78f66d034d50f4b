package embedded

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// engineFS is the file system as the engine is given it. It mends three of its habits.
//
// The engine makes a file (a manifest), then a marker that names it, removes the marker before that, and only then syncs
// the directory. A file system that does not keep such changes in order could be left, by a power cut, with a marker
// that names nothing, or with none. So the directory is synced before each of the two steps as well: once when a store
// is opened, and hardly ever later.
//
// And when its log, or its directory, can't be written, the engine ends the process, in places with nothing but a "fatal error" of the Go
// runtime. So failed is told before the engine is.
//
// And when a table can't be written, as on a full disk, the engine tries again at once, and for ever. So each failure in
// a row takes longer to tell.
//
// All this is for the store's own directory: a copy that can't be made is no harm to the store, and has no marker that
// counts before it is whole.
type engineFS struct {
	vfs.FS

	dir    string // of the store
	failed func(error)
	tables *atomic.Int32 // calls for tables that have failed in a row
}

// A table that can't be written fails after minTablePause, and each further one after twice that, up to maxTablePause.
const minTablePause, maxTablePause = 5 * time.Millisecond, time.Second

// Unwrap gives the file system below, for the engine.
func (e engineFS) Unwrap() vfs.FS { return e.FS }

// own says whether a file is the store's.
func (e engineFS) own(name string) bool {
	return e.FS.PathDir(name) == e.FS.PathDir(e.FS.PathJoin(e.dir, "file"))
}

func (e engineFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !e.own(name) {
		return e.FS.Create(name, category)
	}
	if err := e.syncBefore(name); err != nil {
		return nil, err
	}
	f, err := e.FS.Create(name, category)
	if strings.HasSuffix(name, ".sst") {
		if e.slow(err) != nil {
			return nil, err
		}
		return table{File: f, fs: e}, nil
	}
	return e.log(name, f, err)
}

func (e engineFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := e.FS.ReuseForWrite(from, to, category)
	return e.log(to, f, err)
}

func (e engineFS) Remove(name string) error {
	if err := e.syncBefore(name); err != nil {
		return err
	}
	return e.FS.Remove(name)
}

func (e engineFS) OpenDir(name string) (vfs.File, error) {
	f, err := e.FS.OpenDir(name)
	if err != nil || name != e.dir {
		return f, err
	}
	return watched{File: f, fs: e}, nil
}

// syncBefore syncs the directory that a marker comes to, or goes from.
func (e engineFS) syncBefore(name string) error {
	if !strings.HasPrefix(e.FS.PathBase(name), "marker.") || !e.own(name) {
		return nil
	}
	dir, err := e.FS.OpenDir(e.FS.PathDir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// log watches a file that was opened to be written, if it is a log.
func (e engineFS) log(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	if err != nil {
		return nil, e.tell(err)
	}
	return watched{File: f, fs: e}, nil
}

func (e engineFS) tell(err error) error {
	if err != nil {
		e.failed(fmt.Errorf("write to the disk: %w", err))
	}
	return err
}

// slow gives back what became of a call for a table; if it failed, after a while. The engine holds no locks meanwhile.
func (e engineFS) slow(err error) error {
	if err != nil {
		time.Sleep(min(minTablePause<<min(e.tables.Add(1)-1, 16), maxTablePause))
	}
	return err
}

// table is a table that is written.
type table struct {
	vfs.File

	fs engineFS
}

func (f table) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.slow(err)
}

func (f table) Sync() error     { return f.synced(f.File.Sync()) }
func (f table) SyncData() error { return f.synced(f.File.SyncData()) }

func (f table) synced(err error) error {
	if err == nil {
		f.fs.tables.Store(0)
	}
	return f.fs.slow(err)
}

// watched is a file that must not fail.
type watched struct {
	vfs.File

	fs engineFS
}

func (f watched) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.tell(err)
}

func (f watched) Close() error    { return f.fs.tell(f.File.Close()) }
func (f watched) Sync() error     { return f.fs.tell(f.File.Sync()) }
func (f watched) SyncData() error { return f.fs.tell(f.File.SyncData()) }

func (f watched) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	return fullSync, f.fs.tell(err)
}
