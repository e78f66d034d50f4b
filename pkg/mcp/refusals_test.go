package mcp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/mcp"
)

func sorted(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }

// TestMessages holds what messages are answered with, up to the tools.
func TestMessages(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":"a<b","method":"ping","params":null}`, `{"jsonrpc":"2.0","id":"a<b","result":{}}`},
		{`{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}`, `{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}`},
		{` {"id":-1.5,"method":"ping","jsonrpc":"2.0"} `, `{"jsonrpc":"2.0","id":-1.5,"result":{}}`},
		// Without an id there is no answer, whatever it asks.
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"document_delete","arguments":{"namespace":"blog","collection":"articles","filter":{}}}}`, ``},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
		{`{"jsonrpc":"2.0","id":1,"error":{}}`, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"Tools/list"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Documents_list"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown tool"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown tool"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"projects_list"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown tool"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params","data":{"detail":"params must be an object"}}}`},
		// S21: names are told apart by case, and none is there twice.
		{`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request","data":{"detail":"method must be a string"}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":{"detail":"a name is there twice in one object"}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","id":2}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":{"detail":"a name is there twice in one object"}}}`},
		{`{"jsonrpc":"2.0","ID":1,"method":"ping"}`, ``},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request","data":{"detail":"jsonrpc must be \"2.0\""}}}`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request","data":{"detail":"id must be a string or a number"}}}`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request","data":{"detail":"id must be a string or a number"}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request","data":{"detail":"method must be a string"}}}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request","data":{"detail":"send one JSON object, and not several in a list"}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":{"detail":"the message is not JSON"}}}`},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":{"detail":"the message is not JSON"}}}`},
		{``, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":{"detail":"the message is not JSON"}}}`},
		{`7`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request","data":{"detail":"send one JSON object, and not several in a list"}}}`},
	} {
		d := newDoor(mcp.Options{}, everything...)
		if diff := cmp.Diff(tt.want, d.send(t, tt.message)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.message, diff)
		}
		if len(d.asked) > 0 {
			t.Errorf("%s: REST was asked %v", tt.message, d.asked)
		}
	}
}

// TestInitialize: whatever revision a client asks for, it is told the one that is fixed.
func TestInitialize(t *testing.T) {
	d := newDoor(mcp.Options{})
	got := d.send(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	for _, want := range []string{`"id":0`, `"protocolVersion":"2024-11-05"`, `"serverInfo":{"name":"svc-server-mcp","version":"v1"}`, `"capabilities":{"tools":{}}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestRefusals holds the numbers and texts of the interface's table of errors that this door gives by itself. What REST says, TestDoorsAlike
// of pkg/app has.
func TestRefusals(t *testing.T) {
	const blog = `"namespace": "blog", "collection": "articles"`
	admin := mcp.Options{AllowAdminActions: true}
	for _, tt := range []struct {
		tool, arguments string
		options         mcp.Options
		want            string
	}{
		{"document_get", `{` + blog + `}`, mcp.Options{}, `-32602 invalid params (id is required)`},
		{"document_get", `{` + blog + `, "Id": "1"}`, mcp.Options{}, `-32602 invalid params: unknown argument: Id; document_get takes *`}, // which says more than that id is required
		{"documents_list", `{` + blog + `, "` + strings.Repeat("x", 99) + `": 1}`, mcp.Options{}, `-32602 invalid params: unknown argument: ` + strings.Repeat("x", 60) + `…; *`},
		{"documents_list", `{` + blog + `, "filter": "{\"a\":"}`, mcp.Options{}, `-32602 invalid params: filter must be a JSON object*`},
		{"documents_list", `{` + blog + `, "Filter": {}}`, mcp.Options{}, `-32602 invalid params: unknown argument: Filter; documents_list takes *`},
		{"documents_list", `{` + blog + `, "limit": -1}`, mcp.Options{}, `-32602 invalid params: limit must be a whole number, 0 or more*`},
		{"documents_list", `{` + blog + `, "limit": 1.5}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "limit": {"$gt": 0}}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "filter": [1]}`, mcp.Options{}, `-32602 invalid params: filter must be a JSON object*`},
		{"documents_list", `{` + blog + `, "filter": "a = 1"}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "filter": "", "limit": ""}`, mcp.Options{}, `-32602 *`},
		{"document_delete", `{` + blog + `, "id": "1", "ifMatch": 0}`, mcp.Options{}, `-32602 invalid params: ifMatch must be the _rev that a read of the record gave*`},
		{"documents_list", `{` + blog + `, "count": 1}`, mcp.Options{}, `-32602 invalid params: count must be true or false*`},
		{"documents_list", `{` + blog + `, "aggregate": {}}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "sort": 1}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "q": 1}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "namespace": "shop"}`, mcp.Options{}, `-32602 *twice*`},
		{"documents_list", `[]`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{"namespace": "blog"}`, mcp.Options{}, `400 namespace and collection are required`},
		{"documents_list", `{"collection": "articles"}`, mcp.Options{}, `400 namespace and collection are required`},
		{"documents_list", `{"namespace": "blog", "col": "articles"}`, mcp.Options{}, `400 namespace and collection are required`},
		{"documents_list", `{"namespace": "", "collection": "articles"}`, mcp.Options{}, `400 namespace and collection are required`},
		{"queue_status", `{}`, mcp.Options{}, `400 namespace and collection are required`},
		{"collection_describe", `{}`, mcp.Options{}, `400 namespace and collection are required`},
		{"documents_facet", `{` + blog + `}`, mcp.Options{}, `400 missing required parameter: facet`},
		{"document_create", `{` + blog + `}`, mcp.Options{}, `-32602 invalid params: give data*`},
		{"document_create", `{` + blog + `, "data": {}, "items": []}`, mcp.Options{}, `-32602 *`},
		{"document_update", `{` + blog + `, "id": "1"}`, mcp.Options{}, `-32602 *data is required*`},
		{"document_update", `{` + blog + `, "id": "1", "filter": {}, "data": {}}`, mcp.Options{}, `-32602 *`},
		{"document_update", `{` + blog + `, "id": "1", "maxAffected": 0, "data": {}}`, mcp.Options{}, `422 *`},
		{"document_update", `{` + blog + `, "id": "1", "maxAffected": -0, "data": {}}`, mcp.Options{}, `422 *`},
		{"document_delete", `{` + blog + `, "id": "1", "maxAffected": "00"}`, mcp.Options{}, `422 *`},
		{"document_delete", `{` + blog + `, "id": "1", "maxAffected": "\u0030"}`, mcp.Options{}, `422 *`},
		{"documents_list", `{` + blog + `, "limit": 1e1}`, mcp.Options{}, `-32602 *`},
		{"documents_list", `{` + blog + `, "limit": 99999999999999999999}`, mcp.Options{}, `-32602 *`},
		{"document_update", `{` + blog + `, "id": "", "data": {}}`, mcp.Options{}, `-32602 *`},
		{"document_delete", `{` + blog + `, "id": "1", "maxAffected": "0"}`, mcp.Options{}, `422 *`},
		{"document_delete", `{` + blog + `, "id": "1", "filter": {}}`, mcp.Options{}, `-32602 *`},
		{"action_call", `{"namespace": "blog", "action": "a", "method": "put"}`, mcp.Options{}, `400 action method must be get or post`},
		{"action_call", `{"namespace": "blog", "action": "a", "method": ""}`, mcp.Options{}, `400 action method must be get or post`},
		{"action_call", `{"namespace": "blog"}`, mcp.Options{}, `-32602 invalid params (action is required)`},
		{"collections_list", `{}`, mcp.Options{}, `-32602 invalid params (namespace is required)`},
		{"project_get", `{}`, mcp.Options{}, `400 id is required`},
		{"user_get", `{}`, mcp.Options{}, `400 id is required`},
		{"user_get", `{"id": ""}`, mcp.Options{}, `400 id is required`},
		{"user_get", `{"id": 7}`, mcp.Options{}, `-32602 invalid params: id must be a string*`},
		{"org_get", `{"id": null}`, mcp.Options{}, `400 id is required`},
		{"team_get", `{"ID": "1"}`, mcp.Options{}, `400 id is required`},
		{"system_meta_get", `{"model": "token"}`, mcp.Options{}, `-32602 invalid params: model must be one of user, project*`},
		{"file_read", `{` + blog + `, "id": "1", "field": "f"}`, mcp.Options{}, `400 *GET /api/v1/_/<namespace>/<collection>/<id>/<field>/<path>*`},
		{"file_read", `{}`, mcp.Options{}, `400 *GET*`},
		{"asset_read", `{"namespace": "blog", "name": "a", "path": "b"}`, mcp.Options{}, `400 *GET /api/v1/_/<namespace>/_/assets/<name>/<path>*`},
		{"asset_read", `{}`, mcp.Options{}, `400 *GET*`},
		{"user_create", `{"data": {}}`, mcp.Options{}, `400 user write via MCP is REST-only (use POST /api/v1/user)`},
		{"user_update", `{}`, mcp.Options{}, `400 user write via MCP is REST-only (use PUT /api/v1/user/<id>)`},
		{"user_delete", `{"id": "1"}`, mcp.Options{}, `400 user write via MCP is REST-only (use DELETE /api/v1/user/<id>)`},
		{"project_reload", `{"namespace": "blog"}`, mcp.Options{}, `403 admin actions disabled`},
		{"regenerate_search", `{}`, mcp.Options{}, `403 admin actions disabled`},
		{"backup_create", `{}`, mcp.Options{}, `403 admin actions disabled`},
		{"snapshots_list", `{}`, mcp.Options{}, `403 admin actions disabled`},
		{"project_reload", `{"namespace": "blog"}`, admin, `400 admin tool is REST-only (use POST /api/v1/_/<namespace>/_/admin/reload)`},
		{"regenerate_search", `{"namespace": "blog"}`, admin, `400 admin tool is REST-only (use POST*`},
		{"backup_create", `{}`, admin, `400 admin tool is REST-only (use POST*`},
		{"snapshots_list", `{"x": 1}`, admin, `400 admin tool is REST-only (use GET*`},
		{"documents_list", `{` + blog + `, "extra": {"n": "` + strings.Repeat("x", 64<<10) + `"}}`, mcp.Options{}, `-32602 invalid params: extra is longer than 64 KiB*`},
		{"action_call", `{"namespace": "blog", "action": "a", "method": "get", "data": {"n": "` + strings.Repeat("x", 64<<10) + `"}}`, mcp.Options{}, `-32602 *`},
		{"audit_query", `{"filter": {"op": "` + strings.Repeat("x", 64<<10) + `"}}`, mcp.Options{}, `-32602 *`},
		{"audit_query", `{"filter": "{"}`, mcp.Options{}, `-32602 *`},
		{"audit_query", `{"filter": "{\"namespace\": {\"$in\": [\"blog\"]}}"}`, mcp.Options{}, `-32602 *`},
	} {
		d := newDoor(tt.options, everything...)
		got := refused(t, d.call(t, tt.tool, tt.arguments))
		if !matches(tt.want, got) {
			t.Errorf("%s %s: %s\nwant %s", tt.tool, tt.arguments, got, tt.want)
		}
		if len(d.asked) > 0 {
			t.Errorf("%s %s: REST was asked", tt.tool, tt.arguments)
		}
	}
}

// refused gives the number and the texts of a refusal.
func refused(t testing.TB, answer string) string {
	t.Helper()
	var a struct {
		Error *struct {
			Code    json.Number
			Message string
			Data    struct{ Detail, Right string }
		}
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Error == nil {
		return answer
	}
	out := a.Error.Code.String() + " " + a.Error.Message
	if d := a.Error.Data.Detail; d != "" && !strings.HasSuffix(a.Error.Message, d) {
		out += " (" + d + ")"
	}
	if a.Error.Data.Right != "" {
		out += " [" + a.Error.Data.Right + "]"
	}
	return out
}

// matches holds a text against one of several patterns, in which * is any text.
func matches(patterns, got string) bool {
	for pattern := range strings.SplitSeq(patterns, "|") {
		rest, ok := got, true
		parts := strings.Split(pattern, "*")
		for i, part := range parts {
			at := strings.Index(rest, part)
			if at < 0 || i == 0 && at > 0 {
				ok = false
				break
			}
			rest = rest[at+len(part):]
		}
		if ok && (rest == "" || parts[len(parts)-1] == "") {
			return true
		}
	}
	return false
}

// TestS43ScopesOfTools: without the scope of the interface's table, each tool is refused, whatever REST would say; with it, it is REST that
// decides.
func TestS43ScopesOfTools(t *testing.T) {
	const blog = `{"namespace": "blog", "collection": "articles", `
	read, project := "namespace.blog.articles.read", "project.read"
	for _, tt := range []struct {
		tool, arguments string
		rights          []string
	}{
		{"documents_list", blog + `"limit": 1}`, []string{read}},
		{"document_get", blog + `"id": "1"}`, []string{read}},
		{"documents_count", blog + `"q": "x"}`, []string{read}},
		{"documents_facet", blog + `"fields": "a"}`, []string{read}},
		{"queue_status", `{"namespace": "blog", "collection": "articles"}`, []string{read, project}},
		{"document_create", blog + `"data": {}}`, []string{"namespace.blog.articles.create"}},
		{"document_update", blog + `"id": "1", "data": {}}`, []string{"namespace.blog.articles.update"}},
		{"document_delete", blog + `"id": "1"}`, []string{"namespace.blog.articles.delete"}},
		{"file_read", blog + `"id": "1", "field": "f"}`, []string{read}},
		{"action_call", `{"namespace": "blog", "action": "a"}`, []string{"namespace.blog._actions.a.create"}},
		{"action_call", `{"namespace": "blog", "action": "a", "method": "get"}`, []string{"namespace.blog._actions.a.read"}},
		{"projects_list", `{}`, []string{project}},
		{"project_get", `{"id": "1"}`, []string{project}},
		{"collections_list", `{"namespace": "blog"}`, []string{project}},
		{"collection_describe", `{"namespace": "blog", "collection": "articles"}`, []string{read, project}},
		{"actions_list", `{"namespace": "blog"}`, nil},
		{"action_describe", `{"namespace": "blog", "action": "a"}`, []string{"namespace.blog._actions.a.read"}},
		{"jobs_list", `{"namespace": "blog"}`, []string{project}},
		{"openapi_get", `{"namespace": "blog"}`, nil},
		{"system_meta_get", `{}`, nil},
		{"agent_guide_get", `{"namespace": "blog"}`, []string{project}},
		{"agent_guide_get", `{"namespace": "blog", "collection": "articles"}`, []string{read}},
		{"agent_guide_get", `{"namespace": "blog", "action": "a"}`, []string{"namespace.blog._actions.a.read"}},
		{"assets_list", `{"namespace": "blog"}`, []string{project}},
		{"asset_read", `{"namespace": "blog", "name": "a", "path": "b"}`, []string{project}},
		{"users_list", `{}`, []string{"user.read"}},
		{"user_get", `{"id": "1"}`, []string{"user.read"}},
		{"user_create", `{}`, []string{"user.create"}},
		{"user_update", `{}`, []string{"user.update"}},
		{"user_delete", `{"id": "1"}`, []string{"user.delete"}},
		{"orgs_list", `{}`, []string{"org.read"}},
		{"org_get", `{"id": "1"}`, []string{"org.read"}},
		{"teams_list", `{}`, []string{"team.read"}},
		{"team_get", `{"id": "1"}`, []string{"team.read"}},
		{"audit_query", `{}`, []string{"audit.read"}},
		{"project_reload", `{"namespace": "blog"}`, []string{"project.reload"}},
		{"regenerate_search", `{"namespace": "blog"}`, []string{"project.regenerate-search"}},
		{"backup_create", `{"namespace": "blog"}`, []string{"project.backup"}},
		{"snapshots_list", `{"namespace": "blog"}`, []string{"project.snapshot"}},
	} {
		for _, status := range []int{200, 403} {
			d := newDoor(mcp.Options{AllowAdminActions: true}, tt.rights...)
			d.response.Status = status
			if status == 403 {
				d.response.Body = []byte(`{"detail": "permission denied", "code": "permission_denied"}`)
			}
			if got := refused(t, d.call(t, tt.tool, tt.arguments)); strings.HasPrefix(got, "-32003") {
				t.Errorf("%s with %v: %s", tt.tool, tt.rights, got)
			} else if status == 403 && len(d.asked) == 1 && !strings.HasPrefix(got, "403 permission denied") {
				t.Errorf("%s: REST said 403, and the tool %s", tt.tool, got)
			}
			for _, without := range tt.rights {
				others := slices.DeleteFunc(slices.Concat(everything, []string{"namespace.shop"}, tt.rights), func(s string) bool { return s == without || s == "namespace.blog" })
				d := newDoor(mcp.Options{AllowAdminActions: true}, others...)
				d.response.Status = status
				if got := refused(t, d.call(t, tt.tool, tt.arguments)); !strings.HasPrefix(got, "-32003 permission denied") || !strings.HasSuffix(got, "["+without+"]") {
					t.Errorf("%s without %s: %s", tt.tool, without, got)
				}
				d = newDoor(mcp.Options{AllowAdminActions: true}, everything...) // the owner has lost it
				d.principal.Scopes, d.response.Status = others, status
				if got := refused(t, d.call(t, tt.tool, tt.arguments)); !strings.HasPrefix(got, "-32003") {
					t.Errorf("%s whose owner has not %s: %s", tt.tool, without, got)
				}
			}
		}
	}
}

// TestPointersOfNothing: who asks where to do what, and names nothing that rights could be asked for, is told.
func TestPointersOfNothing(t *testing.T) {
	for _, arguments := range []string{`{}`, `{"namespace": "blog"}`, `{"collection": "articles"}`, `[]`} {
		d := newDoor(mcp.Options{})
		if got := refused(t, d.call(t, "file_read", arguments)); !strings.HasPrefix(got, "400 file_read is REST-only") {
			t.Errorf("%s: %s", arguments, got)
		}
	}
}

// TestAdminToolsAreHidden: S43, unless the setting shows them.
func TestAdminToolsAreHidden(t *testing.T) {
	for _, tt := range []struct {
		shown bool
		want  int
	}{{false, 32}, {true, 36}} {
		d := newDoor(mcp.Options{AllowAdminActions: tt.shown})
		var a struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(d.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)), &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Result.Tools) != tt.want {
			t.Errorf("%d tools are listed, want %d", len(a.Result.Tools), tt.want)
		}
	}
}
