//go:build unix

package mongotest

import "syscall"

// ownSession keeps a Ctrl-C from the server: it is for this process, and the keeper follows when that ends.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
