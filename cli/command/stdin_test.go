//go:build unix

package command_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/svcctl/svc/cli/command"
)

// An interrupt ends a command that waits for an answer: before, it waited on, until a second one ended the process.
func TestInterruptedWhileAsking(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe()
	t.Cleanup(func() { _ = typist.Close() })
	for name, ask := range map[string]func(st *command.State) error{
		"a question": func(st *command.State) error { return st.Confirm(false, "Go on?") },
		"a name":     func(st *command.State) error { return st.ConfirmTyped(false, "Go on?", "blog") },
		"stdin": func(st *command.State) error {
			_, err := st.ReadFile("-")
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		st := &command.State{
			In: in, Out: io.Discard, Err: io.Discard, InTTY: true, ErrTTY: true, Home: t.TempDir(), Now: time.Now,
			Env: func(string) (string, bool) { return "", false },
		}
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
			if err := st.Prepare(cmd); err != nil {
				return err
			}
			go cancel()
			return ask(st)
		}}
		st.Register(cmd)
		cmd.SetArgs(nil)
		if err := cmd.ExecuteContext(ctx); st.ExitOf(t.Context(), err) != command.ExitInterrupted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An interrupt at a password leaves a terminal that shows what is typed.
func TestInterruptedWhileAskingForASecret(t *testing.T) {
	t.Parallel()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := func() {
		if now, err := term.GetState(int(terminal.Fd())); err != nil || *now == *before {
			t.Errorf("what is typed is shown: %v", err)
		}
		cancel()
	}
	if _, err := command.ReadSecret(ctx, terminal, asked); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if after, err := term.GetState(int(terminal.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}
