//go:build !unix

package command

import "os"

// goingOn gives nothing where processes are not stopped.
func goingOn() (_ <-chan os.Signal, end func()) { return nil, func() {} }
