package folder

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameNewAt(dir *os.File, name, to string) error {
	for {
		err := unix.Renameat2(int(dir.Fd()), name, int(dir.Fd()), to, unix.RENAME_NOREPLACE)
		switch {
		case err == unix.EINTR: //nolint:errorlint // it is a number
			continue
		case err == unix.EINVAL || err == unix.ENOSYS: //nolint:errorlint // what file systems and kernels say that don't know it
			return errors.ErrUnsupported
		}
		return err
	}
}
