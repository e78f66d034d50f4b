//go:build linux || darwin || freebsd

package folder

import (
	"os"

	"golang.org/x/sys/unix"
)

func linkAt(from *os.File, name string, to *os.File, as string) error {
	for {
		err := unix.Linkat(int(from.Fd()), name, int(to.Fd()), as, 0)
		if err != unix.EINTR { //nolint:errorlint // it is a number
			return err
		}
	}
}

func freeAt(dir *os.File) (int64, error) {
	var fs unix.Statfs_t
	for {
		err := unix.Fstatfs(int(dir.Fd()), &fs)
		switch {
		case err == unix.EINTR: //nolint:errorlint // it is a number
			continue
		case err != nil:
			return 0, os.NewSyscallError("fstatfs", err)
		}
		return int64(fs.Bavail) * int64(fs.Bsize), nil //nolint:gosec,unconvert // their types differ from system to system
	}
}

func writableAt(dir *os.File) error {
	return os.NewSyscallError("faccessat", unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, 0))
}
