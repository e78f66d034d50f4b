//go:build !unix

package mongotest

import "syscall"

// ownSession asks for nothing: without a Unix shell no server starts, and MONGODB_URI must name one.
func ownSession() *syscall.SysProcAttr { return nil }
