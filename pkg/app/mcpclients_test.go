package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/svcctl/svc/pkg/app"
)

// agentCalls are arguments for each tool, and what comes of the call: "ok", or the number of the refusal.
func agentCalls(d *doors) (arguments map[string]json.RawMessage, want []string) {
	arguments = map[string]json.RawMessage{}
	for line := range strings.Lines(`
documents_list ok {"namespace": "shop", "collection": "items", "filter": {"n": {"$gte": 0}}, "limit": 2}
document_get ok {"namespace": "shop", "collection": "items", "id": "{id}"}
documents_count ok {"namespace": "shop", "collection": "items"}
documents_facet ok {"namespace": "shop", "collection": "items", "fields": "title"}
queue_status ok {"namespace": "shop", "collection": "items"}
document_create ok {"namespace": "shop", "collection": "items", "data": {"title": "made by an agent"}}
document_update ok {"namespace": "shop", "collection": "items", "id": "{id}", "data": {"n": 2}, "dryRun": true}
document_delete 404 {"namespace": "shop", "collection": "items", "id": "650102030405060708090a0b"}
file_read 400 {"namespace": "shop", "collection": "items", "id": "{id}", "field": "file"}
action_call ok {"namespace": "shop", "action": "act", "data": {}}
projects_list ok {}
project_get ok {"id": "{project}"}
collections_list ok {"namespace": "shop"}
collection_describe ok {"namespace": "shop", "collection": "items", "lang": "de"}
actions_list ok {"namespace": "shop"}
action_describe ok {"namespace": "shop", "action": "act"}
jobs_list ok {"namespace": "shop"}
openapi_get ok {"namespace": "shop"}
system_meta_get ok {"model": "user"}
agent_guide_get ok {"namespace": "shop"}
assets_list ok {"namespace": "shop"}
asset_read 400 {"namespace": "shop", "name": "a", "path": "b"}
users_list ok {"limit": "2"}
user_get ok {"id": "{user}"}
user_create 400 {"data": {}}
user_update 400 {"id": "{user}", "data": {}}
user_delete 400 {"id": "{user}"}
orgs_list ok {}
org_get ok {"id": "{org}"}
teams_list ok {"limit": "1"}
team_get ok {"id": "{team}"}
audit_query ok {"limit": "2"}
project_reload 400 {"namespace": "shop"}
regenerate_search 400 {"namespace": "shop"}
backup_create 400 {"namespace": "shop"}
snapshots_list 400 {"namespace": "shop"}
`) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) < 3 {
			continue
		}
		for name, id := range d.ids {
			f[2] = strings.ReplaceAll(f[2], "{"+name+"}", id)
		}
		arguments[f[0]] = json.RawMessage(f[2])
		want = append(want, f[0]+" "+f[1])
	}
	return arguments, want
}

func agentDoors(t *testing.T) (d *doors, token string) {
	d = newDoors(t, "", func(c *app.Config) { c.MCP.AllowAdminActions = true })
	_, token = d.pat("owner", map[string]any{"scopes": []string{"namespace.shop", "project.read", "project.reload", "project.regenerate-search",
		"project.backup", "project.snapshot", "user.read", "user.create", "user.update", "user.delete", "org.read", "team.read", "audit.read"}})
	return d, token
}

type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Auth-Token", string(t))
	return http.DefaultTransport.RoundTrip(r)
}

// TestGoSDK: the official Go client connects, lists the tools, and calls each.
func TestGoSDK(t *testing.T) {
	d, token := agentDoors(t)
	arguments, want := agentCalls(d)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: d.url + "/api/v1/mcp", HTTPClient: &http.Client{Transport: withToken(token)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // the server keeps none
	started := session.InitializeResult()
	if started.ProtocolVersion != "2024-11-05" || started.ServerInfo.Name != "svc-server-mcp" {
		t.Errorf("%+v", started)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range list.Tools {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: arguments[tool.Name]})
		wire, refused := errors.AsType[*jsonrpc.Error](err)
		switch {
		case refused:
			got = append(got, fmt.Sprintf("%s %d", tool.Name, wire.Code))
		case err != nil:
			got = append(got, fmt.Sprintf("%s: %v", tool.Name, err))
		default:
			var text struct{ Data json.RawMessage }
			content, _ := res.Content[0].(*mcp.TextContent)
			if err := json.Unmarshal([]byte(content.Text), &text); err != nil || text.Data == nil {
				t.Errorf("%s: %s (%v)", tool.Name, content.Text, err)
			}
			got = append(got, tool.Name+" ok")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestOtherSDKs: the official clients for Python and TypeScript, and the Inspector's command line, do so, too. They are in the directory that
// MCP_CLIENTS names, which make agents fills.
func TestOtherSDKs(t *testing.T) {
	dir := os.Getenv("MCP_CLIENTS")
	if dir == "" {
		t.Skip("MCP_CLIENTS names no directory with clients: make agents makes one")
	}
	d, token := agentDoors(t)
	arguments, want := agentCalls(d)
	calls, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"python":     {filepath.Join(dir, "venv", "bin", "python"), "testdata/agents/client.py"},
		"typescript": {"node", "testdata/agents/client.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], d.url+"/api/v1/mcp", token)...)
			cmd.Stdin, cmd.Env = strings.NewReader(string(calls)), append(os.Environ(), "MCP_CLIENTS="+dir)
			out, err := cmd.CombinedOutput()
			if diff := cmp.Diff(append([]string{"2024-11-05 36"}, want...), strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
	t.Run("inspector", func(t *testing.T) {
		inspect := func(more ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", ".bin", "mcp-inspector"), append([]string{
				"--cli", d.url + "/api/v1/mcp", "--transport", "http", "--header", "X-Auth-Token: " + token, "--method",
			}, more...)...)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := inspect("tools/list"); err != nil || strings.Count(out, `"inputSchema"`) != 36 {
			t.Errorf("%v: %s", err, out)
		}
		for _, line := range want {
			tool, want, _ := strings.Cut(line, " ")
			var values map[string]any
			if err := json.Unmarshal(arguments[tool], &values); err != nil {
				t.Fatal(err)
			}
			more := []string{"tools/call", "--tool-name", tool}
			for name, value := range values {
				text, ok := value.(string)
				if !ok {
					raw, err := json.Marshal(value)
					if err != nil {
						t.Fatal(err)
					}
					text = string(raw)
				}
				more = append(more, "--tool-arg", name+"="+text)
			}
			out, err := inspect(more...)
			if ok := err == nil && strings.Contains(out, `{\"data\":`); ok != (want == "ok") {
				t.Errorf("%s: %v %s", tool, err, out)
			}
		}
	})
}
