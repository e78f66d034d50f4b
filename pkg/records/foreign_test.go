package records_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const referring = `
collections:
- name: people
  fields: [{name: pub, type: boolean}, {name: code, type: string}]
  permissions: {public: {methods: {}}, user: {methods: {get: true}, filter: {pub: true}, hiddenFields: [code]}}
- name: closed
  permissions: {public: {methods: {}}, user: {methods: {}}}
- name: items
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true, put: true}}}
  fields:
  - {name: title, type: string}
  - {name: who, type: string, validator: {exists: true}, meta: {foreign: {collection: people, key: _id}}}
  - {name: all, type: "string[]", validator: {exists: true}, meta: {foreign: {collection: people, key: _id}}}
  - {name: code, type: string, validator: {exists: true}, meta: {foreign: {collection: people, key: code}}}
  - {name: shut, type: string, validator: {exists: true}, meta: {foreign: {collection: closed, key: _id}}}
  - {name: parts, type: "object[]", subFields: [{name: who, type: string, validator: {exists: true}, meta: {foreign: {collection: people, key: _id}}}, {name: n, type: number}]}
`

// fillReferring stores a person that users may read (1), one that they may not (2), and a record behind closed doors (3).
func (w *world) fillReferring() {
	w.shelve("people", `{"_id": "@1", "pub": true, "code": "a"}`, `{"_id": "@2", "code": "b"}`)
	w.shelve("closed", `{"_id": "@3"}`)
}

// numbered writes the ids that stand for numbers into a body.
func numbered(body string) string {
	return strings.NewReplacer("@1", number(1).Hex(), "@2", number(2).Hex(), "@3", number(3).Hex(), "@9", number(9).Hex()).Replace(body)
}

// What the rule exists refuses is the same whether there is no such record, or one that the caller may not read.
func TestExistsTellsOfNothingUnreadable(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, referring)
		w.fillReferring()
		missing := func(path, in string) string {
			return "validation_failed: " + path + ": refers to a record of " + in + " that does not exist, or that you may not read"
		}
		for _, tt := range []struct{ who, body, want string }{
			{"alice", `{"who": "@1"}`, "ok"},
			{"alice", `{"who": "@2"}`, missing("who", "people")},
			{"alice", `{"who": "@9"}`, missing("who", "people")},
			{"alice", `{"all": ["@1", "@2"]}`, missing("all", "people")},
			{"alice", `{"parts": [{"who": "@1"}, {"who": "@2"}]}`, missing("parts.1.who", "people")},
			{"alice", `{"code": "a"}`, missing("code", "people")}, // the key is hidden
			{"alice", `{"code": "x"}`, missing("code", "people")},
			{"alice", `{"shut": "@3"}`, missing("shut", "closed")},
			{"alice", `{"shut": "@9"}`, missing("shut", "closed")},
			{"admin", `{"who": "@2", "all": ["@1", "@2"], "code": "b", "shut": "@3"}`, "ok"},
			{"admin", `{"who": "@9"}`, missing("who", "people")},
		} {
			if _, err := w.service.Create(t.Context(), w.call(tt.who), doc(t, numbered(tt.body))); show(err) != tt.want {
				t.Errorf("%s creates %s: %s, want %s", tt.who, tt.body, show(err), tt.want)
			}
		}
	})
}

// A caller may send back what others have put there, and no more of the kind.
func TestExistsLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, referring)
		w.fillReferring()
		const before = `{"who": "@2", "all": ["@2"], "parts": [{"who": "@2", "n": 1}]}`
		for body, want := range map[string]string{
			`{"title": "A"}`: "ok",
			before:           "ok",
			`{"all": ["@1", "@2"], "parts": [{"who": "@1"}, {"who": "@2", "n": 2}]}`: "ok",
			`{"all": ["@2", "@9"]}`: "validation_failed: all: refers to a record of people that does not exist, or that you may not read",
		} {
			for _, mode := range []records.UpdateMode{records.Merge, records.Overwrite} {
				res, err := w.service.Create(t.Context(), w.call("admin"), doc(t, numbered(before)))
				if err != nil {
					t.Fatal(err)
				}
				_, err = w.service.Update(t.Context(), w.call("alice"), res.ID, records.Change{Mode: mode, Body: doc(t, numbered(body))})
				if show(err) != want {
					t.Errorf("%s in mode %d: %s, want %s", body, mode, show(err), want)
				}
			}
		}
	})
}

// A script may refer to what the caller can't read, and does not lend its eyes to what the caller has said.
func TestExistsOfScripts(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for _, stage := range []string{"bind", "create"} {
			member := map[string]string{"bind": "data", "create": "doc"}[stage]
			w := newScripted(t, s, referring+"  hooks: {post: {"+stage+": {type: javascript, file: a.js}}}\n", map[string]string{
				"a.js": "export default (ctx) => { const d = ctx." + member + "; " +
					numbered("d.who = '@2'; if (d.parts) d.parts[0].n = 7; return d }"),
			})
			w.fillReferring()
			for body, want := range map[string]string{
				`{"title": "A"}`:             "ok",
				`{"parts": [{"who": "@1"}]}`: "ok",
				`{"parts": [{"who": "@2"}]}`: "validation_failed: parts.0.who: refers to a record of people that does not exist, or that you may not read",
			} {
				if _, err := w.service.Create(t.Context(), w.call("alice"), doc(t, numbered(body))); show(err) != want {
					t.Errorf("%s: %s: %s, want %s", stage, body, show(err), want)
				}
			}
		}
	})
}
