//go:build unix

package embedded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockHolder gives the number of the process that has the lock on a file; 0 if it is not known here, as of one in
// another container. This process must not have the lock: it would lose it.
func lockHolder(path string) int {
	f, err := os.Open(path) //nolint:gosec // the lock of the store
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// readerFS locks a directory that can't be written, for one who only reads: with a lock that keeps writers out.
type readerFS struct{ vfs.FS }

// Lock takes the usual lock if it can.
func (r readerFS) Lock(name string) (io.Closer, error) {
	lock, err := r.FS.Lock(name)
	if _, cant := errors.AsType[*fs.PathError](err); !cant || r.FS != vfs.Default {
		return lock, err
	}
	f, err := os.Open(name) //nolint:gosec // the lock of the store
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil // nobody has it, and nobody can make it
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
