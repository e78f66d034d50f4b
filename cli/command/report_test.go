package command_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// TestFailInCI: problems of files are annotations where their folder is known, and what a service says is no command of the workflow.
func TestFailInCI(t *testing.T) {
	t.Parallel()
	refused := &client.Error{Status: 422, Problem: api.Problem{
		Detail: "::stop-commands::x", Problems: []api.ConfigProblem{{File: "blog.yaml", Line: 3, Column: 5, Path: "fields.a", Message: "no"}, {Message: "##[group]"}},
	}}
	for _, tc := range []struct {
		ci, folder string
		want       []string
		not        []string
	}{
		{"true", "projects/blog", []string{"::error file=projects/blog/blog.yaml,line=3,col=5::fields.a: no\n", "error: : :stop-commands::x\n", "  # #[group]\n"}, []string{" ::", " ##["}},
		{"true", "", []string{"error: : :stop-commands::x\n"}, []string{"::error"}},
		{"false", "projects/blog", []string{"error: ::stop-commands::x\n", "  ##[group]\n"}, []string{"::error"}},
	} {
		var told bytes.Buffer
		st := commandtest.State(t)
		st.Err, st.ProblemFolder = &told, tc.folder
		st.Env = func(name string) (string, bool) { return tc.ci, name == "GITHUB_ACTIONS" }
		st.Fail(t.Context(), refused)
		for _, want := range tc.want {
			if !strings.Contains(told.String(), want) {
				t.Errorf("CI %s, folder %q: no %q in\n%s", tc.ci, tc.folder, want, told.String())
			}
		}
		for _, not := range tc.not {
			if strings.Contains(told.String(), not) {
				t.Errorf("CI %s, folder %q: %q in\n%s", tc.ci, tc.folder, not, told.String())
			}
		}
	}
}

// TestExitOf: a snapshot that is damaged is a failure, not a conflict that another time would help; a diff that could not be made is no difference.
func TestExitOf(t *testing.T) {
	t.Parallel()
	st := commandtest.State(t)
	for _, tc := range []struct {
		err  error
		want int
	}{
		{&client.Error{Status: 409, Problem: api.Problem{Code: "exists"}}, command.ExitConflict},
		{&client.Error{Status: 409, Problem: api.Problem{Code: "snapshot_damaged"}}, command.ExitFailed},
		{command.NotRun(&client.Error{Status: 409, Problem: api.Problem{Code: "snapshot_damaged"}}), command.ExitUsage},
		{command.NotRun(command.Told(command.ExitFailed)), command.ExitFailed},
	} {
		if got := st.ExitOf(t.Context(), tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
	message, _ := st.Explain(t.Context(), &client.Error{Status: 400, Problem: api.Problem{Detail: "bad", Errors: []api.FieldError{{Message: "one"}, {Path: "a.b", Message: "two"}}}})
	if message != "bad: one; a.b: two" {
		t.Errorf("the details are %q", message)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--request-timeout=-1s", "--color=blue", "-o=xml"} {
		st := commandtest.State(t)
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return st.Prepare(cmd) }, SilenceErrors: true, SilenceUsage: true}
		st.Register(cmd)
		cmd.SetArgs([]string{args})
		if err := cmd.ExecuteContext(t.Context()); st.ExitOf(t.Context(), err) != command.ExitUsage {
			t.Errorf("%s: %v", args, err)
		}
	}
}
