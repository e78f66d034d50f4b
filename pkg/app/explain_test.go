package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

const explainPath = "/api/v1/_/team/_/admin/access/explain"

// teamConfig has sets whose filters name the caller.
const teamConfig = `
namespace: team
admin: {tokens: [{name: deploy, value: ` + projectToken + `}, {name: reloader, value: canary-reload-3Gt, rights: [reload]}]}
collections:
  - name: notes
    fields:
      - {name: owner, type: string}
      - {name: text, type: string}
      - {name: score, type: number}
      - {name: secret, type: string, hidden: true}
    projections: {card: {select: {text: 1}}}
    permissions:
      public: {methods: {get: {count: false}}, filter: {score: {$gte: 5}}, validProjections: [card], hiddenFields: [owner]}
      user: {methods: {get: true, put: {bulk: true}, delete: true}, filter: {owner: {$var: user.id}}, readonlyFields: [score]}
      "token:` + collectionToken + `": {methods: {get: true, post: true}}
      "token:` + readToken + `": {methods: {get: true}, filter: {secret: {$exists: true}}}
`

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestExplainAccess(t *testing.T) {
	var ahead atomic.Int64 // of the clock
	s := run(t, func(c *app.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	s.register("team", teamConfig)
	ann, annToken := s.user("ann", nil)
	bob, bobToken := s.user("bob", nil)
	gone, _ := s.user("gone", map[string]any{"active": true})
	s.do("PUT", "/api/v1/user/"+gone, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	readerID, reader := s.user("reader", map[string]any{"scopes": []string{"project.read"}})
	_, manager := s.user("manager", map[string]any{"scopes": []string{"project.read", "user.read"}})
	note := s.do("POST", "/api/v1/_/team/notes", admin, text(`{"owner": "`+ann+`", "text": "a", "score": 1}`)).field("id")

	readers := s.do("POST", "/api/v1/_/team/notes", admin, text(`{"owner": "`+readerID+`", "secret": "s"}`)).field("id")

	ask := func(who, more string) string {
		return `{"principal": ` + who + `, "collection": "notes"` + more + `}`
	}
	byName := func(name string) string { return `{"kind": "user", "username": "` + name + `"}` }
	pat := s.do("POST", "/api/v1/token", session(manager), json1(map[string]any{
		"name": "p", "scopes": []string{"project.read"}, "expiresAt": time.Now().Add(time.Hour),
	})).field("id")
	byPAT := `{"kind": "pat", "id": "` + pat + `"}`
	byToken := func(value string) string { return `{"kind": "token", "tokenHash": "` + hashOf(value) + `"}` }
	const nobody = `{"kind": "anonymous"}`
	get, put, post := `, "method": "get"`, `, "method": "put"`, `, "method": "post"`
	withID := `, "id": "` + note + `"`

	for _, tt := range []struct {
		name string
		by   option
		body string
		want string // the answer without steps, or the problem
	}{
		{"anyone reads", admin, ask(nobody, get), `{"principal": {"kind": "anonymous"}, "method": "get", "collection": "notes", "allowed": true,
			"rule": "public", "reason": "the set public allows get", "filter": {"score": {"$gte": 5}}, "hidden": ["owner", "secret"],
			"grant": {"bulk": false, "count": false, "facet": true, "lookup": false, "aggregate": false, "projections": ["card"]}}`},
		{"anyone writes", admin, ask(nobody, put), `{"principal": {"kind": "anonymous"}, "method": "put", "collection": "notes", "allowed": false,
			"rule": "public", "reason": "the set public does not allow put"}`},
		{"a user, bound", admin, ask(byName("Ann"), put+withID), `{"principal": {"kind": "user", "id": "` + ann + `", "username": "ann"}, "method": "put", "collection": "notes",
			"allowed": true, "rule": "user", "reason": "the set user allows put", "filter": {"owner": {"$eq": "` + ann + `"}}, "hidden": ["secret"], "readonly": ["score"],
			"grant": {"bulk": true, "count": true, "facet": true, "lookup": false, "aggregate": false, "projections": null}, "record": {"id": "` + note + `", "visible": true}}`},
		{"another user does not reach it", admin, ask(`{"kind": "user", "id": "`+bob+`"}`, `, "method": "delete"`+withID), `{"principal": {"kind": "user", "id": "` + bob + `", "username": "bob"}, "method": "delete", "collection": "notes",
			"allowed": true, "rule": "user", "reason": "the set user allows delete", "filter": {"owner": {"$eq": "` + bob + `"}}, "hidden": ["secret"], "readonly": ["score"],
			"grant": {"bulk": false, "count": true, "facet": true, "lookup": false, "aggregate": false, "projections": null}, "record": {"id": "` + note + `", "visible": false}}`},
		{"refused and so not reached", admin, ask(nobody, put+withID), `{"principal": {"kind": "anonymous"}, "method": "put", "collection": "notes", "allowed": false,
			"rule": "public", "reason": "the set public does not allow put", "record": {"id": "` + note + `", "visible": false}}`},
		{"a collection token", admin, ask(byToken(collectionToken), post), `{"principal": {"kind": "token", "tokenHash": "` + hashOf(collectionToken) + `"}, "method": "post", "collection": "notes",
			"allowed": true, "rule": "token:sha256:` + hashOf(collectionToken)[:8] + `…", "reason": "the set token:sha256:` + hashOf(collectionToken)[:8] + `… allows post", "hidden": ["secret"],
			"grant": {"bulk": false, "count": true, "facet": true, "lookup": false, "aggregate": false, "projections": null}}`},
		{"a project admin token", admin, ask(byToken(projectToken), post), `{"principal": {"kind": "token", "tokenHash": "` + hashOf(projectToken) + `"}, "method": "post", "collection": "notes",
			"allowed": true, "rule": "project admin token", "reason": "the project's admin token deploy has the right collections",
			"grant": {"bulk": true, "count": true, "facet": true, "lookup": true, "aggregate": true, "projections": null}}`},
		{"one for reloads alone", admin, ask(byToken("canary-reload-3Gt"), get), `{"principal": {"kind": "token", "tokenHash": "` + hashOf("canary-reload-3Gt") + `"}, "method": "get", "collection": "notes",
			"allowed": false, "rule": "project admin token", "reason": "the project's admin token reloader lacks the right collections"}`},
		{"an unknown token", admin, ask(byToken("x"), get), `{"principal": {"kind": "token", "tokenHash": "` + hashOf("x") + `"}, "method": "get", "collection": "notes",
			"allowed": false, "rule": "credential", "reason": "neither the collection nor the project has this token, or it has expired"}`},
		{"somebody who is not active", admin, ask(byName("gone"), get), `{"principal": {"kind": "user", "id": "` + gone + `", "username": "gone"}, "method": "get", "collection": "notes",
			"allowed": false, "rule": "credential", "reason": "the user is not active: whatever they show is refused"}`},
		{"the admin token", admin, ask(`{"kind": "admin"}`, get), `{"principal": {"kind": "admin"}, "method": "get", "collection": "notes",
			"allowed": true, "rule": "administrator", "reason": "administrators and the server admin token may do everything",
			"grant": {"bulk": true, "count": true, "facet": true, "lookup": true, "aggregate": true, "projections": null}}`},

		// Who may ask, and about whom.
		{"without project.read", session(annToken), ask(nobody, get), denied},
		{"a collection token asks", token(collectionToken), ask(nobody, get), "403 permission_denied: permission denied: admin token lacks permission project.read"},
		{"a project admin token asks", token(projectToken), ask(nobody, get), "403 permission_denied: permission denied: admin token lacks permission project.read"},
		{"about users without user.read", session(reader), ask(byName("ann"), get), denied},
		{"about nobody without user.read", session(reader), ask(byName("nobody"), get), denied},
		{"about nobody", session(manager), ask(byName("nobody"), get), "404 not_found: user not found"},
		{"about an unknown id", admin, ask(`{"kind": "user", "id": "`+unknownID+`"}`, get), "404 not_found: user not found"},
		{"a record that the asking can't see", session(manager), ask(byName("ann"), put+withID), notFound},
		{"with project.read alone", session(reader), ask(nobody, post), `{"principal": {"kind": "anonymous"}, "method": "post", "collection": "notes", "allowed": false,
			"rule": "public", "reason": "the set public does not allow post"}`},
		{"a filter on what is hidden from the asking", session(reader), ask(byToken(readToken), get+`, "id": "`+readers+`"`), denied},
		{"no such record", admin, ask(nobody, get+`, "id": "`+unknownID+`"`), notFound},
		{"no id", admin, ask(nobody, get+`, "id": "x"`), badID},

		{"no such collection", admin, `{"principal": {"kind": "admin"}, "collection": "none", "method": "get"}`, "404 collection_not_found: collection not found"},
		{"nothing", admin, `{}`, "400 validation_failed: method: must be get, post, put or delete (and 2 more)"},
		{"no method", admin, ask(nobody, ``), "400 validation_failed: method: must be get, post, put or delete"},
		{"another method", admin, ask(nobody, `, "method": "GET"`), "400 validation_failed: method: must be get, post, put or delete"},
		{"an operator", admin, ask(`{"kind": "user", "username": {"$gt": ""}}`, get), "400 validation_failed: principal.username: must be a string (and 1 more)"},
		{"an unknown member", admin, ask(`{"kind": "user", "token": "x"}`, get), "400 validation_failed: principal.token: unknown field (and 1 more)"},
		{"an unknown kind", admin, ask(`{"kind": "root"}`, get), "400 validation_failed: principal: must have a kind: anonymous, user, pat, token or admin"},
		{"a pat without its scope", session(manager), ask(byPAT, get), `{"principal": {"kind": "pat", "id": "` + pat + `"}, "method": "get", "collection": "notes",
			"allowed": false, "rule": "scopes", "reason": "neither the token's scopes nor its owner's give namespace.team.notes.read"}`},
		{"somebody else's pat", session(reader), ask(byPAT, get), "404 not_found: token not found"},
		{"a pat by name", admin, ask(`{"kind": "pat", "username": "p"}`, get), "400 validation_failed: principal: takes id with the kind pat"},
		{"a user without a name", admin, ask(`{"kind": "user"}`, get), "400 validation_failed: principal: takes either id or username with the kind user"},
		{"no hash", admin, ask(`{"kind": "token", "tokenHash": "abc"}`, get), "400 validation_failed: principal.tokenHash: must be the SHA-256 of the token, as 64 hex digits"},
		{"anyone by name", admin, ask(`{"kind": "anonymous", "username": "ann"}`, get), "400 validation_failed: principal: takes no id, username or tokenHash with the kind anonymous"},
		{"a post to a record", admin, ask(nobody, post+withID), "400 validation_failed: id: a post makes a record, and has none to look at: leave id out"},
	} {
		got := s.do("POST", explainPath, tt.by, text(tt.body))
		if got.status != http.StatusOK || tt.want[0] != '{' {
			if got.String() != tt.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
			}
			continue
		}
		var answer, want map[string]any
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(tt.name, err)
		}
		if steps, ok := answer["steps"].([]any); !ok || len(steps) == 0 {
			t.Errorf("%s: no steps: %s", tt.name, got.body)
		}
		delete(answer, "steps")
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}

	// Everybody may ask about themselves, and what they are told is what they get.
	s.do("POST", explainPath, session(reader), text(ask(byName("reader"), get))).want(t, http.StatusOK)
	for who, show := range map[string]option{byName("ann"): session(annToken), byName("bob"): session(bobToken), nobody: noop, byToken(collectionToken): token(collectionToken)} {
		explained := s.do("POST", explainPath, admin, text(ask(who, get+withID)))
		explained.want(t, http.StatusOK)
		var x struct{ Record struct{ Visible bool } }
		if err := json.Unmarshal([]byte(explained.body), &x); err != nil {
			t.Fatal(err)
		}
		if read := s.do("GET", "/api/v1/_/team/notes/"+note, show); (read.status == http.StatusOK) != x.Record.Visible {
			t.Errorf("%s: a read is %s, explained as %s", who, read, explained.body)
		}
	}

	ahead.Store(int64(2 * time.Hour))
	over := s.do("POST", explainPath, admin, text(ask(byPAT, get)))
	if over.field("rule") != "credential" || over.field("reason") != "the token has expired or was revoked, or its owner is not active: it is refused" {
		t.Errorf("a pat that is over: %s", over.body)
	}
}

// A filter may hold what must not be shown: what ${…} stands for in it is masked, whatever it has become in the field's type.
func TestExplainMasksWhatFiltersHoldOfSecrets(t *testing.T) {
	env := map[string]string{"KEY": "hunter2 \"secret\"", "NUMBER": "987654321"}
	s := run(t, func(c *app.Config) { c.Env = func(name string) (string, bool) { v, ok := env[name]; return v, ok } })
	s.register("team", `
namespace: team
collections:
  - name: notes
    fields: [{name: key, type: string}, {name: number, type: number}, {name: score, type: number}]
    permissions:
      public: {methods: {get: true}, filter: {key: '${env:KEY}', number: '${env:NUMBER}', score: {$gte: 5}}}
      user: {methods: {}}
`)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read"}})
	got := s.do("POST", explainPath, session(reader), text(`{"principal": {"kind": "anonymous"}, "method": "get", "collection": "notes"}`))
	got.want(t, http.StatusOK)
	if filter, want := got.at("filter"), `{"key":{"$eq":"***"},"number":{"$eq":"***"},"score":{"$gte":5}}`; filter != want {
		t.Errorf("%s, want %s", filter, want)
	}
}
