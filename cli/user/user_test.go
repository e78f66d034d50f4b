package user

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

func TestParse(t *testing.T) {
	t.Parallel()
	ann, mail, no, scopes := "ann", "a@example.com", false, []string{"project.read", "user.read"}
	for _, tc := range []struct {
		line string
		want any // options without their state, or nil for a usage error
	}{
		{"create ann --email a@example.com --scope project.read,user.read --password-file f", createOptions{
			Username: "ann", Password: command.Password{File: "f"},
			Write: api.UserWrite{Username: &ann, Email: &mail, Scopes: &scopes},
		}},
		{"create ann --org acme,beta --team editors --generate", createOptions{
			Username: "ann", Password: command.Password{Generate: true},
			Write: api.UserWrite{Username: &ann, OrgIDs: &[]string{"acme", "beta"}, TeamIDs: &[]string{"editors"}},
		}},
		{"update bob --org=", updateOptions{Username: "bob", Write: api.UserWrite{OrgIDs: &[]string{}}}},
		{"create ann --generate --password-stdin", nil},
		{"create", nil},
		{"update bob --active=false --username ann", updateOptions{Username: "bob", Write: api.UserWrite{Username: &ann, Active: &no}}},
		{"update bob", nil},
		{"passwd", passwdOptions{}},
		{"passwd ann --generate", passwdOptions{Username: "ann", Password: command.Password{Generate: true}}},
		{"passwd ann --current-password-file f", nil},
	} {
		var got any
		verb, line, _ := strings.Cut(tc.line, " ")
		st := &command.State{
			In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Home: t.TempDir(), Now: time.Now,
			Env: func(string) (string, bool) { return "", false },
		}
		cmd := map[string]func() *cobra.Command{
			"create": func() *cobra.Command { return newCreate(st, keep[createOptions](&got)) },
			"update": func() *cobra.Command { return newUpdate(st, keep[updateOptions](&got)) },
			"passwd": func() *cobra.Command { return newPasswd(st, keep[passwdOptions](&got)) },
		}[verb]()
		st.Register(cmd)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (tc.want != nil) {
			t.Errorf("%s: error %v", tc.line, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got,
			cmp.AllowUnexported(createOptions{}, updateOptions{}, passwdOptions{}),
			cmp.Comparer(func(_, _ *command.State) bool { return true })); diff != "" {
			t.Errorf("%s: %s", tc.line, diff)
		}
	}
}

func keep[T any](to *any) func(context.Context, *T) error {
	return func(_ context.Context, opts *T) error { *to = *opts; return nil }
}
