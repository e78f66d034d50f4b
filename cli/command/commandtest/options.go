package commandtest

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// State is a process at 2026-01-31T12:00:00Z without input, settings or environment.
func State(t *testing.T) *command.State {
	t.Helper()
	return &command.State{
		In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Home: t.TempDir(),
		Now: func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) },
		Env: func(string) (string, bool) { return "", false },
	}
}

// Verb makes a command that keeps its options in got in place of its work.
type Verb func(st *command.State, got *any) *cobra.Command

// Of makes a Verb of what makes a command, which is told what to run.
func Of[T any](newCmd func(st *command.State, runF func(context.Context, *T) error) *cobra.Command) Verb {
	return func(st *command.State, got *any) *cobra.Command {
		return newCmd(st, func(_ context.Context, opts *T) error { *got = *opts; return nil })
	}
}

// Options checks that each line, a verb and its arguments, makes the options that are wanted, without their state; nil is
// a usage error.
func Options(t *testing.T, verbs map[string]Verb, want map[string]any) {
	t.Helper()
	whole := cmp.Exporter(func(reflect.Type) bool { return true })
	anyState := cmp.Comparer(func(_, _ *command.State) bool { return true })
	for line, want := range want {
		var got any
		verb, args, _ := strings.Cut(line, " ")
		st := State(t)
		cmd := verbs[verb](st, &got)
		st.Register(cmd)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (want != nil) {
			t.Errorf("%s: error %v", line, err)
			continue
		}
		if diff := cmp.Diff(want, got, whole, anyState); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}
