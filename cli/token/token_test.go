package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
)

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
	commandtest.Options(t, map[string]commandtest.Verb{
		"create": commandtest.Of(newCreate),
		"update": commandtest.Of(newUpdate),
	}, map[string]any{
		"create ci --scope project.read,user.read":                       createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &scopes}},
		"create ci --scope project.read --scope user.read --expires 30d": createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &scopes, ExpiresAt: at("2026-03-02T12:00:00Z")}},
		"create ci --scope= --expires never":                             createOptions{Write: api.TokenWrite{Name: &ci, Scopes: &none, ExpiresAt: &api.Time{}}},
		"create ci":                                                      nil,
		"create --scope project.read":                                    nil,
		"create ci --scope project.read --expires soon":                  nil,
		"create ci --scope project.read --expires -1h":                   nil,
		"create ci --scope project.read --expires d":                     nil,
		"update ci --expires 2w":                                         updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2026-02-14T12:00:00Z")}},
		"update ci --expires 36h":                                        updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2026-02-02T00:00:00Z")}},
		"update ci --expires 2030-01-31":                                 updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2030-01-31T00:00:00Z")}},
		"update ci --expires 2030-01-31T01:00:00+01:00":                  updateOptions{Token: "ci", Write: api.TokenWrite{ExpiresAt: at("2030-01-31T00:00:00Z")}},
		"update ci --name x":                                             updateOptions{Token: "ci", Write: api.TokenWrite{Name: &x}},
		"update ci":                                                      nil,
	})
}

// The value goes to stdout alone, whole in JSON; the tab key offers what the service says.
func TestOutput(t *testing.T) {
	t.Parallel()
	const id, value = "650102030405060708090a0b", "svc_pat_650102030405060708090a0b_secret"
	const namedSo = "6501020304050607080900ff" // the name of a token that looks like the id of another one
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v1/token/_scopes":
			fmt.Fprint(w, `["namespace.blog","project.read"]`)
		case "POST /api/v1/token":
			fmt.Fprintf(w, `{"id": %q, "userId": "u", "name": "ci", "scopes": ["project.read"], "expiresAt": null, "token": %q}`, id, value)
		case "GET /api/v1/token":
			ci := fmt.Sprintf(`{"id": %q, "name": "ci", "scopes": ["project.read"], "expiresAt": "2026-03-01T00:00:00.000Z"}`, id)
			twice := `{"id": "x", "name": "twice", "expiresAt": "2026-01-30T00:00:00.000Z"}, {"id": "y", "name": "twice"}`
			taken := fmt.Sprintf(`{"id": "z", "name": %q}`, namedSo)
			found := map[string]string{
				"": ci + ", " + twice, `{"name":"ci"}`: ci, `{"name":"twice"}`: twice,
				`{"name":"` + namedSo + `"}`: taken,
			}[r.URL.Query().Get("filter")]
			fmt.Fprintf(w, `{"items": [%s]}`, found)
		case "GET /api/v1/token/" + id:
			fmt.Fprintf(w, `{"id": %q, "name": "ci"}`, id)
		case "DELETE /api/v1/token/" + id:
			fmt.Fprint(w, `{}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	run := func(line string) (out, notes string, err error) {
		t.Helper()
		st, o, n := commandtest.State(t), &bytes.Buffer{}, &bytes.Buffer{}
		st.Out, st.Err = o, n
		st.Env = func(name string) (string, bool) {
			if name != "SVCCTL_SERVER" {
				return "", false
			}
			return server.URL, true
		}
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
		{"list", "NAME    SCOPES         EXPIRES              LAST USED\nci      project.read   2026-03-01\ntwice                  expired 2026-01-30\n", "", ""},
		{"get ci -o name", "token/" + id + "\n", "", ""},
		{"get " + id + " -o name", "token/" + id + "\n", "", ""},
		{"get " + namedSo + " -o name", "token/z\n", "", ""},
		{"get nope", "", "", "token not found: nope"},
		{"get twice", "", "", "several tokens are named twice"},
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
