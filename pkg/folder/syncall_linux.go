package folder

import (
	"os"

	"golang.org/x/sys/unix"
)

// CanSyncAll says whether SyncAll can be used.
const CanSyncAll = true

func syncAll(dir *os.File) error { return os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd()))) }
