package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/httpapi"
)

const tokensConfig = `
namespace: blog
actions:
  - name: act
    hooks: {handle: {type: javascript, file: act.js}}
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
collections:
  - name: items
    fields: [{name: title, type: string}]
    permissions:
      public: {methods: {}}
      user: {methods: {get: {lookup: true, aggregate: true}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
      "token:` + readToken + `": {methods: {get: true}}
`

// runTokens starts a service with the project blog on the store of cfg.
func runTokens(t *testing.T, cfg app.Config) *service {
	t.Helper()
	s := run(t, func(c *app.Config) {
		c.StoreURI, c.PATDefaultTTL, c.PATMaxTTL = cfg.StoreURI, 90*24*time.Hour, 366*24*time.Hour
	})
	s.file("blog", "act.js", "module.exports = () => 1")
	s.register("blog", tokensConfig)
	return s
}

// pat makes a personal access token and gives its id and value.
func (s *service) pat(owner string, scopes ...string) (id, value string) {
	s.t.Helper()
	res := s.do("POST", "/api/v1/token", session(owner), json1(map[string]any{"name": "t", "scopes": append([]string{}, scopes...)}))
	res.want(s.t, http.StatusCreated)
	return res.field("id"), res.field("token")
}

// allScopes is every scope there is in blog.
func allScopes() []string {
	all := append(api.Scopes(), "namespace.blog")
	for _, m := range []access.Method{access.Get, access.Post, access.Put, access.Delete} {
		all = append(all, access.RecordRight("blog", "items", m))
	}
	return append(all, "namespace.blog._actions.act.read", "namespace.blog._actions.act.create")
}

// scopeOf is the scope that a personal access token needs for a route; never: none helps.
func scopeOf(rt httpapi.Route) (scope string, never bool) {
	kind, name, _ := strings.Cut(rt.Right, " ")
	switch kind {
	case "anyone", "asset", "file", "credential", "personal": // each tool of MCP has its scope: see TestDoorsAlike
		return "", false
	case "described":
		if strings.HasSuffix(rt.Pattern, "/agent") { // of the project
			return access.ProjectRead, false
		}
		return "", false
	case "login":
		return "", true
	case "actions":
		return "", false // it lists what the scopes reach
	case "action":
		m := map[string]access.Method{"get": access.Get, "post": access.Post}[name]
		return access.RecordRight("blog", access.ActionScope("act"), m), false
	case "records":
		m := map[string]access.Method{"get": access.Get, "post": access.Post, "put": access.Put, "delete": access.Delete}[name]
		return access.RecordRight("blog", "items", m), false
	case "project":
		return name, false
	}
	return rt.Right, !access.ValidScope(rt.Right)
}

// place fills in a route's pattern; ids are those of records and models, by the path before them.
func place(t *testing.T, pattern string, ids map[string]string) string {
	t.Helper()
	path := strings.NewReplacer("{project}", "blog", "{collection}", "items", "{model}", "user", "{job}", "tick", "{action}", "act", "{asset}/*", "logos/x.svg", "{field}/*", "file/x.png").Replace(pattern)
	if before, after, ok := strings.Cut(path, "{id}"); ok {
		id := ids[strings.TrimSuffix(strings.TrimPrefix(before, api.Prefix+"/"), "/")]
		if id == "" {
			id = unknownID
		}
		path = before + id + after
	}
	if strings.Contains(path, "{") {
		t.Fatalf("%s has a part that this test doesn't know", pattern)
	}
	return path
}

// S24: a token can be given what its owner has, does what its scopes name, and that only while its owner has it. The table
// is that of the routes.
func TestS24PATScopeEscalation(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runTokens(t, cfg)
		_, root := s.user("root", map[string]any{"isAdmin": true})
		ownerID, owner := s.user("owner", map[string]any{"scopes": append(api.Scopes(), "namespace.blog")})
		for name, login := range map[string]string{"administrator": root, "owner": owner} {
			_, none := s.pat(login)
			_, all := s.pat(login, allScopes()...)
			exact, others := map[string]string{}, map[string]string{}
			for _, scope := range allScopes() {
				_, exact[scope] = s.pat(login, scope)
				_, others[scope] = s.pat(login, without(scope)...)
			}
			// Who makes backups comes to the snapshots, too, and sees those alone: TestSnapshotPermissions.
			_, others[access.ProjectSnapshot] = s.pat(login, slices.DeleteFunc(without(access.ProjectSnapshot), func(s string) bool { return s == access.ProjectBackup })...)
			for _, rt := range httpapi.Routes() {
				if rt.Right == "action any" || rt.Right == "action runs" { // several scopes give it: see TestActionScopes
					continue
				}
				path := place(t, rt.Pattern, nil)
				call := func(token string) string {
					t.Helper()
					return s.do(rt.Method, path, session(token), text(`{}`)).String()
				}
				scope, never := scopeOf(rt)
				what := name + ": " + rt.Method + " " + path
				switch {
				case never:
					for _, value := range []string{none, all} {
						if got := call(value); got != denied {
							t.Errorf("%s: %s, want %s", what, got, denied)
						}
					}
				case scope == "":
					if got := call(none); got == denied {
						t.Errorf("%s: %s", what, got)
					}
				default:
					for _, value := range []string{none, others[scope]} {
						if got := call(value); got != denied {
							t.Errorf("%s without %s: %s, want %s", what, scope, got, denied)
						}
					}
					if rt.Right == access.ServerShutdown { // it would do it
						continue
					}
					enough := []string{exact[scope], all}
					if rt.Pattern == api.Prefix+api.RouteCollStats { // which takes reading all of the collection, too
						enough = []string{all}
					}
					for _, value := range enough {
						if got := call(value); strings.HasPrefix(got, "403") || strings.HasPrefix(got, "5") {
							t.Errorf("%s with %s: %s", what, scope, got)
						}
					}
				}
			}
		}

		// What the owner loses, their tokens lose.
		id, value := s.pat(owner, "project.read", "namespace.blog")
		reach := func() string {
			return s.do("GET", "/api/v1/project", session(value)).String() + ", " + s.do("GET", "/api/v1/_/blog/items", session(value)).String()
		}
		if got := reach(); got != "200, 200" {
			t.Fatal(got)
		}
		s.do("PUT", "/api/v1/user/"+ownerID, admin, text(`{"scopes": ["namespace.blog.items.create", "user.read"]}`)).want(t, http.StatusOK)
		if got := reach(); got != denied+", "+denied {
			t.Errorf("after the owner lost it: %s", got)
		}
		me := s.do("GET", "/api/v1/me", session(value))
		if !strings.Contains(me.body, `"kind":"pat"`) || !strings.Contains(me.body, `"scopes":["namespace.blog.items.create"]`) || me.field("id") != ownerID || me.field("expiresAt") == "" {
			t.Error(me.body)
		}
		// And no token gets what its owner hasn't, when it is made or later.
		if got := s.do("GET", "/api/v1/token/_scopes", session(owner)).body; got != `["namespace.blog.items.create","user.read"]` {
			t.Error(got)
		}
		for _, scope := range append(without("user.read"), "project.create", "team.update", "namespace.other", "*", "") {
			if scope == "namespace.blog.items.create" {
				continue
			}
			body := json1(map[string]any{"name": "t", "scopes": []string{"user.read", scope}})
			for _, res := range []answer{s.do("POST", "/api/v1/token", session(owner), body), s.do("PUT", "/api/v1/token/"+id, session(owner), body)} {
				if res.status != http.StatusBadRequest || !strings.Contains(res.body, `"path":"scopes.1"`) {
					t.Errorf("%q: %s", scope, res)
				}
			}
		}
	})
}

// without gives all scopes that don't cover one.
func without(scope string) []string {
	return slices.DeleteFunc(allScopes(), func(s string) bool { return access.Covers([]string{s}, scope) })
}

// S25: credentials that may only read change nothing, on any route.
func TestS25ReadOnlyCredentialsChangeNothing(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runTokens(t, cfg)
		_, root := s.user("root", map[string]any{"isAdmin": true})
		victim, _ := s.user("victim", nil)
		create := func(path, body string) string {
			t.Helper()
			res := s.do("POST", "/api/v1/"+path, admin, text(body))
			res.want(t, http.StatusCreated)
			return res.field("id")
		}
		tokenID, _ := s.pat(root)
		ids := map[string]string{
			"user": victim, "org": create("org", `{"name": "Org"}`), "team": create("team", `{"name": "Team"}`), "token": tokenID,
			"project": s.projectID(), "_/blog/items": create("_/blog/items", `{"title": "A"}`),
		}
		var reads []string
		for _, scope := range allScopes() {
			if strings.HasSuffix(scope, ".read") {
				reads = append(reads, scope)
			}
		}
		_, value := s.pat(root, reads...)
		contents := func() string {
			var out strings.Builder
			for _, path := range []string{"user", "org", "team", "token", "project", "_/blog/items"} {
				res := s.do("GET", "/api/v1/"+path+"?limit=1000", session(root))
				out.WriteString(path + res.header.Get("X-Svc-Generation") + res.body + "\n")
			}
			// When a token was used last is what the service notes itself.
			return regexp.MustCompile(`"lastUsedAt":[^,]*,`).ReplaceAllString(out.String(), "")
		}
		tryAll := func(credential option, but string) {
			t.Helper()
			for _, rt := range httpapi.Routes() {
				path := place(t, rt.Pattern, ids)
				switch {
				case rt.Right == "anyone", rt.Right == access.ServerShutdown, rt.Right == but: // a login is one's own; a shutdown would end the test
					continue
				case rt.Method == http.MethodGet:
				case strings.HasSuffix(rt.Pattern, "{collection}") && rt.Method != http.MethodPost:
					path += "?filter={}"
				}
				for _, body := range []string{
					`{"name": "new", "username": "new", "password": "` + password + `", "scopes": [], "title": "new", "isAdmin": true}`,
					`{"name": "new"}`, `{"title": "new"}`, `{"items": [{"title": "new"}]}`,
				} {
					s.do(rt.Method, path, credential, text(body))
				}
			}
		}
		before := contents()
		for model, id := range ids {
			if !strings.Contains(before, `"id":"`+id+`"`) {
				t.Fatalf("the contents lack the %s", model)
			}
		}
		for name, credential := range map[string]option{
			"token": session(value), "as bearer": header("Authorization", "Bearer "+value), "collection token": token(readToken),
			"collection token in the query": query("token=" + readToken), "none": noop,
		} {
			if got := s.do("GET", "/api/v1/_/blog/items", credential).status; (got == http.StatusOK) != (name != "none") {
				t.Errorf("%s: a read is %d", name, got)
			}
			tryAll(credential, "")
			if after := contents(); after != before {
				t.Fatalf("%s: the contents have changed\nbefore %s\nafter  %s", name, before, after)
			}
		}
		tryAll(admin, access.ProjectDelete) // the same requests do change what they are for
		after := contents()
		for model, gone := range ids {
			if model != "token" && model != "project" && strings.Contains(after, `"id":"`+gone+`"`) {
				t.Errorf("%s is still there: the requests of this test are none that change things", gone)
			}
		}
	})
}

// The routes of tokens are for sessions, and a value is shown once.
func TestTokenRoutes(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runTokens(t, cfg)
		_, root := s.user("root", map[string]any{"isAdmin": true})
		annID, ann := s.user("ann", map[string]any{"scopes": []string{"project.read", "namespace.blog"}})
		_, bob := s.user("bob", nil)

		res := s.do("POST", "/api/v1/token", session(ann), text(`{"name": "ci", "scopes": ["namespace.blog.items.create", "project.read"]}`))
		res.want(t, http.StatusCreated)
		id, value := res.field("id"), res.field("token")
		if res.header.Get("Location") != "/api/v1/token/"+id || res.header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(value, "svc_pat_"+id+"_") || res.field("expiresAt") == "" {
			t.Errorf("%v %s", res.header, res.body)
		}
		for name, option := range map[string]option{"pat": session(value), "bearer": header("Authorization", "Bearer "+value), "admin": admin, "token": token(readToken), "none": noop} {
			for _, rt := range httpapi.Routes() {
				if strings.HasPrefix(rt.Pattern, "/api/v1/token") {
					path := place(t, rt.Pattern, map[string]string{"token": id})
					if got := s.do(rt.Method, path, option, text(`{"name": "x", "scopes": []}`)).String(); got != denied {
						t.Errorf("%s: %s %s: %s", name, rt.Method, path, got)
					}
				}
			}
		}
		for _, tt := range []struct {
			who, method, body string
			want              string
		}{
			{ann, "GET", "", "200"},
			{root, "GET", "", "200"},
			{bob, "GET", "", notFound},
			{bob, "PUT", `{"name": "x"}`, notFound},
			{bob, "DELETE", "", notFound},
			{root, "PUT", `{"name": "x"}`, denied},
			{ann, "PUT", `{"name": "deploy"}`, "200"},
			{ann, "PUT", `{"userId": "x"}`, "400 validation_failed: userId: is set by the service"},
			{root, "DELETE", "", "200"},
			{ann, "GET", "", notFound},
		} {
			if tt.method == "DELETE" && tt.who == root { // it works until then, as its owner
				made := s.do("POST", "/api/v1/_/blog/items", header("Authorization", "Bearer "+value), text(`{"title": "A"}`))
				made.want(t, http.StatusCreated)
				kept := s.do("GET", "/api/v1/_/blog/items/"+made.field("id"), admin)
				if kept.field("createdBy") != annID {
					t.Errorf("created by %q, want %q", kept.field("createdBy"), annID)
				}
			}
			got := s.do(tt.method, "/api/v1/token/"+id, session(tt.who), text(tt.body))
			if got.String() != tt.want || strings.Contains(got.body, value) || strings.Contains(got.body, "hash") {
				t.Errorf("%s %s: %s %s, want %s", tt.method, tt.body, got, got.body, tt.want)
			}
		}
		if got := s.do("GET", "/api/v1/me", session(value)).String(); got != denied {
			t.Errorf("a deleted token: %s", got)
		}
		// What is private stays in the caches of the one who asked.
		_, reader := s.pat(ann, "namespace.blog.items.read")
		if got := s.do("GET", "/api/v1/_/blog/items", session(reader)).header.Get("Cache-Control"); !strings.HasPrefix(got, "private") {
			t.Errorf("Cache-Control: %q", got)
		}
		if strings.Contains(s.logs.String(), value) {
			t.Error("the value is in the log")
		}
		var scopes []string
		if err := json.Unmarshal([]byte(s.do("GET", "/api/v1/token/_scopes", session(root)).body), &scopes); err != nil {
			t.Fatal(err)
		}
		want := allScopes()
		slices.Sort(want)
		if !slices.Equal(scopes, want) {
			t.Errorf("an administrator may grant %v, want %v", scopes, want)
		}
	})
}

// A user has a limit of tokens, which says what to do, and holds for those that are made at once.
func TestTokenLimit(t *testing.T) {
	onBoth(t, func(s *service) {
		_, ann := s.user("ann", nil)
		create := func() answer {
			return s.do("POST", "/api/v1/token", session(ann), text(`{"name": "ci", "scopes": []}`))
		}
		for range 96 {
			create().want(s.t, http.StatusCreated)
		}
		answers := make(chan answer, 12)
		for range cap(answers) {
			go func() { answers <- create() }()
		}
		id, made := "", 0
		for range cap(answers) {
			const want = "409 too_many_tokens: a user has at most 100 personal access tokens, and you have as many: " +
				"delete one that you no longer need (GET /token lists them)"
			if a := <-answers; a.status == http.StatusCreated {
				id = a.field("id")
				made++
			} else if a.String() != want {
				s.t.Error(a)
			}
		}
		if made != 4 {
			s.t.Errorf("%d of the last 4 were made", made)
		}
		s.do("DELETE", "/api/v1/token/"+id, session(ann)).want(s.t, http.StatusOK)
		create().want(s.t, http.StatusCreated)
	})
}
