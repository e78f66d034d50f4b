package app_test

import (
	"net/http"
	"strings"
	"testing"
)

const refusedConfig = `
namespace: refused
collections:
  - name: items
    strictFields: true
    fields:
      - {name: title, type: string, validator: {required: true, max: 5}}
      - {name: sku, type: string, index: [unique, sparse]}
      - {name: secretRule, type: string, validator: {max: 3}, hidden: true}
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: {bulk: true}, put: true}}}
  - name: closed
    fields: [{name: a, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: chained
    hooks: {post: {create: {type: javascript, file: items-as-user.js}}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: hooked
    hooks: {post: {bind: {type: javascript, file: bind.js}}}
    permissions: {public: {methods: {post: true}}, user: {methods: {post: true}}}
actions:
  - name: act
    hooks: {handle: {type: javascript, file: act.js}}
    permissions: {public: {methods: {post: true}}, user: {methods: {post: true}}}
    meta: {methods: {post: {}}}
`

// What a script does with its caller's rights is refused as if the caller had asked; what it does as the service, and lets
// pass, is its own failing.
func TestRefusalsOfScripts(t *testing.T) {
	const tries = `
const tries = {
  denied: (c) => c('closed').insert({a: 'x'}),
  list: (c) => c('closed').find(),
  invalid: (c) => c('items').insert({title: 'too long'}),
  many: (c) => c('items').insert([{title: 'a'}, {}]),
  taken: (c) => c('items').insert({title: 'a', sku: 'taken'}),
  absent: (c) => c('items').update('650102030405060708090a0b', {title: 'b'}),
  filter: (c) => c('items').find({$where: 1}),
  none: async (c) => ({found: await c('items').findOne('650102030405060708090a0b')}),
  wrong: (c) => c('items').find({}, {skip: 1}),
  inner: (c) => c('chained').insert({}),
  caught: async (c) => { try { await c('closed').find() } catch (e) { return {code: e.code} } },
}
const run = (name, asUser) => tries[name]((n) => db.collection(n, {asUser}))
`
	const failed = "500 script_failed: a script of the project failed"
	s := run(t, nil)
	s.file("refused", "act.js", tries+`module.exports = (ctx) => run(ctx.data.try, !ctx.data.service)`)
	s.file("refused", "bind.js", tries+`module.exports = async (ctx) => { await run(ctx.data.try, !ctx.data.service) }`)
	s.file("refused", "items-as-user.js", `module.exports = (ctx) => db.collection('items', {asUser: true}).insert({title: 'too long'})`)
	s.register("refused", refusedConfig)
	_, ann := s.user("ann", nil)
	s.do("POST", "/api/v1/_/refused/items", session(ann), text(`{"title": "a", "sku": "taken"}`)).want(t, http.StatusCreated)
	for _, tt := range []struct{ try, want, body string }{
		{"denied", denied, `"right":"create on closed"`},
		{"list", denied, `"right":"read on closed"`},
		{"invalid", "400 validation_failed: title: *", `"errors":[{"path":"title"`},
		{"many", "400 validation_failed: *", `"path":"items.1.title"`},
		{"taken", "409 *", `sku`},
		{"absent", "404 not_found: not found", ""},
		{"filter", "400 *", "$where"},
		{"wrong", failed, ""},
		{"inner", denied, `"right":"create on chained"`},
	} {
		for _, path := range []string{"/_/actions/act", "/hooked"} {
			got := s.do("POST", "/api/v1/_/refused"+path, session(ann), text(`{"try": "`+tt.try+`"}`))
			if want, open := strings.CutSuffix(tt.want, "*"); got.String() != tt.want && (!open || !strings.HasPrefix(got.String(), want)) || !strings.Contains(got.body, tt.body) {
				t.Errorf("%s of %s: %s %s", tt.try, path, got, got.body)
			}
		}
	}
	if strings.Contains(s.logs.String(), "code=permission_denied") || strings.Count(s.logs.String(), `msg="script failed"`) != 2 { // "wrong"
		t.Error("refusals of callers are logged as failures of scripts")
	}
	for _, try := range []string{"invalid", "many", "taken", "absent", "filter", "wrong", "inner"} {
		for _, path := range []string{"/_/actions/act", "/hooked"} {
			got := s.do("POST", "/api/v1/_/refused"+path, session(ann), text(`{"service": true, "try": "`+try+`"}`))
			if got.String() != failed || strings.Contains(got.body, "title:") || strings.Contains(got.body, "sku") {
				t.Errorf("%s of %s as the service: %s %s", try, path, got, got.body)
			}
		}
	}
	if !strings.Contains(s.logs.String(), "at=act.js:") || !strings.Contains(s.logs.String(), "title:") {
		t.Error("the log doesn't say what was refused, and where")
	}
	for try, want := range map[string]string{"none": `{"found":null}`, "caught": `{"code":"permission_denied"}`} {
		if got := s.do("POST", "/api/v1/_/refused/_/actions/act", session(ann), text(`{"try": "`+try+`"}`)); got.body != want {
			t.Errorf("%s: %s", try, got.body)
		}
	}
}
