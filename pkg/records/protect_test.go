package records_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// guarded hides and locks fields at every place where a field can be.
var guarded = collections(`
name: items
fields:
  - {name: title, type: string}
  - {name: secret, type: string, hidden: true}
  - {name: lock, type: string, readonly: true}
  - name: seo
    type: object
    subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}, {name: lock, type: string, readonly: true}]
  - name: parts
    type: "object[]"
    subFields: [{name: sku, type: string}, {name: cost, type: number, hidden: true}, {name: serial, type: string, readonly: true}]
  - {name: data, type: any}
hiddenFields: [data.secret]
readonlyFields: [data.lock]
` + open + `  "token:blind":
    methods: {get: true, put: true}
    hiddenFields: [createdBy, seo]
`)

const full = `{"title": "A", "secret": "s", "lock": "l", "seo": {"title": "T", "score": 1, "lock": "l"},
	"parts": [{"sku": "a", "cost": 1, "serial": "x"}, {"sku": "b", "cost": 2, "serial": "y"}, {"sku": "c", "cost": 3, "serial": "z"}],
	"data": {"x": 1, "secret": "s", "lock": "l"}}`

const mixed = "validation_failed: parts: holds fields that you can't see or write: change and remove its elements in separate requests"

// without is what a caller sees of full, or sends back.
const without = `"data":{"lock":"l","x":1},"lock":"l","parts":[{"serial":"x","sku":"a"},{"serial":"y","sku":"b"},{"serial":"z","sku":"c"}],"seo":{"lock":"l","title":"T"},"title":"A"`

// stored is what must be in the store, of the parts of full that a test does not change.
func storedFull(data, parts, seo, title string) string {
	or := func(given, otherwise string) string {
		if given == "" {
			return otherwise
		}
		return given
	}
	return `{"data":` + or(data, `{"lock":"l","secret":"s","x":1}`) + `,"lock":"l","parts":` +
		or(parts, `[{"cost":1,"serial":"x","sku":"a"},{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"c"}]`) +
		`,"secret":"s","seo":` + or(seo, `{"lock":"l","score":1,"title":"T"}`) + `,"title":"` + or(title, "A") + `"}`
}

func TestGuard(t *testing.T) {
	merge, overwrite, patch := records.Merge, records.Overwrite, records.JSONPatch
	for _, tt := range []struct {
		name string
		mode records.UpdateMode
		body string
		want string // what the store has, or the error
	}{
		{"other field", merge, `{"title": "B"}`, storedFull("", "", "", "B")},
		{"what was read comes back", merge, `{` + without + `}`, storedFull("", "", "", "")},
		{"what was read comes back whole", overwrite, `{` + without + `}`, storedFull("", "", "", "")},
		{"replace by nearly nothing", overwrite, `{"title": "B"}`, `{"data":{"lock":"l","secret":"s"},"lock":"l","secret":"s","seo":{"lock":"l","score":1},"title":"B"}`},
		{
			"patch away all that is seen", patch, `[{"op": "replace", "path": "", "value": {"title": "B"}}]`,
			"validation_failed: lock: is read-only for you",
		},

		{"name a hidden field", merge, `{"secret": "x"}`, "validation_failed: secret: unknown field"},
		{"take a hidden field away", merge, `{"secret": null}`, "validation_failed: secret: unknown field"},
		{"hidden as it is", merge, `{"secret": "s"}`, "validation_failed: secret: unknown field"},
		{"hidden below", merge, `{"seo": {"score": 1}}`, "validation_failed: seo.score: unknown field"},
		{"hidden in a list", merge, `{"parts": [{"sku": "a"}, {"cost": 2}]}`, "validation_failed: parts: holds fields that you can't see or write: change and remove its elements in separate requests (and 1 more) [parts elements] [parts.1.cost unknown]"},
		{"hidden in any", merge, `{"data": {"secret": null}}`, "validation_failed: data.secret: unknown field"},
		{"hidden in a list in any", merge, `{"data": [[{"secret": 1}]]}`, "validation_failed: data: must stay an object (and 1 more) [data type] [data.0.0.secret unknown]"},
		{"hidden by a pointer", patch, `[{"op": "add", "path": "/seo/score", "value": 9}]`, "validation_failed: seo.score: unknown field"},
		{"hidden tested", patch, `[{"op": "test", "path": "/secret", "value": "s"}]`, `patch_test_failed: operation 0: the value at "/secret" is not the one tested for`},
		{"hidden copied", patch, `[{"op": "copy", "from": "/secret", "path": "/title"}]`, `bad_patch: operation 0: there is nothing at "/secret"`},
		{"hidden removed", patch, `[{"op": "remove", "path": "/secret"}]`, `bad_patch: operation 0: there is no such place: "/secret"`},
		{
			"hidden moved with its parent", patch, `[{"op": "move", "from": "/seo", "path": "/data/y"}]`,
			`{"data":{"lock":"l","secret":"s","x":1,"y":{"lock":"l","title":"T"}},"lock":"l","parts":[{"cost":1,"serial":"x","sku":"a"},{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"c"}],"secret":"s","seo":{"lock":"l","score":1},"title":"A"}`,
		},

		{"readonly as it is", merge, `{"lock": "l", "seo": {"lock": "l"}}`, storedFull("", "", "", "")},
		{"readonly", merge, `{"lock": "x"}`, "validation_failed: lock: is read-only for you"},
		{"readonly away", merge, `{"lock": null}`, "validation_failed: lock: is read-only for you"},
		{"readonly away below", merge, `{"seo": {"lock": null}}`, "validation_failed: seo.lock: is read-only for you"},
		{"readonly that is not there", merge, `{"seo": {"title": "T"}, "data": {"y": null}}`, storedFull("", "", "", "")},
		{"readonly removed", patch, `[{"op": "remove", "path": "/lock"}]`, "validation_failed: lock: is read-only for you"},
		{"readonly moved", patch, `[{"op": "move", "from": "/seo/lock", "path": "/title"}]`, "validation_failed: seo.lock: is read-only for you"},
		{"readonly below", merge, `{"seo": {"lock": "x"}}`, "validation_failed: seo.lock: is read-only for you"},
		{"readonly in any", merge, `{"data": {"lock": "x"}}`, "validation_failed: data.lock: is read-only for you"},
		{"readonly of another type", merge, `{"data": {"lock": {"l": 1}}}`, "validation_failed: data.lock: is read-only for you"},
		{"readonly in a list", merge, `{"parts": [{"sku": "a", "serial": "q"}, {"sku": "b"}, {"sku": "c"}]}`, "validation_failed: parts.0.serial: is read-only for you"},
		{"readonly in a new element", merge, `{"parts": [{"sku": "a"}, {"sku": "b"}, {"sku": "c"}, {"sku": "d", "serial": "q"}]}`, "validation_failed: parts.3.serial: is read-only for you"},
		{"readonly by a pointer", patch, `[{"op": "replace", "path": "/parts/1/serial", "value": "q"}]`, "validation_failed: parts.1.serial: is read-only for you"},

		{"parent away", merge, `{"seo": null}`, storedFull("", "", `{"lock":"l","score":1}`, "")},
		{"parent of another type", merge, `{"data": "x"}`, "validation_failed: data: must stay an object"},
		{"parent becomes a list", merge, `{"data": []}`, "validation_failed: data: must stay an object"},
		{"parent becomes a list with it", merge, `{"data": [{"lock": "x"}]}`, "validation_failed: data: must stay an object"},
		{"parent replaced", merge, `{"data": {"y": 2, "x": null}}`, storedFull(`{"lock":"l","secret":"s","y":2}`, "", "", "")},

		{
			"elements in another order", merge, `{"parts": [{"sku": "c"}, {"sku": "a"}, {"sku": "b"}]}`,
			storedFull("", `[{"cost":3,"serial":"z","sku":"c"},{"cost":1,"serial":"x","sku":"a"},{"cost":2,"serial":"y","sku":"b"}]`, "", ""),
		},
		{
			"element in front", merge, `{"parts": [{"sku": "n"}, {"sku": "a"}, {"sku": "b"}, {"sku": "c"}]}`,
			storedFull("", `[{"sku":"n"},{"cost":1,"serial":"x","sku":"a"},{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"c"}]`, "", ""),
		},
		{
			"element changed", merge, `{"parts": [{"sku": "a"}, {"sku": "B"}, {"sku": "c"}]}`,
			storedFull("", `[{"cost":1,"serial":"x","sku":"a"},{"cost":2,"serial":"y","sku":"B"},{"cost":3,"serial":"z","sku":"c"}]`, "", ""),
		},
		{
			"element away", merge, `{"parts": [{"sku": "b"}, {"sku": "c"}]}`,
			storedFull("", `[{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"c"}]`, "", ""),
		},
		{"element twice", merge, `{"parts": [{"sku": "a"}, {"sku": "a"}]}`, mixed},
		{"one away, another changed", merge, `{"parts": [{"sku": "b"}, {"sku": "C"}]}`, mixed},
		{"one new, another changed", merge, `{"parts": [{"sku": "a"}, {"sku": "B"}, {"sku": "c"}, {"sku": "d"}]}`, mixed},
		{
			"one away, another changed by pointers", patch,
			`[{"op": "remove", "path": "/parts/0"}, {"op": "replace", "path": "/parts/1/sku", "value": "C"}]`, mixed,
		},
		{"all changed, and one away", overwrite, `{"title": "A", "parts": [{"sku": "A"}, {"sku": "B"}]}`, mixed},
		{
			"two changed in another order", merge, `{"parts": [{"sku": "C"}, {"sku": "b"}, {"sku": "A"}]}`,
			storedFull("", `[{"cost":1,"serial":"x","sku":"C"},{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"A"}]`, "", ""),
		},
		{
			"one away, one in its place by position alone", merge, `{"parts": [{"sku": "b"}, {"sku": "c"}, {"sku": "n"}]}`,
			storedFull("", `[{"cost":2,"serial":"y","sku":"b"},{"cost":3,"serial":"z","sku":"c"},{"cost":1,"serial":"x","sku":"n"}]`, "", ""),
		},
		{
			"members in another order", merge, `{"parts": [{"serial": "z", "sku": "c"}, {"sku": "a", "serial": "x"}]}`,
			storedFull("", `[{"cost":3,"serial":"z","sku":"c"},{"cost":1,"serial":"x","sku":"a"}]`, "", ""),
		},
		{"all elements away", merge, `{"parts": []}`, storedFull("", `[]`, "", "")},
		{"system field", merge, `{"_rev": 1, "title": "B"}`, storedFull("", "", "", "B")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, guarded)
				id := w.create("admin", full)
				before := w.everything()
				ch := records.Change{Mode: tt.mode, Patch: []byte(tt.body)}
				if tt.mode != patch {
					ch = records.Change{Mode: tt.mode, Body: doc(t, tt.body)}
				}
				res, err := w.service.Update(t.Context(), w.call("alice"), id, ch)
				if err != nil {
					if show(err) != tt.want {
						t.Errorf("got  %s\nwant %s", show(err), tt.want)
					}
					if w.everything() != before {
						t.Error("something was written")
					}
					return
				}
				if got := w.stored(id); got != tt.want {
					t.Errorf("stored %s\nwant   %s", got, tt.want)
				}
				if answer := seen(t, res.Record); strings.Contains(answer, "secret") || strings.Contains(answer, "cost") || strings.Contains(answer, "score") {
					t.Errorf("the answer shows what is hidden: %s", answer)
				}
			})
		})
	}
}

// Elements that look the same but for what is readonly stay themselves, however they are ordered.
func TestGuardTellsElementsApartByReadonlyFields(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), guarded)
	id := w.create("admin", `{"parts": [{"sku": "a", "serial": "x", "cost": 1}, {"sku": "a", "serial": "y", "cost": 2}]}`)
	body := doc(t, `{"parts": [{"sku": "a", "serial": "y"}, {"sku": "a", "serial": "x"}]}`)
	if _, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: body}); err != nil {
		t.Fatal(show(err))
	}
	if got, want := w.stored(id), `{"parts":[{"cost":2,"serial":"y","sku":"a"},{"cost":1,"serial":"x","sku":"a"}]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Lists of lists hold protected fields as well.
func TestGuardInNestedLists(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, guarded)
		const nested = `{"data": [[{"x": 1, "secret": "s", "lock": "l"}], {"secret": "t"}, 5]}`
		for _, tt := range []struct{ body, want string }{
			{`{"data": [[{"x": 2, "lock": "l"}], {}, 5]}`, `{"data":[[{"lock":"l","secret":"s","x":2}],{"secret":"t"},5]}`},
			{`{"data": [[{"x": 1, "lock": "m"}], {}, 5]}`, `validation_failed: data.0.0.lock: is read-only for you`},
			{`{"data": [[{"x": 1}, {"lock": "m"}], {}, 5]}`, `validation_failed: data.0.1.lock: is read-only for you`},
			{`{"data": [[], 1, 2]}`, `{"data":[[],1,2]}`},
			{`{"data": [1, 2]}`, `{"data":[1,2]}`}, // nothing in place of what held something
			{`{"data": [{"x": 1}, 6]}`, `validation_failed: data: holds fields that you can't see or write: change and remove its elements in separate requests`},
			{`{"data": [[{"x": 2}, {"x": 3}], {}, 5]}`, `validation_failed: data.0: holds fields that you can't see or write: change and remove its elements in separate requests`},
			{`{"data": [{}, 5]}`, `{"data":[{"secret":"t"},5]}`},
		} {
			id := w.create("admin", nested)
			var got string
			if _, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, tt.body)}); err != nil {
				got = show(err)
			} else {
				got = w.stored(id)
			}
			if got != tt.want {
				t.Errorf("%s\ngot  %s\nwant %s", tt.body, got, tt.want)
			}
		}
	})
}

func TestGuardOnCreate(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, guarded)
		for _, tt := range []struct{ body, want string }{
			{`{"secret": "x"}`, "validation_failed: secret: unknown field"},
			{`{"secret": null}`, "validation_failed: secret: unknown field"},
			{`{"lock": "x"}`, "validation_failed: lock: is read-only for you"},
			{`{"seo": {"lock": "x"}}`, "validation_failed: seo.lock: is read-only for you"},
			{`{"parts": [{"serial": "x"}]}`, "validation_failed: parts.0.serial: is read-only for you"},
			{`{"parts": [{"cost": 1}]}`, "validation_failed: parts.0.cost: unknown field"},
			{`{"data": [[{"secret": 1}, {"lock": 2}]]}`, "validation_failed: data.0.0.secret: unknown field (and 1 more) [data.0.0.secret unknown] [data.0.1.lock readonly]"},
			{`{"data": {"secret.x": 1}}`, "validation_failed: data.secret.x: unknown field"},
			{`{"Secret": "x", "title": "A"}`, "ok"}, // another name, and the collection takes any
		} {
			for _, who := range []string{"public", "alice"} {
				before := w.everything()
				_, err := w.service.Create(t.Context(), w.call(who), doc(t, tt.body))
				if show(err) != tt.want {
					t.Errorf("%s %s: got %s, want %s", who, tt.body, show(err), tt.want)
				}
				if err != nil && w.everything() != before {
					t.Error("something was written")
				}
				bulk, err := w.service.BulkCreate(t.Context(), w.call(who), []any{doc(t, tt.body)})
				if err != nil || show(bulk.Items[0].Err) != tt.want {
					t.Errorf("bulk %s %s: got %v %s, want %s", who, tt.body, err, show(bulk.Items[0].Err), tt.want)
				}
			}
		}
	})
}

// A system field that is hidden tells nothing, not even by being sent as it is.
func TestHiddenSystemField(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, guarded)
		id := w.create("alice", `{"title": "A", "seo": {"title": "T"}}`)
		for _, body := range []string{`{"createdBy": "` + alice.Hex() + `"}`, `{"createdBy": "` + bob.Hex() + `"}`, `{"createdBy": null}`} {
			_, err := w.service.Update(t.Context(), w.call("token:blind"), id, records.Change{Body: doc(t, body)})
			if show(err) != "validation_failed: createdBy: unknown field" {
				t.Errorf("%s: %s", body, show(err))
			}
		}
		_, err := w.service.List(t.Context(), w.call("token:blind"), query.Params{Where: where(t, `{"createdBy": "`+alice.Hex()+`"}`)})
		if show(err) != "unknown_field: unknown field: createdBy" {
			t.Error(show(err))
		}
		rec, err := w.service.Get(t.Context(), w.call("token:blind"), id, records.GetParams{})
		if text := string(rec.AppendJSON(nil)); err != nil || strings.Contains(text, "createdBy") || !strings.Contains(text, "updatedBy") {
			t.Error(text, err)
		}
	})
}

// A conflict on a value that the caller may not see says that there is one, not where.
func TestUniqueConflictOfAHiddenField(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections(`
name: items
fields:
  - {name: title, type: string}
  - {name: code, type: string, hidden: true, meta: {defaultValue: same}}
indexes: [{name: byCode, key: [code], unique: true}]
`+open))
		w.create("alice", `{"title": "A"}`)
		_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "B"}`))
		e := errs.From(err)
		if show(err) != "unique: a unique value is already taken" || len(e.Fields) != 0 {
			t.Errorf("%s %v", show(err), e.Fields)
		}
		_, err = w.service.Create(t.Context(), w.call("admin"), doc(t, `{"title": "B"}`))
		if show(err) != "unique: code is already taken" {
			t.Error(show(err))
		}
	})
}

// What is wrong with a hidden field is not the caller's to mend, and not named.
func TestProblemsOfHiddenFields(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections(`
name: items
fields:
  - {name: title, type: string}
  - {name: code, type: string, hidden: true, validator: {required: true}}
`+open))
		_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "A"}`))
		if show(err) != "validation_failed: a value that you can't set is missing or not valid" {
			t.Error(show(err))
		}
		id := w.put(`{"title": "A"}`)
		if _, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, `{"title": "B"}`)}); err != nil {
			t.Error(show(err))
		}
		if w.stored(id) != `{"title":"B"}` {
			t.Error(w.stored(id))
		}
	})
}

// A hook that changes a body makes nothing writable that the caller sent along with it.
func TestHookLendsNoRight(t *testing.T) {
	t.Parallel()
	w := newScripted(t, teststore.Memory(t), `
collections:
- name: items
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true, put: true}, readonlyFields: [lines.cost, fixed]}}
  hooks: {put: {bind: {type: javascript, file: bind.js}}}
  fields:
  - {name: title, type: string}
  - {name: fixed, type: string}
  - {name: lines, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number}]}
`, map[string]string{"bind.js": `module.exports = (ctx) => {
  for (const l of ctx.data.lines || []) { l.sku = l.sku.trim(); if (l.sku === 'new') l.cost = 7 }
  if (ctx.data.title === 'fix') ctx.data.fixed = 'by hook'
}`})
	const stored = `{"title": "t", "fixed": "f", "lines": [{"sku": "a", "cost": 1}, {"sku": "b", "cost": 2}], "_rev": 1}`
	for _, tt := range []struct{ body, want string }{
		{`{"lines": [{"sku": " a ", "cost": 999}, {"sku": "b", "cost": 2}]}`, `validation_failed: lines.0.cost: is read-only for you`},
		{`{"lines": [{"sku": "a", "cost": 999}, {"sku": "new"}]}`, `validation_failed: lines.0.cost: is read-only for you`},
		{`{"lines": [{"sku": "x", "cost": 999}, {"sku": "b"}, {"sku": "new"}]}`, `validation_failed: lines: holds fields that you can't see or write: change and remove its elements in separate requests`},
		{`{"fixed": "mine", "title": "fix"}`, `validation_failed: fixed: is read-only for you`},
		{`{"lines": [{"sku": " a ", "cost": 1}, {"sku": "new", "cost": 2}]}`, `{"fixed":"f","lines":[{"cost":1,"sku":"a"},{"cost":7,"sku":"new"}],"title":"t"}`},
		{`{"lines": [{"sku": "new"}, {"sku": "new"}, {"sku": "new"}]}`, `{"fixed":"f","lines":[{"cost":7,"sku":"new"},{"cost":7,"sku":"new"},{"cost":7,"sku":"new"}],"title":"t"}`},
		{`{"fixed": "f", "title": "fix"}`, `{"fixed":"by hook","lines":[{"cost":1,"sku":"a"},{"cost":2,"sku":"b"}],"title":"fix"}`},
	} {
		id := w.put(stored)
		res, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, tt.body)})
		if got := told(w, res, err); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.body, got, tt.want)
		}
	}
}
