//go:build unix

package frame

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// suspend gives the terminal back and stops the process, until the shell's fg.
func suspend() tea.Cmd { return tea.Exec(stop{}, func(error) tea.Msg { return resumed{} }) }

// stop is what runs while the program does not have the terminal. The suspension that the program's library has waits for ever where
// nothing stops a process, as without a shell that could go on with it.
type stop struct{}

// stopTime is how long it takes at most until a process is stopped by its own signal.
const stopTime = 300 * time.Millisecond

// Run implements tea.ExecCommand.
func (stop) Run() error {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil { // all that the shell takes for one job
		return err
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-goesOn:
	case <-timer.C:
	}
	return nil
}

// SetStdin implements tea.ExecCommand.
func (stop) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (stop) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (stop) SetStderr(io.Writer) {}
