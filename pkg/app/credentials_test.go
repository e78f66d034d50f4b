package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// Who may do what, by the credential that is shown.
func TestCredentials(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	_, plain := s.user("plain", nil)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read", "user.read"}})
	_, boss := s.user("boss", map[string]any{"isAdmin": true})
	_, revoked := s.user("gone", nil)
	s.do("POST", "/api/v1/logout", session(revoked)).want(t, http.StatusNoContent)

	const (
		denied    = "403 permission_denied: permission denied"
		noRead    = "403 permission_denied: permission denied: admin token lacks permission project.read"
		noUsers   = "403 permission_denied: permission denied: admin token lacks permission user.read"
		noReload  = "403 permission_denied: permission denied: admin token lacks permission project.reload"
		twoValues = "400 two_credentials: two different credentials: send only one of X-Auth-Token, X-Admin-Token (or Authorization: Bearer) and Token"
	)
	ops := []struct{ method, path string }{
		{"GET", "/api/v1/_/shop/items/" + id},
		{"PUT", "/api/v1/_/shop/items/" + id},
		{"GET", "/api/v1/project"},
		{"POST", "/api/v1/_/shop/_/admin/reload?wait=true"},
		{"GET", "/api/v1/user"},
	}
	all := func(want string) [5]string { return [5]string{want, want, want, want, want} }
	for _, tt := range []struct {
		name string
		show []option
		want [5]string // read a record, write it, list projects, reload, list users
	}{
		{"none", nil, [5]string{"200", denied, denied, denied, denied}},
		{"empty headers", []option{token(""), session(""), header("X-Admin-Token", "")}, [5]string{"200", denied, denied, denied, denied}},
		{"unknown token", []option{token("nope")}, [5]string{denied, denied, noRead, noReload, noUsers}},
		{"collection token", []option{token(collectionToken)}, [5]string{"200", "200", noRead, noReload, noUsers}},
		{"collection token that reads", []option{token(readToken)}, [5]string{"200", denied, noRead, noReload, noUsers}},
		{"collection token, other case of the name", []option{func(r *http.Request) { r.Header["TOKEN"] = []string{collectionToken} }}, [5]string{"200", "200", noRead, noReload, noUsers}},
		{"collection token in the query", []option{query("token=" + collectionToken)}, [5]string{"200", "200", noRead, noReload, noUsers}},
		{"collection token in the query, other case", []option{query("ToKeN=" + collectionToken)}, [5]string{"200", "200", noRead, noReload, noUsers}},
		{"the same in header and query", []option{token(readToken), query("token=" + readToken)}, [5]string{"200", denied, noRead, noReload, noUsers}},
		{"another in the query", []option{token(readToken), query("token=" + collectionToken)}, all(twoValues)},
		{"twice in the query", []option{query("token=a&token=a")}, all("400 two_credentials: the parameter token is given more than once")},
		{"collection token as the admin's", []option{header("X-Admin-Token", collectionToken)}, all(denied)},
		{"collection token as a session", []option{session(collectionToken)}, all(denied)},
		{"project admin token", []option{token(projectToken)}, [5]string{"200", "200", noRead, "200", noUsers}},
		{"project admin token as the server's", []option{header("X-Admin-Token", projectToken)}, all(denied)},
		{"admin token", []option{admin}, all("200")},
		{"admin token as bearer", []option{header("Authorization", "Bearer "+adminToken)}, all("200")},
		{"admin token as bearer, other case", []option{header("Authorization", "bearer "+adminToken)}, all("200")},
		{"admin token both ways", []option{admin, header("Authorization", "Bearer "+adminToken)}, all("200")},
		{"two admin tokens", []option{admin, header("Authorization", "Bearer x")}, all(twoValues)},
		{"admin token as token", []option{token(adminToken)}, [5]string{denied, denied, noRead, noReload, noUsers}},
		{"admin token as session", []option{session(adminToken)}, all(denied)},
		{"admin token in the query", []option{query("x-admin-token=" + adminToken)}, [5]string{"400 unknown_parameter: unknown query parameter: x-admin-token", denied, denied, denied, denied}},
		{"wrong admin token", []option{header("X-Admin-Token", "x")}, all(denied)},
		{"beginning of the admin token", []option{header("X-Admin-Token", adminToken[:10])}, all(denied)},
		{"basic", []option{header("Authorization", "Basic eDp5")}, all(denied)},
		{"bearer without a space", []option{header("Authorization", "Bearer"+adminToken)}, all(denied)},
		{"header twice", []option{func(r *http.Request) { r.Header["X-Admin-Token"] = []string{adminToken, adminToken} }}, all("400 two_credentials: the header X-Admin-Token is given more than once")},
		{"user", []option{session(plain)}, [5]string{"200", denied, denied, denied, denied}},
		{"user with scopes", []option{session(reader)}, [5]string{"200", denied, "200", denied, "200"}},
		{"admin user", []option{session(boss)}, all("200")},
		{"revoked session", []option{session(revoked)}, all(denied)},
		{"no session", []option{session("x.y.z")}, all(denied)},
		{"session of another alg", []option{session("eyJhbGciOiJub25lIn0." + strings.Split(boss, ".")[1] + ".")}, all(denied)},
		{"session as token", []option{token(boss)}, [5]string{denied, denied, noRead, noReload, noUsers}},
		{"session as bearer", []option{header("Authorization", "Bearer "+boss)}, all(denied)},
		{"session and token", []option{session(boss), token(collectionToken)}, all(twoValues)},
		{"session and admin token", []option{session(boss), admin}, all(twoValues)},
		{"a megabyte of dots", []option{session(strings.Repeat(".", 40<<10))}, all(denied)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, op := range ops {
				options := tt.show
				if op.method == "PUT" {
					options = append([]option{text(`{"title": "B"}`)}, options...)
				}
				if got := s.do(op.method, op.path, options...); got.String() != tt.want[i] {
					t.Errorf("%s %s\ngot  %s\nwant %s", op.method, op.path, got, tt.want[i])
				}
			}
		})
	}
}

// query adds to the URL's query.
func query(more string) option {
	return func(r *http.Request) {
		if r.URL.RawQuery != "" {
			more = "&" + more
		}
		r.URL.RawQuery += more
	}
}

func TestSessionsEndAtOnce(t *testing.T) {
	s := runShop(t, nil)
	me := func(token string) string { return s.do("GET", "/api/v1/me", session(token)).String() }
	id, first := s.user("ann", nil)
	if me(first) != "200" {
		t.Fatal(me(first))
	}
	res := s.do("PUT", "/api/v1/me/password", session(first), json1(map[string]any{"currentPassword": password, "newPassword": password + "2"}))
	res.want(t, http.StatusOK)
	second := res.field("token")
	if me(first) != "403 permission_denied: permission denied" || me(second) != "200" {
		t.Error(me(first), me(second))
	}
	s.do("PUT", "/api/v1/user/"+id, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	if me(second) != "403 permission_denied: permission denied" {
		t.Error(me(second))
	}
}

// A config may grant a token rights to records, never to the system, whatever the token is called.
func TestReservedTokenNames(t *testing.T) {
	s := run(t, nil)
	s.register("odd", `
namespace: odd
collections:
  - name: items
    permissions:
      public: {methods: {}}
      user: {methods: {}}
      "token:x-admin-token": {methods: {get: true}}
      "token:Authorization": {methods: {get: true}}
      "token:X-Auth-Token": {methods: {get: true}}
      "token:fine": {methods: {get: true}}
`)
	for value, want := range map[string]string{
		"x-admin-token": "403", "X-Admin-Token": "403", "authorization": "403", "Authorization": "403", "x-auth-token": "403", "fine": "200",
	} {
		if got := s.do("GET", "/api/v1/_/odd/items", token(value)).String(); got[:3] != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func noop(*http.Request) {}
