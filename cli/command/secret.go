package command

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
)

// readyTime is how long a terminal that shows what is typed may take to stop that. One that shows nothing anyway does not change.
const readyTime = 200 * time.Millisecond

// ReadSecret reads a line from a terminal, which shows nothing of it: ask is called, to ask for it, when what is typed is not shown any more.
// However it ends, by the line or by the end of ctx, the terminal is as it was.
func ReadSecret(ctx context.Context, in *os.File, ask func()) (string, error) {
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type answer struct {
		line []byte
		err  error
	}
	given := make(chan answer, 1)
	go func() { // it ends with the line, or with the process: there is no way out of the system's read
		line, err := term.ReadPassword(fd)
		given <- answer{line, err}
	}()
	tick, late := time.NewTicker(time.Millisecond), time.Now().Add(readyTime)
	defer tick.Stop()
	for asked := false; ; {
		select {
		case a := <-given:
			return string(a.line), a.err
		case <-ctx.Done():
			_ = term.Restore(fd, before) // else whoever interrupts it has a shell that shows nothing
			return "", context.Cause(ctx)
		case <-tick.C:
			now, err := term.GetState(fd)
			if ready := err == nil && *now != *before || time.Now().After(late); ready && !asked {
				asked = true
				tick.Stop()
				ask()
			}
		}
	}
}
