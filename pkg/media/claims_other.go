//go:build unix && !linux

package media

import "syscall"

// setLock locks for the process. Stores of one process on one folder don't see each other's claims.
const setLock = syscall.F_SETLK
