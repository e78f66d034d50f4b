//go:build !linux && !darwin && !freebsd

package folder

import (
	"errors"
	"os"
)

func linkAt(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }

func freeAt(*os.File) (int64, error) { return -1, nil }

func writableAt(*os.File) error { return nil }
