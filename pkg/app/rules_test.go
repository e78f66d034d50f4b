package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

// The rules of the interface's section on authentication, one test for each. Rule 4 is about the endpoint for machine
// agents, which is not in this version.

const lacksRight = "403 permission_denied: permission denied: admin token lacks permission "

func TestRule1CollectionAndProjectAdminTokens(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	for _, tt := range []struct {
		method, path, body string
		token, want        string
	}{
		{"PUT", "/_/shop/items/" + id, `{"n": 2}`, collectionToken, "200"},
		{"POST", "/project", `{}`, collectionToken, lacksRight + "project.create"},
		{"GET", "/project", "", collectionToken, lacksRight + "project.read"},
		{"POST", "/_/shop/_/admin/reload", "", collectionToken, lacksRight + "project.reload"},
		{"PUT", "/_/shop/items/" + id, `{"n": 3}`, projectToken, "200"},
		{"POST", "/_/shop/_/admin/reload", "", projectToken, "202"},
		{"GET", "/project", "", projectToken, lacksRight + "project.read"},
		{"POST", "/project", `{}`, projectToken, lacksRight + "project.create"},
		{"GET", "/user", "", projectToken, lacksRight + "user.read"},
		{"GET", "/_/shop/_/collections", "", projectToken, lacksRight + "project.read"},
		{"GET", "/token", "", projectToken, denied},
	} {
		if got := s.do(tt.method, "/api/v1"+tt.path, token(tt.token), text(tt.body)).String(); got != tt.want {
			t.Errorf("%s %s by %s\ngot  %s\nwant %s", tt.method, tt.path, tt.token, got, tt.want)
		}
	}
}

func TestRule2CollectionTokensAsParameter(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	_, jwt := s.user("ann", map[string]any{"isAdmin": true})
	inQuery := query("token=" + collectionToken)
	if got := s.do("PUT", "/api/v1/_/shop/items/"+id, inQuery, text(`{"n": 2}`)).String(); got != "200" {
		t.Error(got)
	}
	if got := s.do("GET", "/api/v1/project", inQuery).String(); got != lacksRight+"project.read" {
		t.Error(got)
	}
	for name, value := range map[string]string{ // other credentials are none there
		"x-auth-token": jwt, "x-admin-token": adminToken, "authorization": "Bearer " + adminToken, "token": adminToken,
	} {
		if got := s.do("GET", "/api/v1/user", query(name+"="+strings.ReplaceAll(value, " ", "%20"))); got.status != http.StatusForbidden || strings.Contains(got.body, value) {
			t.Errorf("%s: %s", name, got)
		}
		if got := s.do("PUT", "/api/v1/_/shop/items/"+id, query(name+"="+strings.ReplaceAll(value, " ", "%20")), text(`{"n": 3}`)); got.status != http.StatusForbidden || strings.Contains(got.body, value) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, secret := range []string{collectionToken, adminToken, jwt} {
		if strings.Contains(s.logs.String(), secret) {
			t.Error("a parameter is in the log")
		}
	}
}

// S26: names of credential headers are no tokens, as a header, as a parameter, and in no case of letters.
func TestRule3ReservedTokenNamesS26(t *testing.T) {
	s := run(t, nil)
	var config strings.Builder
	config.WriteString("namespace: odd\ncollections:\n  - name: items\n    permissions:\n      public: {methods: {}}\n      user: {methods: {}}\n")
	names := []string{"x-auth-token", "X-Admin-Token", "authorization", "AUTHORIZATION"}
	for _, name := range append(names, "fine") {
		config.WriteString(`      "token:` + name + `": {methods: {get: true, post: true}}` + "\n")
	}
	s.register("odd", config.String())
	if got := s.do("GET", "/api/v1/_/odd/items", token("fine")).String(); got != "200" {
		t.Fatal(got)
	}
	for _, name := range names {
		for _, show := range []option{token(name), query("token=" + name), token(strings.ToLower(name))} {
			for _, method := range []string{"GET", "POST"} {
				if got := s.do(method, "/api/v1/_/odd/items", show, text(`{"a": 1}`)).String(); got != denied {
					t.Errorf("%s by %s: %s", method, name, got)
				}
			}
			if got := s.do("GET", "/api/v1/project", show).String(); got != lacksRight+"project.read" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// An administrator's token opens no route where tokens are managed, however it is shown.
func TestRule5TokenRoutesRefuseTokens(t *testing.T) {
	s := run(t, nil)
	_, jwt := s.user("ann", map[string]any{"isAdmin": true})
	made := s.do("POST", "/api/v1/token", session(jwt), text(`{"name": "t", "scopes": ["project.read"]}`))
	made.want(t, http.StatusCreated)
	id, pat := made.field("id"), made.field("token")
	for _, show := range []option{session(pat), header("Authorization", "Bearer "+pat), admin} {
		for _, path := range []string{"GET /token", "POST /token", "GET /token/_scopes", "GET /token/" + id, "PUT /token/" + id, "DELETE /token/" + id} {
			method, path, _ := strings.Cut(path, " ")
			if got := s.do(method, "/api/v1"+path, show, text(`{"name": "x"}`)).String(); got != denied {
				t.Errorf("%s %s: %s", method, path, got)
			}
		}
	}
	if got := s.do("GET", "/api/v1/project", session(pat)).String(); got != "200" {
		t.Error(got)
	}
}

func TestRule6LoginDelays(t *testing.T) {
	frozen := time.Now()
	s := run(t, func(c *app.Config) { c.Now = func() time.Time { return frozen } })
	s.user("ann", nil)
	for _, name := range []string{"ann", "nobody"} {
		body := `{"username": "` + name + `", "password": "wrong"}`
		var last answer
		for range 8 {
			if last = s.do("POST", "/api/v1/login", text(body)); last.status == http.StatusTooManyRequests {
				break
			}
			if last.String() != "403 login_failed: wrong username or password" {
				t.Fatal(last)
			}
		}
		if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, Retry-After %q", name, last, last.header.Get("Retry-After"))
		}
	}
}

func TestRule7SecretIsShownOnce(t *testing.T) {
	s := run(t, nil)
	_, jwt := s.user("ann", map[string]any{"isAdmin": true})
	made := s.do("POST", "/api/v1/token", session(jwt), text(`{"name": "t", "scopes": ["project.read"]}`))
	made.want(t, http.StatusCreated)
	id, pat := made.field("id"), made.field("token")
	if !strings.HasPrefix(pat, "svc_pat_"+id+"_") {
		t.Fatal(made.body)
	}
	secret := pat[strings.LastIndex(pat, "_")+1:]
	for _, res := range []answer{
		s.do("GET", "/api/v1/token", session(jwt)), s.do("GET", "/api/v1/token/"+id, session(jwt)), s.do("GET", "/api/v1/me", session(pat)),
		s.do("PUT", "/api/v1/token/"+id, session(jwt), text(`{"name": "n"}`)), s.do("DELETE", "/api/v1/token/"+id, session(jwt)), s.do("GET", "/api/v1/_meta"),
	} {
		if res.status != http.StatusOK || strings.Contains(res.body, secret) || strings.Contains(res.body, `"hash"`) {
			t.Errorf("%s %s", res, res.body)
		}
	}
}

func TestRule8PublicReads(t *testing.T) {
	s := runShop(t, nil)
	shown, kept := s.item(`{"title": "A", "n": 1, "secret": "s"}`), s.item(`{"title": "B", "n": -1}`)
	got := s.do("GET", "/api/v1/_/shop/items")
	if got.status != http.StatusOK || !strings.Contains(got.body, shown) || strings.Contains(got.body, kept) || strings.Contains(got.body, "secret") {
		t.Error(got.body)
	}
	for path, want := range map[string]string{
		"/api/v1/_/shop/items/" + shown: "200", "/api/v1/_/shop/items/" + kept: notFound, "/api/v1/_/shop/inbox": denied,
	} {
		if got := s.do("GET", path).String(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
