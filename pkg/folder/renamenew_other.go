//go:build !linux

package folder

import (
	"errors"
	"os"
)

func renameNewAt(*os.File, string, string) error { return errors.ErrUnsupported }
