//go:build unix

package frametest

import (
	"image/color"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// patience is how long something may take until it is shown: a loaded machine is no failure.
const patience = 60 * time.Second

// Terminal is a terminal with a screen that can be looked at, for a process or a program in this one. It is for the goroutine of the
// test.
type Terminal struct {
	Inside *os.File // what the process has for its input and output

	t       *testing.T
	outside *os.File
	changed chan struct{} // something was drawn
	all     sync.WaitGroup

	mu      sync.Mutex // of all of screen but Read
	screen  *vt.Emulator
	entered int // how often the process has taken the whole screen
}

// NewTerminal makes a terminal, which ends with the test, or with Close.
func NewTerminal(t *testing.T, width, height int, background color.Color) *Terminal {
	t.Helper()
	x := &Terminal{t: t, screen: vt.NewEmulator(width, height), changed: make(chan struct{}, 1)}
	x.screen.SetDefaultBackgroundColor(background)
	x.screen.SetCallbacks(vt.Callbacks{AltScreen: func(on bool) { // within Write
		if on {
			x.entered++
		}
	}})
	var err error
	if x.outside, x.Inside, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	x.setSize(width, height)
	x.all.Go(func() { // what is drawn
		buffer := make([]byte, 4096)
		for {
			n, err := x.outside.Read(buffer)
			x.mu.Lock()
			_, _ = x.screen.Write(buffer[:n]) // which keeps all that it gets
			x.mu.Unlock()
			select {
			case x.changed <- struct{}{}:
			default:
			}
			if err != nil { // it is closed
				return
			}
		}
	})
	x.all.Go(func() { _, _ = io.Copy(x.outside, x.screen) }) // what the terminal answers, until it is closed
	return x
}

// Close ends the terminal. It can be called again.
func (x *Terminal) Close() {
	if pipe, ok := x.screen.InputPipe().(io.Closer); ok { // what Close of the screen does, which is not safe beside Read
		_ = pipe.Close() // a pipe's never fails
	}
	_ = x.Inside.Close() // it may be closed already
	_ = x.outside.Close()
	x.all.Wait()
}

// Start starts a process in the terminal.
func (x *Terminal) Start(cmd *exec.Cmd) {
	x.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Inside, x.Inside, x.Inside
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
}

// Until waits until something holds of the screen.
func (x *Terminal) Until(what string, holds func(screen *vt.Emulator) bool) {
	x.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		x.mu.Lock()
		held, shown := holds(x.screen), x.screen.String()
		x.mu.Unlock()
		if held {
			return
		}
		select {
		case <-x.changed:
		case <-late.C:
			x.t.Fatalf("it never comes to this: %s\n%s", what, shown)
		}
	}
}

// Shows waits until all of these are shown, each behind the one before.
func (x *Terminal) Shows(wants ...string) {
	x.t.Helper()
	x.Until(strings.Join(wants, ", "), func(screen *vt.Emulator) bool {
		rest, found := screen.String(), true
		for _, want := range wants {
			var here bool
			_, rest, here = strings.Cut(rest, want)
			found = found && here
		}
		return found
	})
}

// Press types keys, as terminals send them.
func (x *Terminal) Press(keys string) {
	x.t.Helper()
	if _, err := x.outside.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// PressAway types keys that have the process give the terminal back for a moment, and waits until it has it again: what is typed meanwhile, the
// terminal itself would show.
func (x *Terminal) PressAway(keys string) {
	x.t.Helper()
	x.mu.Lock()
	before := x.entered
	x.mu.Unlock()
	x.Press(keys)
	x.Until("it goes on", func(*vt.Emulator) bool { return x.entered > before })
}

// Resize makes the terminal another size. The process is told if it was started there.
func (x *Terminal) Resize(width, height int) {
	x.t.Helper()
	x.mu.Lock()
	x.screen.Resize(width, height)
	x.mu.Unlock()
	x.setSize(width, height)
}

func (x *Terminal) setSize(width, height int) {
	x.t.Helper()
	if err := pty.Setsize(x.outside, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil { //nolint:gosec // no terminal is as wide
		x.t.Fatal(err)
	}
}
