package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

// slowly sends a request whose body comes when meanwhile has run: the server has let the caller in by then, since it asks
// for the body.
func (s *service) slowly(method, path, credential, body string, meanwhile func()) answer {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s /api/v1%s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
		method, path, credential, len(body))
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		s.t.Fatalf("the body is not asked for: %q %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil { // the empty line after it
		s.t.Fatal(err)
	}
	meanwhile()
	if _, err := conn.Write([]byte(body)); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(res.Body).WriteTo(&b); err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, b.String()}
}

const slowConfig = `
namespace: blog
collections:
  - name: notes
    permissions:
      public: {methods: {}}
      user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}}}
      "token:` + collectionToken + `": {methods: {post: true}}
`

// What is revoked while a body is on its way, which takes as long as its sender likes, writes nothing: at each door, and
// whatever is revoked by whatever means.
func TestWhatIsRevokedWhileItsBodyIsUnderWayWritesNothing(t *testing.T) {
	for name, change := range map[string]func(*testing.T) func(*app.Config){
		"embedded": func(*testing.T) func(*app.Config) { return nil },
		"mongodb": func(t *testing.T) func(*app.Config) {
			cfg := onMongo(t)
			return func(c *app.Config) { c.StoreURI = cfg.StoreURI }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := run(t, change(t))
			s.user("root", map[string]any{"isAdmin": true}) // so that others needn't stay
			project := s.register("blog", slowConfig)
			type caller struct{ id, session, pat, patID string }
			put := func(path, body string) func(caller) {
				return func(c caller) {
					s.do("PUT", strings.ReplaceAll("/api/v1"+path, "<id>", c.id), admin, text(body)).want(t, http.StatusOK)
				}
			}
			deactivate, demote := put("/user/<id>", `{"active": false}`), put("/user/<id>", `{"isAdmin": false}`)
			reset := put("/user/<id>", `{"password": "set by an admin"}`)
			remove := func(c caller) { s.do("DELETE", "/api/v1/user/"+c.id, admin).want(t, http.StatusOK) }
			logout := func(c caller) {
				s.do("POST", "/api/v1/logout", session(c.session)).want(t, http.StatusNoContent)
			}
			revoke := func(c caller) {
				s.do("DELETE", "/api/v1/token/"+c.patID, session(c.session)).want(t, http.StatusOK)
			}
			reconfigure := func(caller) {
				s.configure("blog", strings.ReplaceAll(slowConfig, collectionToken, "another-token"))
				s.do("POST", "/api/v1/_/blog/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
			}
			bySession := func(c caller) string { return "X-Auth-Token: " + c.session }
			byCookie := func(c caller) string { return "Cookie: svc_session=" + c.session }
			byPAT := func(c caller) string { return "X-Auth-Token: " + c.pat }
			byToken := func(caller) string { return "Token: " + collectionToken }
			note := s.do("POST", "/api/v1/_/blog/notes", admin, text(`{"n": 0}`)).field("id")
			for i, tc := range []struct {
				what, method, path, body string
				by                       func(caller) string
				meanwhile                func(caller)
				want                     int
			}{
				{"an administrator is deactivated", "POST", "/user", `{"username": "evil", "password": "evilevilevil", "isAdmin": true}`, bySession, deactivate, 403},
				{"an administrator is demoted", "POST", "/user", `{"username": "evil", "password": "evilevilevil", "isAdmin": true}`, bySession, demote, 403},
				{"an administrator is demoted", "PUT", "/user/<id>", `{"isAdmin": true}`, bySession, demote, 403},
				{"an administrator is demoted", "POST", "/org", `{"name": "evil"}`, byCookie, demote, 403},
				{"an administrator is demoted", "PUT", "/project/" + project, `{"name": "evil"}`, bySession, demote, 403},
				{"a password is reset", "PUT", "/me/password", `{"currentPassword": "` + password + `", "newPassword": "evilevilevil"}`, bySession, reset, 403},
				{"a logout", "POST", "/token", `{"name": "evil", "scopes": []}`, bySession, logout, 403},
				{"a logout", "POST", "/_/blog/notes", `{"evil": 1}`, byCookie, logout, 403},
				{"a deletion", "POST", "/_/blog/notes", `{"items": [{"evil": 1}]}`, bySession, remove, 403},
				{"a deletion", "PUT", "/_/blog/notes?filter={}", `{"evil": 1}`, bySession, remove, 403},
				{"a deactivation", "PATCH", "/_/blog/notes/" + note, `{"evil": 1}`, bySession, deactivate, 403},
				{"a personal access token is deleted", "POST", "/_/blog/notes", `{"evil": 1}`, byPAT, revoke, 403},
				{"a collection token leaves the config", "POST", "/_/blog/notes", `{"evil": 1}`, byToken, reconfigure, 403},
				{"the project ends", "POST", "/_/blog/notes", `{"evil": 1}`, bySession, put("/project/"+project, `{"enabled": false}`), 404},
			} {
				t.Run(tc.what+" "+tc.method+" "+tc.path, func(t *testing.T) {
					var c caller
					c.id, c.session = s.user(fmt.Sprintf("caller%d", i), map[string]any{"isAdmin": true})
					made := s.do("POST", "/api/v1/token", session(c.session), text(`{"name": "t", "scopes": ["namespace.blog"]}`))
					made.want(t, http.StatusCreated)
					c.pat, c.patID = made.field("token"), made.field("id")
					path := strings.ReplaceAll(tc.path, "<id>", c.id)
					got := s.slowly(tc.method, path, tc.by(c), tc.body, func() { tc.meanwhile(c) })
					got.want(t, tc.want)
				})
			}
			s.do("PUT", "/api/v1/project/"+project, admin, text(`{"enabled": true}`)).want(t, http.StatusOK)
			for _, path := range []string{"user", "org", "token", "project", "_/blog/notes"} {
				if all := s.do("GET", "/api/v1/"+path+"?limit=1000", admin); strings.Contains(all.body, "evil") {
					t.Errorf("%s: something was written: %s", path, all.body)
				}
			}
		})
	}
}
