package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals gives the context of a run of svcctl in a process of its own, which ends when the process is to end: by Ctrl-C, by SIGTERM, or as the terminal
// goes away. The second signal ends the process at once. It is for the main function alone, once.
func Signals() (ctx context.Context, stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it. A terminal that goes away leaves no half-written file behind
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	// Without this a closed stdout (svcctl … | head) would kill the process; so it is an error that means success. It is not ignored, which plugins and
	// editors would inherit: a shell script among them could not have head end what writes to it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, stop
}
