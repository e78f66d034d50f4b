//go:build unix

package tui_test

import (
	"bytes"
	"image/color"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
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
	s.events, s.run, s.feed, s.job = make(chan api.ProjectEvent), make(chan api.RunEvent), make(chan api.Change), make(chan api.RunEvent)
	s.jobRuns[0].Status = api.RunRunning
	server := httptest.NewServer(s.handler())
	term := frametest.NewTerminal(t, 100, 30, color.Black)
	vars := map[string]string{"SVCCTL_SERVER": server.URL, "SVCCTL_TOKEN": "a-token", "TERM": "xterm-256color"}
	st := &command.State{
		In: term.Inside, Out: term.Inside, Err: io.Discard, InTTY: true, OutTTY: true, Home: t.TempDir(), Version: "test", Now: time.Now,
		Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	code := make(chan int)
	for _, way := range [][][2]string{ // keys, and what they lead to
		{},
		{{"7", "articles/main"}},
		{{"7", "articles/main"}, {"r", "(y/n)"}, {"y", "esc leaves it running"}},
		{{"3", "FIELDS"}, {"\r", "live"}, {"/{}\r", "filter {}"}}, // one feed, and another
		{{"3", "FIELDS"}, {"\r", "live"}, {"0", "events of blog"}},
		{{"0", "events of blog"}, {"\t", "events of 2 projects"}},
		{{"5", "cleanup"}, {"\r", "Log of"}, {"9", "the log of the records"}},
		{{"8", "deploy"}, {"c", "project.reload"}, {"x\t\tproject.rel", "▸ project.reload"}, {" \r", "svc_pat_"}},
	} {
		go func() { code <- cli.Run(t.Context(), st, []string{"tui", "blog"}) }()
		term.Shows("Events")
		for _, key := range way {
			term.Press(key[0])
			term.Shows(key[1])
		}
		term.Press("\x03")
		if got := <-code; got != 0 {
			t.Errorf("exit code %d behind %v", got, way)
		}
		term.Until("it has given the terminal back", func(screen *vt.Emulator) bool { return !screen.IsAltScreen() })
	}
	term.Close()
	server.Close()
	// The program's library leaves what reads keys, if the terminal says something while it ends.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"))
}

// TestDraftsAreTold has a draft that was not saved be told of when the program has ended: what it showed is gone then.
func TestDraftsAreTold(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := sample()
	s.fail = map[string]api.Problem{"/_/blog/articles/" + docID(0): {Status: http.StatusConflict, Detail: "not now"}}
	server := httptest.NewServer(s.handler())
	defer server.Close()
	term := frametest.NewTerminal(t, 300, 30, color.Black) // wide enough for the draft's path, which is as long as chance has it
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'title: Mine\\n' > \"$1\"\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	vars := map[string]string{"SVCCTL_SERVER": server.URL, "SVCCTL_TOKEN": "a-token", "TERM": "xterm-256color", "SVCCTL_EDITOR": editor}
	var told bytes.Buffer
	st := &command.State{
		In: term.Inside, Out: term.Inside, Err: &told, InTTY: true, OutTTY: true, Home: t.TempDir(), Version: "test", Now: time.Now,
		Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	code := make(chan int)
	go func() { code <- cli.Run(t.Context(), st, []string{"tui", "blog"}) }()
	term.Shows("Events")
	term.Press("3")
	term.Shows("FIELDS")
	term.Press("\r")
	term.Shows("Title 0")
	term.Press("e")
	term.Shows("goes on with your draft")
	term.Press("\x03")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	drafts, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "svcctl-edit-*", "*.yaml"))
	if err != nil || len(drafts) != 1 {
		t.Fatalf("%v, %v", drafts, err)
	}
	want := "warning: not saved: your draft is in " + drafts[0] + "\ngo on with it by: svcctl doc edit blog articles " + docID(0) + " --draft " + drafts[0] + "\n"
	if told.String() != want {
		t.Errorf("it tells %q, want %q", told.String(), want)
	}
}
