//go:build unix

package command

import (
	"os"
	"os/signal"
	"syscall"
)

// goingOn gives what comes when the process goes on after it was stopped. Call end when that does not matter any more.
func goingOn() (_ <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}
