//go:build unix

package media

import (
	"errors"
	"os"
	"syscall"
)

// What a byte is locked for.
const (
	shared    = syscall.F_RDLCK
	exclusive = syscall.F_WRLCK
	unlocked  = syscall.F_UNLCK
)

// lockByte says whether a byte of a file could be locked. It never waits.
func lockByte(file *os.File, at int64, kind int16) (bool, error) {
	for {
		err := syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: kind, Start: at, Len: 1})
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
			return false, nil
		default:
			return false, err
		}
	}
}
