//go:build unix

package tui_test

import (
	"image/color"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

// TestNothingIsLeftBehind runs the whole of svcctl tui in the process: when it has ended, so have its goroutines, whatever they were
// waiting for. It is not parallel, since it looks at all goroutines.
func TestNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := sample()
	s.events, s.run = make(chan api.ProjectEvent), make(chan api.RunEvent)
	server := httptest.NewServer(s.handler())
	term := frametest.NewTerminal(t, 100, 30, color.Black)
	vars := map[string]string{"SVCCTL_SERVER": server.URL, "SVCCTL_TOKEN": "a-token", "TERM": "xterm-256color"}
	st := &command.State{
		In: term.Inside, Out: term.Inside, Err: io.Discard, InTTY: true, OutTTY: true, Home: t.TempDir(), Version: "test", Now: time.Now,
		Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	code := make(chan int)
	search := [][2]string{{"7", "articles/main"}, {"r", "(y/n)"}, {"y", "esc leaves it running"}} // keys, and what they lead to
	for n := range len(search) + 1 {
		go func() { code <- cli.Run(t.Context(), st, []string{"tui", "blog"}) }()
		term.Shows("Events")
		for _, key := range search[:n] {
			term.Press(key[0])
			term.Shows(key[1])
		}
		term.Press("\x03")
		if got := <-code; got != 0 {
			t.Errorf("exit code %d behind %v", got, search[:n])
		}
	}
	term.Close()
	server.Close()
	// The program's library leaves what reads keys, if the terminal says something while it ends.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"))
}
