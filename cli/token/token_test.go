package token

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func newState(t *testing.T, server string) (st *command.State, out, notes *bytes.Buffer) {
	t.Helper()
	out, notes = &bytes.Buffer{}, &bytes.Buffer{}
	return &command.State{
		In: strings.NewReader(""), Out: out, Err: notes, Home: t.TempDir(), Now: func() time.Time { return now },
		Env: func(name string) (string, bool) {
			if name != "SVCCTL_SERVER" {
				return "", false
			}
			return server, true
		},
	}, out, notes
}

func TestParse(t *testing.T) {
	t.Parallel()
	ci, x, scopes, none := "ci", "x", []string{"project.read", "user.read"}, []string{}
	at := func(s string) *api.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return &api.Time{Time: v}
	}
	for _, tc := range []struct {
		line string
		want any // options without their state, or nil for a usage error
	}{
		{"create ci --scope project.read,user.read", createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &scopes}}},
		{"create ci --scope project.read --scope user.read --expires 30d", createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &scopes, ExpiresAt: at("2026-03-02T12:00:00Z")}}},
		{"create ci --scope= --expires never", createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &none, ExpiresAt: &api.Time{}}}},
		{"create ci", nil},
		{"create --scope project.read", nil},
		{"create ci --scope project.read --expires soon", nil},
		{"create ci --scope project.read --expires -1h", nil},
		{"create ci --scope project.read --expires d", nil},
		{"update ci --expires 2w", updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2026-02-14T12:00:00Z")}}},
		{"update ci --expires 36h", updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2026-02-02T00:00:00Z")}}},
		{"update ci --expires 2030-01-31", updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2030-01-31T00:00:00Z")}}},
		{"update ci --expires 2030-01-31T01:00:00+01:00", updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2030-01-31T00:00:00Z")}}},
		{"update ci --name x", updateOptions{Token: "ci", Write: api.TokenWrite{Name: &x}}},
		{"update ci", nil},
	} {
		var got any
		verb, line, _ := strings.Cut(tc.line, " ")
		st, _, _ := newState(t, "")
		cmd := map[string]func() *cobra.Command{
			"create": func() *cobra.Command { return newCreate(st, keep[createOptions](&got)) },
			"update": func() *cobra.Command { return newUpdate(st, keep[updateOptions](&got)) },
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
			cmp.AllowUnexported(createOptions{}, updateOptions{}),
			cmp.Comparer(func(_, _ *command.State) bool { return true })); diff != "" {
			t.Errorf("%s: %s", tc.line, diff)
		}
	}
}

func keep[T any](to *any) func(context.Context, *T) error {
	return func(_ context.Context, opts *T) error { *to = *opts; return nil }
}

// The value goes to stdout alone, whole in JSON; the tab key offers what the service says.
func TestOutput(t *testing.T) {
	t.Parallel()
	const id, value = "650102030405060708090a0b", "svc_pat_650102030405060708090a0b_secret"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v1/token/_scopes":
			fmt.Fprint(w, `["namespace.blog","project.read"]`)
		case "POST /api/v1/token":
			fmt.Fprintf(w, `{"id": %q, "userId": "u", "name": "ci", "scopes": ["project.read"], "expiresAt": null, "token": %q}`, id, value)
		case "GET /api/v1/token":
			fmt.Fprintf(w, `{"items": [{"id": %q, "name": "ci", "scopes": ["project.read"], "expiresAt": "2026-03-01T00:00:00.000Z"}, {"id": "x", "name": "twice"}, {"id": "y", "name": "twice"}]}`, id)
		case "DELETE /api/v1/token/" + id:
			fmt.Fprint(w, `{}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	run := func(line string) (out, notes string, err error) {
		t.Helper()
		st, o, n := newState(t, server.URL)
		root := NewCmd(st)
		st.Register(root)
		root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return st.Prepare(cmd) }
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetArgs(strings.Fields(line))
		root.SetOut(o)
		err = root.ExecuteContext(t.Context())
		return o.String(), n.String(), err
	}
	for _, tc := range []struct{ line, out, notes, err string }{
		{"create ci --scope project.read", value + "\n", "not shown again", ""},
		{"list", "NAME    SCOPES         EXPIRES      LAST USED\nci      project.read   2026-03-01\n", "", ""},
		{"get ci -o name", "token/" + id + "\n", "", ""},
		{"get nope", "", "", "token not found: nope"},
		{"get twice", "", "", "2 tokens are named twice"},
		{"delete ci --yes", "", "revoked", ""},
		{"scopes", "SCOPE\nnamespace.blog\nproject.read\n", "", ""},
		{"scopes -o name", "namespace.blog\nproject.read\n", "", ""},
		{"__complete create ci --scope project.read,", "project.read,namespace.blog\nproject.read,project.read\n", "", ""},
	} {
		out, notes, err := run(tc.line)
		if !strings.HasPrefix(out, tc.out) || !strings.Contains(notes, tc.notes) || (err == nil) != (tc.err == "") ||
			err != nil && !strings.Contains(err.Error(), tc.err) || strings.Contains(notes, value) {
			t.Errorf("%s:\nout   %q\nnotes %q\nerror %v", tc.line, out, notes, err)
		}
	}
	out, _, err := run("create ci --scope project.read -o json")
	var tok api.Token
	if err != nil || json.Unmarshal([]byte(out), &tok) != nil || tok.Token != value || tok.ID != id {
		t.Errorf("%s %v", out, err)
	}
}
