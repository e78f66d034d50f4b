//go:build !linux

package folder

import (
	"errors"
	"os"
)

// CanSyncAll says whether SyncAll can be used.
const CanSyncAll = false

func syncAll(*os.File) error { return errors.ErrUnsupported }
