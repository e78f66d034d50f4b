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
