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
// However it ends, by the line or by the end of ctx, the terminal is as it was. While it is stopped, a shell has the terminal show what is typed, and leaves
// it so: behind its fg nothing is shown again, and ask is called again.
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
	continued, end := goingOn()
	defer end()
	tick, late := time.NewTicker(time.Millisecond), time.Now().Add(readyTime)
	defer tick.Stop()
	for hidden := (*term.State)(nil); ; { // as the terminal is while it shows nothing; nil: it has not come to this yet
		select {
		case a := <-given:
			return string(a.line), a.err
		case <-ctx.Done():
			_ = term.Restore(fd, before) // else whoever interrupts it has a shell that shows nothing
			return "", context.Cause(ctx)
		case <-tick.C:
			now, err := term.GetState(fd)
			if err != nil {
				return "", err
			}
			if *now != *before || time.Now().After(late) {
				hidden = now
				tick.Stop()
				ask()
			}
		case <-continued:
			if hidden != nil {
				_ = term.Restore(fd, hidden)
				ask()
			}
		}
	}
}
