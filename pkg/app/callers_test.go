package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const watchConfig = `
namespace: watch
actions:
  - name: watch
    hooks: {handle: {type: javascript, file: watch.js, timeout: 1m}}
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}, "token:` + collectionToken + `": {methods: {post: true}}}
    meta:
      methods:
        get: {}
        post: {execution: {kind: async, cancellable: true}}
  - name: look
    hooks: {handle: {type: javascript, file: watch.js, timeout: 1m}}
    permissions: {public: {methods: {}}, user: {methods: {get: true}}}
    meta: {methods: {get: {execution: {kind: async, cancellable: true}}}}
collections:
  - name: begun
    fields: [{name: run, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: items
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}}, "token:` + collectionToken + `": {methods: {get: true}}}
`

// watchScript goes on until its caller can see a record.
const watchScript = `module.exports = async (ctx) => {
  for (let round = 0; ; round++) {
    await db.transaction(async (tx) => { await tx.collection('items', {asUser: true}).count() })
    if ((await db.collection('items', {asUser: true}).find()).length) return 'stopped'
    if (round === 0) await db.collection('begun').insert({run: ctx.run.id})
    await sleep(20)
  }
}`

const watchActions = "/api/v1/_/watch/_/actions"

func runWatch(t *testing.T) *service {
	t.Helper()
	s := run(t, nil)
	s.file("watch", "watch.js", watchScript)
	s.register("watch", watchConfig)
	return s
}

// A run has no more rights than its caller has now: what they show is looked at as it goes on, not only when it began.
func TestRunsEndWithTheRight(t *testing.T) {
	t.Parallel()
	s := runWatch(t)
	begin := func(who option) string {
		t.Helper()
		got := s.do("POST", watchActions+"/watch", who)
		got.want(t, http.StatusAccepted)
		path := got.header.Get("Location")
		for { // until it has read something
			if strings.Contains(s.do("GET", "/api/v1/_/watch/begun", admin).body, path[strings.LastIndex(path, "/")+1:]) {
				return path
			}
			select {
			case <-t.Context().Done():
				t.Fatal(path, " does not begin")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	gone, goneToken := s.user("gone", nil)
	_, out := s.user("out", nil)
	_, stays := s.user("stays", map[string]any{"scopes": []string{"namespace.watch"}})
	pat, patValue := s.pat(stays, "namespace.watch")
	for _, tt := range []struct {
		name string
		who  option
		ends func()
	}{ // one after the other: a project has few runs at once
		{"a deactivated user", session(goneToken), func() {
			s.do("PUT", "/api/v1/user/"+gone, admin, text(`{"active": false}`)).want(t, http.StatusOK)
		}},
		{"a logout", session(out), func() { s.do("POST", "/api/v1/logout", session(out)).want(t, http.StatusNoContent) }},
		{"a revoked token", session(patValue), func() { s.do("DELETE", "/api/v1/token/"+pat, session(stays)).want(t, http.StatusOK) }},
		{"a right that ended", token(collectionToken), func() {
			s.configure("watch", strings.ReplaceAll(watchConfig, collectionToken, readToken))
			s.do("POST", "/api/v1/_/watch/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		}},
	} {
		path := begin(tt.who)
		tt.ends()
		if run := s.ended(path, admin); !strings.Contains(run, `"status":"failed"`) || !strings.Contains(run, `"code":"permission_denied"`) {
			t.Errorf("%s: %s", tt.name, run)
		}
	}
	rest := begin(session(stays))
	s.do("POST", "/api/v1/_/watch/items", admin, text(`{"title": "stop"}`)).want(t, http.StatusCreated)
	if run := s.ended(rest, admin); !strings.Contains(run, `"result":"stopped"`) {
		t.Errorf("somebody else: %s", run)
	}
}

// Who may only read an action ends none of what it does.
func TestWhoMayCancel(t *testing.T) {
	t.Parallel()
	s := runWatch(t)
	_, ann := s.user("ann", map[string]any{"scopes": []string{"namespace.watch"}})
	for _, tt := range []struct{ method, action, scope, see, cancel string }{
		{"POST", "watch", "namespace.watch._actions.watch.read", "200", denied},
		{"POST", "watch", "namespace.watch._actions.watch.create", "200", "202"},
		{"POST", "watch", "namespace.watch._actions.look.read", denied, denied},
		{"POST", "watch", "namespace.watch", "200", "202"},
		{"GET", "look", "namespace.watch._actions.look.read", "200", "202"},
	} {
		path := s.do(tt.method, watchActions+"/"+tt.action, session(ann)).header.Get("Location")
		_, pat := s.pat(ann, tt.scope)
		if got := s.do("GET", path, session(pat)); got.String() != tt.see {
			t.Errorf("%s sees: %s, want %s", tt.scope, got, tt.see)
		}
		if got := s.do("DELETE", path, session(pat)); got.String() != tt.cancel {
			t.Errorf("%s cancels: %s, want %s", tt.scope, got, tt.cancel)
		}
		if tt.cancel == denied {
			s.do("DELETE", path, admin).want(t, http.StatusAccepted)
		}
		if run := s.ended(path, session(ann)); !strings.Contains(run, `"status":"cancelled"`) {
			t.Errorf("%s: %s", tt.scope, run)
		}
	}
}
