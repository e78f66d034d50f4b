package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

// rpc sends a message to the endpoint for agents.
func (s *service) rpc(message string, options ...option) answer {
	s.t.Helper()
	return s.do("POST", "/api/v1/mcp", append([]option{text(message)}, options...)...)
}

// tool calls a tool. It gives what is under data, or the number and text of the refusal.
func (s *service) tool(name, arguments string, options ...option) (data, refusal string) {
	s.t.Helper()
	res := s.rpc(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`, options...)
	var a struct {
		ID     string
		Result struct{ Content []struct{ Type, Text string } }
		Error  *struct {
			Code    int
			Message string
			Data    struct {
				Status int
				Right  string
			}
		}
	}
	if err := json.Unmarshal([]byte(res.body), &a); err != nil || a.ID != "x" || res.status != http.StatusOK && a.Error == nil {
		s.t.Fatalf("%s: %d %s (%v)", name, res.status, res.body, err)
	}
	if a.Error != nil {
		return "", strings.TrimSpace(fmt.Sprintf("%d %s", a.Error.Code, a.Error.Message))
	}
	var text struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(a.Result.Content[0].Text), &text); err != nil {
		s.t.Fatal(err)
	}
	return string(text.Data), ""
}

// TestMCPTransport holds what the endpoint says as a matter of HTTP: S41 and the rules of section 10 of the decisions.
func TestMCPTransport(t *testing.T) {
	d := newDoors(t, "", func(c *app.Config) { c.AdminHosts = []string{"admin.example.com"} })
	pat := d.callers["patReads"]
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	const pong = `{"jsonrpc":"2.0","id":7,"result":{}}`
	address := strings.TrimPrefix(d.url, "http://")
	foreign := `"message":"a page of another site may not use this endpoint"`
	for _, tt := range []struct {
		name, method string
		options      []option
		status       int
		want         string
	}{
		{"a call", "POST", []option{pat, text(ping)}, 200, pong},
		{"as a bearer", "POST", []option{d.callers["patWrites"], text(ping)}, 200, pong},
		{"a notification", "POST", []option{pat, text(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}, 202, ""},
		{"newer revisions", "POST", []option{pat, header("MCP-Protocol-Version", "2026-07-28"), header("Mcp-Session-Id", "x"), text(ping)}, 200, pong},
		{"what SDKs accept", "POST", []option{pat, header("Accept", "application/json, text/event-stream"), text(ping)}, 200, pong},
		{"no token", "POST", []option{text(ping)}, 403, `{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"a personal access token is required: *`},
		{"no token, a long message", "POST", []option{text(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 100<<10) + `"}}`)}, 403, `{"jsonrpc":"2.0","id":null,"error":{"code":403,*`},
		{"a session in the token's place", "POST", []option{d.callers["boss"], text(ping)}, 403, `*a personal access token is required*`},
		{"a cookie", "POST", []option{d.callers["cookie"], text(ping)}, 403, `*a personal access token is required*`},
		{"a token in the query", "POST", []option{query("token=svc_pat_1_2"), text(ping)}, 403, `*a personal access token is required*`},
		{"no media type", "POST", []option{pat, text(ping), header("Content-Type", "text/plain")}, 415, `{"jsonrpc":"2.0","id":7,"error":{"code":415,*`},
		{"too large", "POST", []option{pat, text(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`)}, 413, `{"jsonrpc":"2.0","id":null,"error":{"code":413,*`},
		{"no JSON", "POST", []option{pat, text("{")}, 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"*`},
		{"a parameter", "POST", []option{pat, query("filter={}"), text(ping)}, 400, `*unknown query parameter: filter*`},
		{"a probe", "GET", []option{pat}, 200, `{"protocolVersion":"2024-11-05","serverInfo":{"name":"svc-server-mcp","version":"v1"},"tools":[{"name":"documents_list",*`},
		{"a probe that takes anything", "GET", []option{pat, header("Accept", "text/event-stream, */*")}, 200, `{"protocolVersion"*`},
		{"a probe without a token", "GET", nil, 403, `{"jsonrpc":"2.0","id":null,"error":{"code":403,"message":"a personal access token is required*`},
		{"a listener", "GET", []option{pat, header("Accept", "text/event-stream")}, 405, `{"jsonrpc":"2.0","id":null,"error":{"code":405,*`},
		{"the end of a session", "DELETE", []option{pat}, 405, `*this path does not take that method*`},

		{"S41 a page of ours", "POST", []option{pat, header("Origin", d.url), text(ping)}, 200, pong},
		{"S41 a page of the admin front", "POST", []option{pat, host("admin.example.com"), header("Origin", "https://admin.example.com"), text(ping)}, 200, pong},
		{"S41 another site", "POST", []option{pat, header("Origin", "https://evil.example"), text(ping)}, 403, "*" + foreign + "*"},
		{"S41 two pages", "POST", []option{pat, header("Origin", d.url), func(r *http.Request) { r.Header.Add("Origin", "https://evil.example") }, text(ping)}, 403, "*" + foreign + "*"},
		{"S41 a file", "POST", []option{pat, header("Origin", "null"), text(ping)}, 403, "*" + foreign + "*"},
		{"S41 another port", "POST", []option{pat, header("Origin", "http://127.0.0.1:1"), text(ping)}, 403, "*" + foreign + "*"},
		{"S41 a name that leads here", "POST", []option{pat, host("rebound.example"), header("Origin", "http://rebound.example"), text(ping)}, 403, "*" + foreign + "*"},
		{"S41 a name like ours", "POST", []option{pat, host("localhost.evil.example"), header("Origin", "http://localhost.evil.example"), text(ping)}, 403, "*" + foreign + "*"},
		{"S41 a probe of another site", "GET", []option{pat, header("Origin", "https://evil.example")}, 403, "*" + foreign + "*"},
		{"S41 localhost", "POST", []option{pat, host("localhost:1"), header("Origin", "http://localhost:1"), text(ping)}, 200, pong},
	} {
		res := d.do(tt.method, "/api/v1/mcp", tt.options...)
		if res.status != tt.status || !fits(tt.want, res.body) {
			t.Errorf("%s (%s): %d %.300s\nwant %d %s", tt.name, address, res.status, res.body, tt.status, tt.want)
		}
		if tt.status == 405 && !slices.Contains(res.header.Values("Allow"), "GET, POST") && strings.Join(res.header.Values("Allow"), " ") != "GET HEAD POST" {
			t.Errorf("%s: Allow is %q", tt.name, res.header.Values("Allow"))
		}
	}
	// Clients look for a way to log in: there is none, and what says so is JSON.
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/api/v1/mcp", "/register", "/.well-known/openid-configuration"} {
		if res := d.do("GET", path); res.status != 404 || !json.Valid([]byte(res.body)) || len(res.body) < 10 {
			t.Errorf("%s: %d %q", path, res.status, res.body)
		}
	}
}

// fits holds a text against a pattern in which * is anything.
func fits(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		at := strings.Index(s, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return s == "" || parts[len(parts)-1] == ""
}

// TestMCPDisabled: the route stays, and says so to whoever asks.
func TestMCPDisabled(t *testing.T) {
	d := newDoors(t, "", func(c *app.Config) { c.MCP.Enabled = false })
	for _, show := range []option{noop, d.callers["patReads"], d.callers["boss"]} {
		res := d.rpc(`{"jsonrpc":"2.0","id":7,"method":"ping"}`, show)
		if res.status != 404 || res.body != `{"jsonrpc":"2.0","id":7,"error":{"code":404,"message":"mcp disabled","data":{"status":404}}}` {
			t.Errorf("%d %s", res.status, res.body)
		}
		if res := d.do("GET", "/api/v1/mcp", show); res.status != 404 || !strings.Contains(res.body, "mcp disabled") {
			t.Errorf("%d %s", res.status, res.body)
		}
	}
}

// doorsAlike are calls of tools, and the requests that they stand for: doorRows of the one door.
const doorsAlike = `
documents_list      {"namespace": "NS", "collection": "items"}                                              GET    /_/NS/items
documents_list      {"namespace": "NS", "collection": "items", "filter": {"n": {"$gte": 0}}, "sort": "-n"}  GET    /_/NS/items?filter={"n":{"$gte":0}}&sort=-n
documents_list      {"namespace": "NS", "collection": "items", "filter": {"nope": 1}}                       GET    /_/NS/items?filter={"nope":1}
documents_list      {"namespace": "NS", "collection": "items", "filter": {"$where": "1"}}                   GET    /_/NS/items?filter={"$where":"1"}
documents_list      {"namespace": "NS", "collection": "items", "limit": 1, "count": true, "select": "n"}    GET    /_/NS/items?limit=1&count=true&select=n
documents_list      {"namespace": "NS", "collection": "items", "aggregate": [{"$count": "n"}]}              GET    /_/NS/items?aggregate=[{"$count":"n"}]
documents_list      {"namespace": "NS", "collection": "items", "q": "A", "qName": "main"}                   GET    /_/NS/items?q=A&qName=main
documents_list      {"namespace": "NS", "collection": "items", "q": "A", "qName": "none"}                   GET    /_/NS/items?q=A&qName=none
documents_list      {"namespace": "NS", "collection": "nope"}                                               GET    /_/NS/nope
documents_list      {"namespace": "nope", "collection": "items"}                                            GET    /_/nope/items
document_get        {"namespace": "NS", "collection": "items", "id": "{id}"}                                GET    /_/NS/items/{id}
document_get        {"namespace": "NS", "collection": "items", "id": "{id}", "select": "title"}             GET    /_/NS/items/{id}?select=title
document_get        {"namespace": "NS", "collection": "items", "id": "650102030405060708090a0b"}            GET    /_/NS/items/650102030405060708090a0b
document_get        {"namespace": "NS", "collection": "items", "id": "zz"}                                  GET    /_/NS/items/zz
documents_count     {"namespace": "NS", "collection": "items", "filter": {"n": 1}}                          GET    /_/NS/items/_count?filter={"n":1}
documents_facet     {"namespace": "NS", "collection": "items", "fields": "title"}                           GET    /_/NS/items/_facet?fields=title
queue_status        {"namespace": "NS", "collection": "items"}                                              GET    /_/NS/items/_queue
queue_status        {"namespace": "NS", "collection": "nope"}                                               GET    /_/NS/nope/_queue
document_create     {"namespace": "NS", "collection": "items", "data": {"title": "N", "n": 1}}              POST   /_/NS/items  {"title": "N", "n": 1}
document_create     {"namespace": "NS", "collection": "items", "data": {"n": "x"}}                          POST   /_/NS/items  {"n": "x"}
document_create     {"namespace": "NS", "collection": "items", "data": {"_rev": 1}}                         POST   /_/NS/items  {"_rev": 1}
document_create     {"namespace": "NS", "collection": "items", "data": {"n": 1}, "dryRun": true}            POST   /_/NS/items?dryRun=true  {"n": 1}
document_create     {"namespace": "NS", "collection": "items", "items": [{"n": 1}, {"n": "x"}]}             POST   /_/NS/items?bulk=true  {"items": [{"n": 1}, {"n": "x"}]}
document_update     {"namespace": "NS", "collection": "items", "id": "{id}", "data": {"n": 1}}              PUT    /_/NS/items/{id}  {"n": 1}
document_update     {"namespace": "NS", "collection": "items", "id": "{id}", "data": {"n": 1}, "ifMatch": 999}  PUT /_/NS/items/{id}  {"n": 1}  999
document_update     {"namespace": "NS", "collection": "items", "filter": {"title": "none"}, "data": {"n": 1}}   PUT /_/NS/items?filter={"title":"none"}  {"n": 1}
document_update     {"namespace": "NS", "collection": "items", "filter": {}, "data": {"n": 1}, "maxAffected": 0}  PUT /_/NS/items?filter={}&maxAffected=0  {"n": 1}
document_update     {"namespace": "NS", "collection": "items", "data": {"n": 1}}                            PUT    /_/NS/items  {"n": 1}
document_delete     {"namespace": "NS", "collection": "items", "id": "650102030405060708090a0b"}            DELETE /_/NS/items/650102030405060708090a0b
document_delete     {"namespace": "NS", "collection": "items", "filter": {"title": "none"}}                 DELETE /_/NS/items?filter={"title":"none"}
document_delete     {"namespace": "NS", "collection": "items"}                                              DELETE /_/NS/items
action_call         {"namespace": "NS", "action": "act", "method": "get"}                                   GET    /_/NS/_/actions/act
action_call         {"namespace": "NS", "action": "act"}                                                    POST   /_/NS/_/actions/act
action_call         {"namespace": "NS", "action": "act", "data": {}}                                        POST   /_/NS/_/actions/act  {}
action_call         {"namespace": "NS", "action": "nope"}                                                   POST   /_/NS/_/actions/nope
projects_list       {}                                                                                      GET    /project
project_get         {"id": "{project}"}                                                                     GET    /project/{project}
project_get         {"id": "{project2}"}                                                                    GET    /project/{project2}
collections_list    {"namespace": "NS"}                                                                     GET    /_/NS/_/collections
collection_describe {"namespace": "NS", "collection": "items"}                                              GET    /_/NS/_/collections/items
collection_describe {"namespace": "NS", "collection": "nope"}                                               GET    /_/NS/_/collections/nope
actions_list        {"namespace": "NS"}                                                                     GET    /_/NS/_/actions
action_describe     {"namespace": "NS", "action": "act"}                                                    GET    /_/NS/_/actions/act/describe
action_describe     {"namespace": "NS", "action": "nope"}                                                   GET    /_/NS/_/actions/nope/describe
jobs_list           {"namespace": "NS"}                                                                     GET    /_/NS/_/jobs
openapi_get         {"namespace": "NS"}                                                                     GET    /_openapi/NS
system_meta_get     {"model": "user"}                                                                       GET    /_meta/user
agent_guide_get     {"namespace": "NS"}                                                                     GET    /_/NS/_/agent
agent_guide_get     {"namespace": "NS", "collection": "items"}                                              GET    /_/NS/_/agent?collection=items
agent_guide_get     {"namespace": "NS", "action": "act"}                                                    GET    /_/NS/_/agent?action=act
assets_list         {"namespace": "NS"}                                                                     GET    /_/NS/_/assets
users_list          {"limit": "2", "filter": "{\"username\": \"boss\"}"}                                    GET    /user?limit=2&filter={"username":"boss"}
user_get            {"id": "{user}"}                                                                        GET    /user/{user}
user_get            {"id": "{user2}"}                                                                       GET    /user/{user2}
orgs_list           {}                                                                                      GET    /org
org_get             {"id": "{org2}"}                                                                        GET    /org/{org2}
teams_list          {}                                                                                      GET    /team
team_get            {"id": "{team}"}                                                                        GET    /team/{team}
audit_query         {"filter": "{\"namespace\": \"NS\"}"}                                                   GET    /_/NS/_/audit?limit=100
`

// TestDoorsAlike: for each personal access token of the door matrix, and both projects, a tool answers what REST answers: the same data, or the
// same refusal. What REST refuses, no tool gives; where a tool takes more rights than REST, it is refused with their number.
func TestDoorsAlike(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { doorsAreAlike(t, newDoors(t, "", nil)) })
	t.Run("mongodb", func(t *testing.T) { doorsAreAlike(t, newDoors(t, emptyMongo(t, "svc_shop", "svc_away"), nil)) })
}

func doorsAreAlike(t *testing.T, d *doors) {
	more := map[string]bool{"queue_status": true, "collection_describe": true, "action_describe": true, "agent_guide_get": true}
	answered := map[string]int{}
	for line := range strings.Lines(doorsAlike) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		for _, namespace := range []string{"shop", "away"} {
			row := strings.ReplaceAll(line, "NS", namespace)
			for name, id := range d.ids {
				row = strings.ReplaceAll(row, "{"+name+"}", id)
			}
			tool, rest, _ := strings.Cut(row, " ")
			arguments, rest, ok := cutJSON(strings.TrimSpace(rest))
			f := strings.Fields(rest)
			if !ok || len(f) < 2 {
				t.Fatalf("no row: %s", row)
			}
			path, params, _ := strings.Cut(f[1], "?")
			body, _, _ := strings.Cut(strings.TrimSpace(strings.Join(f[2:], " ")), "} 9")
			revised := strings.HasSuffix(rest, "999")
			if revised {
				body += "}"
			}
			for _, caller := range doorColumns {
				if !strings.HasPrefix(caller, "pat") {
					continue
				}
				show := []option{d.callers[caller], query(asQuery(params))}
				if body != "" {
					show = append(show, text(body))
				}
				if revised {
					show = append(show, header("If-Match", `"999"`))
				}
				res := d.do(f[0], "/api/v1"+path, show...)
				data, refusal := d.tool(tool, arguments, d.callers[caller])
				answered[tool] += len(data)
				over := strings.HasSuffix(caller, "Expired") || strings.HasSuffix(caller, "Revoked") || strings.HasSuffix(caller, "Inactive")
				switch {
				case over:
					if !strings.HasPrefix(refusal, "403 a personal access token is required") {
						t.Errorf("%s %s by %s: %s", tool, arguments, caller, refusal)
					}
				case strings.HasPrefix(refusal, "-32003 permission denied") && (res.status == 403 || res.status < 300 && more[tool]):
				case res.status >= 300:
					want := fmt.Sprintf("%d %s", res.status, res.field("detail"))
					if refusal != want {
						t.Errorf("%s %s by %s: %q, and REST says %q", tool, arguments, caller, refusal+data, want)
					}
				default:
					if diff := cmp.Diff(lastingPart(t, res.body), lastingPart(t, data)); diff != "" || refusal != "" {
						t.Errorf("%s %s by %s: %s (-REST +MCP)\n%s", tool, arguments, caller, refusal, diff)
					}
				}
			}
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(doorsAlike), "\n") {
		if tool, _, _ := strings.Cut(line, " "); answered[tool] == 0 {
			t.Errorf("%s was never answered: the comparison is of nothing", tool)
		}
	}
}

// cutJSON cuts an object from the front of a text.
func cutJSON(s string) (object, rest string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return "", s, false
	}
	return string(raw), s[dec.InputOffset():], true
}

// asQuery escapes parameters that are written as they are meant.
func asQuery(params string) string {
	q := url.Values{}
	for pair := range strings.SplitSeq(params, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// lastingPart is an answer without what differs from one time to the next, and the order of names.
func lastingPart(t *testing.T, body string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return body
	}
	made := !strings.Contains(body, `"items":[{"id"`) && strings.Contains(body, `"title":"N"`) || strings.Contains(body, `"succeeded"`)
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"updatedAt", "_rev", "requestId", "oldestAgeSeconds", "next", "lastUsedAt", "ids"} {
				delete(v, name)
			}
			if made {
				delete(v, "id")
				delete(v, "createdAt")
			}
			for _, item := range v {
				strip(item)
			}
		case []any:
			for _, item := range v {
				strip(item)
			}
		}
	}
	strip(v)
	return v
}

// TestHooksSeeTheSame: what hooks are told of a call of a tool is what they are told of the request that it stands for.
func TestHooksSeeTheSame(t *testing.T) {
	s := run(t, nil)
	const hook = `module.exports = (ctx) => { db.collection("seen").insert({what: ctx.method + " " + ctx.stage + " " + JSON.stringify(Object.entries(ctx.query).sort()) + " " + (ctx.user && ctx.user.name) + " " + JSON.stringify(ctx.data || null) + " " + (ctx.headers["user-agent"] || "") + " " + Object.keys(ctx.headers).filter(h => !/^(content-|accept|host|connection|x-request)/.test(h)).sort()}) }`
	s.file("hooked", "note.js", hook)
	stage := func(names ...string) string {
		var out []string
		for _, name := range names {
			out = append(out, name+": {type: javascript, file: note.js}")
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	s.register("hooked", `
namespace: hooked
collections:
  - name: items
    fields: [{name: title, type: string}, {name: n, type: number}]
    meta: {query: {preview: {type: boolean}, mode: {enum: [a, b]}}}
    bulk: {maxItems: 9}
    hooks:
      get: `+stage("read", "return")+`
      post: `+stage("bind", "validate", "create", "return", "bulkCreate", "bulkReturn")+`
      put: `+stage("bind", "validate", "update", "return", "bulkUpdate", "bulkReturn")+`
      delete: `+stage("delete", "return", "bulkDelete", "bulkReturn")+`
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}}
  - name: seen
    fields: [{name: what, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	s.user("ann", map[string]any{"scopes": []string{"namespace.hooked"}})
	res := s.do("POST", "/api/v1/token", session(s.login("ann")), text(`{"name": "p", "scopes": ["namespace.hooked"]}`))
	res.want(t, http.StatusCreated)
	agent := options(session(res.field("token")), header("User-Agent", "agent/1"))
	seen := func() []string {
		t.Helper()
		var page struct{ Items []struct{ What string } }
		res := s.do("GET", "/api/v1/_/hooked/seen?sort=id&limit=100", admin)
		if err := json.Unmarshal([]byte(res.body), &page); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, item := range page.Items {
			out = append(out, item.What)
		}
		s.do("DELETE", "/api/v1/_/hooked/seen", admin, query("filter="+url.QueryEscape(`{"what":{"$exists":true}}`))).want(t, http.StatusOK)
		return out
	}
	made := s.do("POST", "/api/v1/_/hooked/items", admin, text(`{"title": "x"}`))
	id := made.field("id")
	seen()
	const items = `"namespace": "hooked", "collection": "items"`
	for _, tt := range []struct{ tool, arguments, method, path, body string }{
		{"documents_list", `{` + items + `, "sort": "n", "extra": {"preview": true, "mode": "a"}}`, "GET", "?sort=n&preview=true&mode=a", ""},
		{"document_get", `{` + items + `, "id": "` + id + `"}`, "GET", "/" + id, ""},
		{"document_create", `{` + items + `, "data": {"title": "y", "n": 1}}`, "POST", "", `{"title": "y", "n": 1}`},
		{"document_create", `{` + items + `, "items": [{"title": "z"}]}`, "POST", "?bulk=true", `{"items": [{"title": "z"}]}`},
		{"document_update", `{` + items + `, "id": "` + id + `", "data": {"n": 2}}`, "PUT", "/" + id, `{"n": 2}`},
		{"document_update", `{` + items + `, "filter": {"title": "none"}, "data": {"n": 2}}`, "PUT", "?filter=%7B%22title%22%3A%22none%22%7D", `{"n": 2}`},
		{"document_delete", `{` + items + `, "filter": {"title": "none"}}`, "DELETE", "?filter=%7B%22title%22%3A%22none%22%7D", ""},
	} {
		path, params, _ := strings.Cut(tt.path, "?")
		show := []option{agent, query(params)}
		if tt.body != "" {
			show = append(show, text(tt.body))
		}
		if res := s.do(tt.method, "/api/v1/_/hooked/items"+path, show...); res.status/100 != 2 {
			t.Fatalf("%s: %s", tt.method, res.body)
		}
		byREST := seen()
		if _, refusal := s.tool(tt.tool, tt.arguments, agent); refusal != "" {
			t.Fatalf("%s: %s", tt.tool, refusal)
		}
		if diff := cmp.Diff(byREST, seen()); diff != "" || len(byREST) == 0 {
			t.Errorf("%s: hooks see (-REST +MCP)\n%s", tt.tool, diff)
		}
	}
	// What REST lets pass as it comes, agents are held to.
	for _, tt := range []struct{ extra, want string }{
		{`{"preview": "yes"}`, "400 extra parameter preview must be true or false"},
		{`{"mode": "c"}`, "400 extra parameter mode must be one of a, b"},
		{`{"filter": "{}"}`, "400 unknown extra parameter: filter; *"},
		{`{"token": "x"}`, "400 unknown extra parameter: token; *|400 two different credentials: *"},
		{`{"nope": 1}`, "400 unknown extra parameter: nope; *"},
	} {
		if _, got := s.tool("documents_list", `{`+items+`, "extra": `+tt.extra+`}`, agent); !slices.ContainsFunc(strings.Split(tt.want, "|"), func(p string) bool { return fits(p, got) }) {
			t.Errorf("%s: %s, want %s", tt.extra, got, tt.want)
		}
	}
}

// sealed is what the audit log adds to an entry when it becomes part of its chain.
var sealed = regexp.MustCompile(`,"seq":[0-9]+(,"prev":"[0-9a-f]*")?,"hash":"[0-9a-f]*"`)

// TestS43ReadScopesChangeNothing: with a token that has scopes to read alone, all tools together change nothing, and none of the nine that are
// REST-only does with any token.
func TestS43ReadScopesChangeNothing(t *testing.T) {
	for _, tt := range []struct{ store string }{{"embedded"}, {"mongodb"}} {
		t.Run(tt.store, func(t *testing.T) {
			uri := ""
			if tt.store == "mongodb" {
				uri = emptyMongo(t, "svc_shop", "svc_away")
			}
			d := newDoors(t, uri, func(c *app.Config) { c.MCP.AllowAdminActions = true })
			state := func() string {
				var out strings.Builder
				for _, path := range []string{"_/shop/items", "_/away/items", "user", "org", "team", "project", "audit", "_/shop/_/audit", "_/shop/_/admin/generations", "_/shop/_/admin/snapshots"} {
					show := []option{admin}
					if !strings.Contains(path, "admin/generations") {
						show = append(show, query("limit=1000"))
					}
					res := d.do("GET", "/api/v1/"+path, show...)
					res.want(t, http.StatusOK)
					out.WriteString(res.body + "\n")
				}
				return sealed.ReplaceAllString(out.String(), "") // the log seals its entries when it comes to it
			}
			_, reads := d.pat("owner", map[string]any{"scopes": []string{"namespace.shop.items.read", "namespace.shop._actions.act.read", "project.read", "user.read", "org.read", "team.read", "audit.read"}})
			id := d.ids["id"]
			calls, _ := agentCalls(d)
			forbidden := map[string]string{
				"document_create": `{"namespace": "shop", "collection": "items", "data": {"n": 1}}`,
				"document_update": `{"namespace": "shop", "collection": "items", "id": "` + id + `", "data": {"n": 2}}`,
				"document_delete": `{"namespace": "shop", "collection": "items", "id": "` + id + `"}`,
				"action_call":     `{"namespace": "shop", "action": "act"}`,
				"user_create":     `{"data": {"username": "x", "password": "` + password + `"}}`,
				"user_update":     `{"id": "` + d.ids["user"] + `", "data": {"name": "x"}}`,
				"user_delete":     `{"id": "` + d.ids["user"] + `"}`,
				"project_reload":  `{"namespace": "shop"}`, "regenerate_search": `{"namespace": "shop"}`,
				"backup_create": `{"namespace": "shop"}`, "snapshots_list": `{"namespace": "shop"}`,
			}
			before := state()
			var probe struct{ Tools []struct{ Name string } }
			if err := json.Unmarshal([]byte(d.do("GET", "/api/v1/mcp", session(reads)).body), &probe); err != nil || len(probe.Tools) != 36 {
				t.Fatalf("%d tools (%v)", len(probe.Tools), err)
			}
			for _, tool := range probe.Tools {
				arguments, may := string(calls[tool.Name]), forbidden[tool.Name] == ""
				if !may {
					arguments = forbidden[tool.Name]
				}
				_, refusal := d.tool(tool.Name, arguments, session(reads))
				if pointer := tool.Name == "file_read" || tool.Name == "asset_read"; may && !pointer && refusal != "" || !may && !strings.HasPrefix(refusal, "-32003") {
					t.Errorf("%s: %q", tool.Name, refusal)
				}
			}
			if diff := cmp.Diff(before, state()); diff != "" {
				t.Errorf("tools have changed something:\n%s", diff)
			}
			for name, want := range map[string]string{
				"user_create": "400 user write via MCP is REST-only", "user_update": "400 user write via MCP is REST-only", "user_delete": "400 user write via MCP is REST-only",
				"project_reload": "400 admin tool is REST-only", "regenerate_search": "400 admin tool is REST-only", "backup_create": "400 admin tool is REST-only",
				"snapshots_list": "400 admin tool is REST-only",
			} {
				if _, refusal := d.tool(name, forbidden[name], d.callers["patWrites"]); refusal != want {
					t.Errorf("%s: %q", name, refusal)
				}
			}
			if diff := cmp.Diff(before, state()); diff != "" {
				t.Errorf("REST-only tools have changed something:\n%s", diff)
			}
		})
	}
}
