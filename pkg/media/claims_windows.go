package media

import (
	"errors"
	"os"
)

// What a byte is locked for.
const (
	shared int16 = iota
	exclusive
	unlocked
)

// lockByte has nothing to lock with: on Windows there is svcctl alone, which reads configs and opens no folder of files.
func lockByte(*os.File, int64, int16) (bool, error) { return false, errors.ErrUnsupported }
