package frametest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
)

// Driver is a program that runs. It is for the goroutine of the test, which has to be in a bubble.
type Driver struct {
	t     *testing.T
	model tea.Model
	msgs  chan tea.Msg
	done  chan struct{}
	wg    sync.WaitGroup

	Quit, Suspended bool // what the program has asked for
}

// Drive starts a program in a terminal of so many columns and lines, and lets it come to rest.
func Drive(t *testing.T, model tea.Model, width, height int) *Driver {
	t.Helper()
	d := &Driver{t: t, model: model, msgs: make(chan tea.Msg), done: make(chan struct{})}
	d.run(model.Init())
	d.Resize(width, height)
	return d
}

// Stop lets go of the program. What it has going on has to be ended before, or at the same time.
func (d *Driver) Stop() {
	close(d.done)
	d.wg.Wait()
}

// run runs a command, and takes its message when the program comes to rest.
func (d *Driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	d.wg.Go(func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, one := range msg {
				d.run(one)
			}
		default:
			select {
			case d.msgs <- msg:
			case <-d.done:
			}
		}
	})
}

// Send gives the program a message, and lets it come to rest.
func (d *Driver) Send(msg tea.Msg) {
	d.update(msg)
	d.Settle()
}

func (d *Driver) update(msg tea.Msg) {
	if _, quits := msg.(tea.QuitMsg); quits {
		d.Quit = true
		return
	}
	if e, gives := msg.(frame.Exec); gives { // there is no terminal to be given
		answer := e.Done(e.Command.Run())
		d.run(func() tea.Msg { return answer })
		return
	}
	if fmt.Sprintf("%T", msg) == "tea.execMsg" { // nothing else takes the terminal from the program
		d.Suspended = true
		return
	}
	var cmd tea.Cmd
	d.model, cmd = d.model.Update(msg)
	d.run(cmd)
}

// Settle lets the program do all that it can do before time goes on.
func (d *Driver) Settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			d.update(msg)
		default:
			return
		}
	}
}

// Wait lets time go by, and the program do all that it does meanwhile.
func (d *Driver) Wait(t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	for {
		d.Settle()
		select {
		case msg := <-d.msgs:
			d.update(msg)
		case <-timer.C:
			d.Settle()
			return
		}
	}
}

// Resize makes the terminal another size.
func (d *Driver) Resize(width, height int) { d.Send(tea.WindowSizeMsg{Width: width, Height: height}) }

// Press presses keys one after the other: characters, or names such as enter, esc, ctrl+c.
func (d *Driver) Press(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		d.Send(pressed(d.t, key))
	}
}

// PressAtOnce presses keys before the program has done anything about them.
func (d *Driver) PressAtOnce(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		d.update(pressed(d.t, key))
	}
	d.Settle()
}

// Type presses the key of each character.
func (d *Driver) Type(text string) {
	d.t.Helper()
	for _, r := range text {
		d.Send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func pressed(t *testing.T, key string) tea.KeyPressMsg {
	t.Helper()
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
		"home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	if code, ok := codes[key]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	runes := []rune(key)
	if len(runes) != 1 {
		t.Fatalf("there is no key %q", key)
	}
	return tea.KeyPressMsg{Code: runes[0], Text: key}
}

// Model is the program.
func (d *Driver) Model() tea.Model { return d.model }

// View is what the terminal shows, painted.
func (d *Driver) View() string { return d.model.View().Content }
