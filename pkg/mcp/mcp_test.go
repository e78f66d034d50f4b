package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/mcp"
)

var update = flag.Bool("update", false, "write the golden files")

// everything is the scopes of a token that may use every tool.
var everything = []string{
	"namespace.blog", "project.read", "project.reload", "project.regenerate-search", "project.backup", "project.snapshot", "user.read", "user.create",
	"user.update", "user.delete", "org.read", "team.read", "audit.read",
}

func holder(scopes ...string) *access.Principal {
	return &access.Principal{Kind: access.KindPAT, ID: "650102030405060708090a0b", Scopes: scopes, Cap: scopes}
}

// door is a Server beside a REST API that answers everything alike, and notes what it was asked.
type door struct {
	*mcp.Server

	principal *access.Principal
	asked     []*mcp.Request
	asking    context.Context //nolint:containedctx // of what was asked last
	response  mcp.Response
	responses map[string]mcp.Response // to what is asked for by path, in the place of response
}

func newDoor(o mcp.Options, scopes ...string) *door {
	if o.MaxResultItems == 0 {
		o.MaxResultItems = 3
	}
	o.Namespaces = func() []string { return []string{"blog", "shop"} }
	return &door{Server: mcp.New(o), principal: holder(scopes...), response: mcp.Response{Status: 200, Type: "application/json", Body: []byte(`{}`)}}
}

func (d *door) send(t testing.TB, message string) string {
	t.Helper()
	return string(d.Answer(t.Context(), mcp.Caller{Principal: d.principal, Do: func(ctx context.Context, r *mcp.Request) *mcp.Response {
		d.asking = ctx
		d.asked = append(d.asked, r)
		res, own := d.responses[r.Path]
		if !own {
			res = d.response
		}
		return &res
	}}, []byte(message)))
}

func (d *door) call(t testing.TB, tool, arguments string) string {
	t.Helper()
	return d.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`)
}

// TestToolsAreDescribed holds what clients are told of each tool against testdata/tools. go test ./pkg/mcp -update writes it.
func TestToolsAreDescribed(t *testing.T) {
	d := newDoor(mcp.Options{AllowAdminActions: true})
	var probe struct {
		ProtocolVersion string
		ServerInfo      map[string]string
		Tools           []json.RawMessage
	}
	if err := json.Unmarshal(d.Probe(), &probe); err != nil {
		t.Fatal(err)
	}
	if probe.ProtocolVersion != "2024-11-05" || probe.ServerInfo["name"] != "svc-server-mcp" || probe.ServerInfo["version"] != "v1" {
		t.Errorf("the probe says %s %v", probe.ProtocolVersion, probe.ServerInfo)
	}
	const want = `documents_list document_get documents_count documents_facet queue_status document_create document_update document_delete file_read action_call
		projects_list project_get collections_list collection_describe actions_list action_describe jobs_list openapi_get system_meta_get agent_guide_get
		assets_list asset_read users_list user_get user_create user_update user_delete orgs_list org_get teams_list team_get audit_query
		project_reload regenerate_search backup_create snapshots_list`
	var got []string
	for _, raw := range probe.Tools {
		var tool struct{ Name, Description string }
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		got = append(got, tool.Name)
		restOnly := strings.Contains(" user_create user_update user_delete project_reload regenerate_search backup_create snapshots_list file_read asset_read ", " "+tool.Name+" ")
		if strings.Contains(tool.Description, "REST-only in this phase") != restOnly {
			t.Errorf("%s: the description marks it as REST-only: %v, want %v", tool.Name, !restOnly, restOnly)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		indented.WriteByte('\n')
		file := filepath.Join("testdata", "tools", tool.Name+".json")
		if *update {
			if err := os.WriteFile(file, indented.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(golden), indented.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Errorf("the tools of the interface (-want +got):\n%s", diff)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "tools", "*.json"))
	if err != nil || len(files) != len(got) {
		t.Errorf("%d golden files for %d tools (%v)", len(files), len(got), err)
	}
}

// TestRequests holds which request of the REST API each tool is: a row of the interface's table of tools each.
func TestRequests(t *testing.T) {
	const blog = `"namespace": "blog", "collection": "articles"`
	for _, tt := range []struct{ tool, arguments, want string }{
		{"documents_list", `{` + blog + `}`, "GET /api/v1/_/blog/articles"},
		{"documents_list", `{` + blog + `, "filter": {"a": 1}, "sort": "-a,b", "limit": 2, "offset": 1, "select": "a,b", "projection": "p", "lookup": ["author", "tags"], "q": "x", "qName": "main", "count": true, "extra": {"n": 1, "s": "t", "l": [1, 2], "o": {"a": 1}}}`,
			`GET /api/v1/_/blog/articles count=true filter={"a":1} limit=2 lookup=author,tags offset=1 projection=p q=x qName=main select=a,b sort=-a,b extra l=[1,2] n=1 o={"a":1} s=t`},
		{"documents_list", `{` + blog + `, "filter": "{\"a\": 1}", "limit": "2", "count": "true", "aggregate": "[{\"$match\": {}}]", "sort": {"a": -1}, "extra": "{\"n\": 1}"}`,
			`GET /api/v1/_/blog/articles aggregate=[{"$match": {}}] count=true filter={"a": 1} limit=2 sort={"a":-1} extra n=1`},
		{"documents_list", `{` + blog + `, "limit": 100, "filter": null}`, "GET /api/v1/_/blog/articles limit=3"},
		{"document_get", `{` + blog + `, "id": "1", "extra": {"n": null, "m": 1}}`, "GET /api/v1/_/blog/articles/1 extra m=1"},
		{"document_get", `{` + blog + `, "id": "1", "select": "a", "lookup": "author", "extra": {"n": 1}}`, "GET /api/v1/_/blog/articles/1 lookup=author select=a extra n=1"},
		{"document_get", `{"namespace": "_", "collection": "../x", "id": "_count"}`, "GET /api/v1/_/%5F/..%2Fx/%5Fcount"},
		{"documents_count", `{` + blog + `, "filter": {"a": 1}, "q": "x"}`, `GET /api/v1/_/blog/articles/_count filter={"a":1} q=x`},
		{"documents_facet", `{` + blog + `, "fields": ["a", "b"], "filter": {}, "q": "x", "qName": "m", "qLimit": "all"}`, `GET /api/v1/_/blog/articles/_facet fields=a,b filter={} q=x qLimit=all qName=m`},
		{"queue_status", `{` + blog + `}`, "GET /api/v1/_/blog/articles/_queue"},
		{"document_create", `{` + blog + `, "data": {"n": 9007199254740993}, "dryRun": true}`, `POST /api/v1/_/blog/articles dryRun=true body {"n": 9007199254740993}`},
		{"document_create", `{` + blog + `, "data": "{\"n\": 1}"}`, `POST /api/v1/_/blog/articles body {"n": 1}`},
		{"document_create", `{` + blog + `, "items": [{"n": 1}], "maxAffected": 1}`, `POST /api/v1/_/blog/articles bulk=true maxAffected=1 body {"items":[{"n": 1}]}`},
		{"document_update", `{` + blog + `, "id": "1", "data": {"n": 1}, "ifMatch": 3, "maxAffected": 1}`, `PUT /api/v1/_/blog/articles/1 if "3" body {"n": 1}`},
		{"document_update", `{` + blog + `, "filter": {"a": 1}, "data": {"n": 1}, "maxAffected": 0, "dryRun": false}`, `PUT /api/v1/_/blog/articles dryRun=false filter={"a":1} maxAffected=0 body {"n": 1}`},
		{"document_delete", `{` + blog + `, "id": "1", "ifMatch": "3", "dryRun": true}`, `DELETE /api/v1/_/blog/articles/1 dryRun=true if "3"`},
		// What REST would not read, or as something else, is asked for in its own way.
		{"document_update", `{` + blog + `, "id": "1", "data": {"n": 1}, "ifMatch": "+05"}`, `PUT /api/v1/_/blog/articles/1 if "5" body {"n": 1}`},
		{"document_delete", `{` + blog + `, "filter": {}, "maxAffected": -0, "ifMatch": "\u0031"}`, `DELETE /api/v1/_/blog/articles filter={} maxAffected=0 if "1"`},
		{"document_delete", `{` + blog + `, "filter": {"a": 1}}`, `DELETE /api/v1/_/blog/articles filter={"a":1}`},
		{"action_call", `{"namespace": "blog", "action": "a", "data": {"n": 1}}`, `POST /api/v1/_/blog/_/actions/a body {"n": 1}`},
		{"action_call", `{"namespace": "blog", "action": "a"}`, `POST /api/v1/_/blog/_/actions/a`},
		{"action_call", `{"namespace": "blog", "action": "a", "method": "get", "data": {"n": 1, "l": ["x", 2], "nothing": null}}`, `GET /api/v1/_/blog/_/actions/a l=x,2 n=1`},
		{"projects_list", `{"limit": 2, "offset": 1}`, "GET /api/v1/project limit=2 offset=1"},
		{"project_get", `{"id": "1"}`, "GET /api/v1/project/1"},
		{"collections_list", `{"namespace": "blog"}`, "GET /api/v1/_/blog/_/collections"},
		{"collection_describe", `{` + blog + `, "lang": "de"}`, "GET /api/v1/_/blog/_/collections/articles lang=de"},
		{"actions_list", `{"namespace": "blog"}`, "GET /api/v1/_/blog/_/actions"},
		{"action_describe", `{"namespace": "blog", "action": "a"}`, "GET /api/v1/_/blog/_/actions/a/describe"},
		{"jobs_list", `{"namespace": "blog"}`, "GET /api/v1/_/blog/_/jobs"},
		{"openapi_get", `{"namespace": "blog", "lang": "de"}`, "GET /api/v1/_openapi/blog lang=de"},
		{"system_meta_get", `{}`, "GET /api/v1/_meta"},
		{"system_meta_get", `{"model": "user"}`, "GET /api/v1/_meta/user"},
		{"agent_guide_get", `{"namespace": "blog"}`, "GET /api/v1/_/blog/_/agent"},
		{"agent_guide_get", `{` + blog + `, "lang": "de"}`, "GET /api/v1/_/blog/_/agent collection=articles lang=de"},
		{"agent_guide_get", `{"namespace": "blog", "action": "a"}`, "GET /api/v1/_/blog/_/agent action=a"},
		{"assets_list", `{"namespace": "blog"}`, "GET /api/v1/_/blog/_/assets"},
		{"users_list", `{"filter": "{\"active\": true}", "limit": "2", "offset": "1"}`, `GET /api/v1/user filter={"active": true} limit=2 offset=1`},
		{"users_list", `{"filter": {"active": true}}`, `GET /api/v1/user filter={"active":true}`},
		{"user_get", `{"id": "1"}`, "GET /api/v1/user/1"},
		{"orgs_list", `{"limit": "2"}`, "GET /api/v1/org limit=2"},
		{"org_get", `{"id": "1"}`, "GET /api/v1/org/1"},
		{"teams_list", `{"limit": 2}`, "GET /api/v1/team limit=2"},
		{"team_get", `{"id": "1"}`, "GET /api/v1/team/1"},
		{"audit_query", `{"limit": "99"}`, "GET /api/v1/_/blog/_/audit limit=3\nGET /api/v1/_/shop/_/audit limit=3"},
		{"audit_query", `{"limit": "2"}`, "GET /api/v1/_/blog/_/audit limit=2\nGET /api/v1/_/shop/_/audit limit=2"},
		{"audit_query", `{"filter": "{\"namespace\": \"blog\", \"op\": \"update\"}"}`, `GET /api/v1/_/blog/_/audit filter={"op":"update"} limit=3`},
	} {
		d := newDoor(mcp.Options{}, append(everything, "namespace._", "namespace.shop")...)
		d.call(t, tt.tool, tt.arguments)
		var got []string
		for _, r := range d.asked {
			got = append(got, shown(r))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.tool, tt.arguments, diff)
		}
	}
}

func shown(r *mcp.Request) string {
	var b strings.Builder
	b.WriteString(r.Method + " " + r.Path)
	for _, part := range []struct {
		name   string
		values map[string][]string
	}{{"", r.Query}, {" extra", r.Extra}} {
		if len(part.values) > 0 {
			b.WriteString(part.name)
		}
		for _, name := range sorted(part.values) {
			b.WriteString(" " + name + "=" + strings.Join(part.values[name], ","))
		}
	}
	if r.IfRev != "" {
		b.WriteString(" if " + r.IfRev)
	}
	if r.Body != nil {
		b.WriteString(" body " + string(r.Body))
	}
	return b.String()
}
