package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A script that runs away again and again rests, and the project's status says so.
func TestSuspendedScriptsInStatus(t *testing.T) {
	s := run(t, nil)
	s.file("wild", "loop.js", `module.exports = (ctx) => { if (ctx.data.loop) for (;;) ; }`)
	id := s.register("wild", `
namespace: wild
collections:
- name: items
  permissions: {public: {methods: {post: true}}, user: {methods: {}}}
  hooks: {post: {bind: {type: javascript, file: loop.js, timeout: 50ms}}}
`)
	status := "/api/v1/project/" + id + "/status"
	s.do("GET", status, admin).lacks(t, "suspendedScripts")
	for range 5 {
		s.do("POST", "/api/v1/_/wild/items", text(`{"loop": true}`)).want(t, http.StatusGatewayTimeout)
	}
	s.do("POST", "/api/v1/_/wild/items", text(`{}`)).contains(t, http.StatusServiceUnavailable, `"code":"script_suspended"`)
	s.do("GET", status, admin).contains(t, http.StatusOK, `"suspendedScripts":[{"file":"loop.js","runaways":5,"until":"2`)
	s.do("GET", "/metrics", admin).contains(t, http.StatusOK, `svc_script_runs_total{namespace="wild",outcome="timeout"} 5`,
		`svc_script_runs_total{namespace="wild",outcome="suspended"} 1`, `svc_script_seconds_total{namespace="wild"} 0.`)
}

// lacks checks that the body of an answer doesn't contain a text.
func (a answer) lacks(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(a.body, text) {
		t.Errorf("%q is in %s", text, a.body)
	}
}
