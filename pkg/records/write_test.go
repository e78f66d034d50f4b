package records_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// everyone may do everything with items; what differs is in permissions.
const open = `
permissions:
  public: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
  user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
`

// collections makes a config of collections from what differs between them; each is the inside of one collection.
func collections(all ...string) string {
	var b strings.Builder
	b.WriteString("collections:\n")
	for _, c := range all {
		for i, line := range strings.Split(strings.Trim(c, "\n"), "\n") {
			if i == 0 {
				b.WriteString("  - " + line + "\n")
			} else {
				b.WriteString("    " + line + "\n")
			}
		}
	}
	return b.String()
}

var typed = collections(`
name: items
strictFields: true
fields:
  - {name: title, type: string, validator: {required: true, max: 10}}
  - {name: slug, type: string, index: [unique, sparse]}
  - {name: status, type: string, meta: {choices: [draft, live], defaultValue: draft}}
  - {name: views, type: number}
  - {name: at, type: date}
  - {name: tags, type: "string[]"}
  - {name: author, type: string, validator: {exists: true}, meta: {foreign: {collection: people, key: _id}}}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: note, type: string}]}
  - {name: open, type: object, strictFields: false, subFields: [{name: a, type: number}]}
  - {name: parts, type: "object[]", subFields: [{name: sku, type: string, validator: {required: true}}]}
  - {name: data, type: any}
`+open, `
name: people
`+open)

func TestCreate(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		person, err := w.service.Create(t.Context(), &records.Call{
			Project: w.project, Collection: w.project.Collections["people"], Principal: as("alice"),
		}, doc(t, `{"name": "Ann"}`))
		if err != nil {
			t.Fatal(err)
		}
		deep := strings.Repeat(`{"a":`, 31) + "1" + strings.Repeat("}", 31)
		for _, tt := range []struct{ name, body, want string }{
			{"defaults", `{"title": "A"}`, `{"status":"draft","title":"A"}`},
			{"null is no default", `{"title": "A", "status": null}`, `{"title":"A"}`},
			{
				"types are kept", `{"title": "A", "views": 9007199254740993, "at": "2026-01-02T03:04:05.678+01:00", "tags": ["x"]}`,
				`{"at":"2026-01-02T02:04:05.678Z","status":"draft","tags":["x"],"title":"A","views":9007199254740993}`,
			},
			{"foreign", `{"title": "A", "author": "` + person.ID + `"}`, `{"author":"` + person.ID + `","status":"draft","title":"A"}`},
			{"empty", `{}`, "validation_failed: title: is required"},
			{"wrong type", `{"title": 1}`, "validation_failed: title: must be a string, is a number"},
			{"too long", `{"title": "01234567890"}`, "validation_failed: title: must have at most 10 characters, has 11"},
			{"choices", `{"title": "A", "status": "x"}`, `validation_failed: status: must be one of "draft", "live"`},
			{"no such author", `{"title": "A", "author": "` + bob.Hex() + `"}`, "validation_failed: author: refers to a record of people that does not exist, or that you may not read"},
			{"unknown field", `{"title": "A", "titel": 1}`, "validation_failed: titel: unknown field"},
			{"unknown subfield", `{"title": "A", "seo": {"x": 1}}`, "validation_failed: seo.x: unknown field"},
			{"unknown subfield in a list", `{"title": "A", "parts": [{"sku": "1"}, {"sku": "2", "x": 1}]}`, "validation_failed: parts.1.x: unknown field"},
			{"required in a list", `{"title": "A", "parts": [{}]}`, "validation_failed: parts.0.sku: is required"},
			{"field that is not strict", `{"title": "A", "open": {"x": 1}}`, `{"open":{"x":1},"status":"draft","title":"A"}`},
			{"all problems", `{"title": 1, "views": "x", "zz": 1}`, "validation_failed: title: must be a string, is a number (and 2 more) [title type] [views type] [zz unknown]"},
			{"system field", `{"title": "A", "_rev": 7}`, "validation_failed: _rev: is set by the service and can't be given"},
			{"id", `{"title": "A", "id": "` + bob.Hex() + `"}`, "validation_failed: id: is set by the service and can't be given"},
			{"operator as a name", `{"title": "A", "data": {"$set": 1}}`, `validation_failed: data.$set: a field name can't begin with $`},
			{"prototype", `{"title": "A", "data": [{"__proto__": {"admin": true}}]}`, `validation_failed: data.0.__proto__: the field name __proto__ is reserved; choose another`},
			{"constructor", `{"title": "A", "data": {"constructor": 1}}`, `validation_failed: data.constructor: the field name constructor is reserved; choose another`},
			{"dot in a name", `{"title": "A", "data": {"a.b": 1}}`, `validation_failed: data.a.b: a field name can't contain a dot or NUL`},
			{"as deep as can be", `{"title": "A", "data": ` + deep + `}`, `{"data":` + deep + `,"status":"draft","title":"A"}`},
		} {
			t.Run(tt.name, func(t *testing.T) {
				before := w.everything()
				res, err := w.service.Create(t.Context(), w.call("alice"), doc(t, tt.body))
				if err != nil {
					if got := show(err); got != tt.want {
						t.Errorf("got  %s\nwant %s", got, tt.want)
					}
					if w.everything() != before {
						t.Error("something was written")
					}
					return
				}
				if got := seen(t, res.Record); got != tt.want || w.stored(res.ID) != tt.want {
					t.Errorf("answer %s\nstored %s\nwant   %s", got, w.stored(res.ID), tt.want)
				}
			})
		}
	})
}

// The bodies that JSON itself makes ambiguous or too much never reach the service.
func TestBodiesThatAreNoRecords(t *testing.T) {
	for name, text := range map[string]string{
		"duplicate key": `{"a": 1, "a": 2}`, "duplicate below": `{"x": {"a": 1, "a": 2}}`, "1e309": `{"a": 1e309}`,
		"NaN": `{"a": NaN}`, "too deep": strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33),
		"a list": `[]`, "trailing": `{} {}`, "NUL in a name": `{"a\u0000b": 1}`, "cut": `{"a": `, "empty": ``,
	} {
		if _, err := document.ParseJSON([]byte(text)); errs.KindOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSystemFields(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		id := w.create("alice", `{"title": "A"}`)
		rec, err := w.service.Get(t.Context(), w.call("bob"), id, records.GetParams{})
		if err != nil {
			t.Fatal(err)
		}
		text := string(rec.AppendJSON(nil))
		want := `{"id":"` + id + `","title":"A","status":"draft","createdAt":"2026-03-01T12:00:03.000Z","updatedAt":"2026-03-01T12:00:03.000Z",` +
			`"createdBy":"` + alice.Hex() + `","updatedBy":"` + alice.Hex() + `","_rev":1}`
		if !sameButTimes(text, want) {
			t.Errorf("got  %s\nwant %s", text, want)
		}
		// What was read, edited and sent back whole is an update.
		body := doc(t, strings.Replace(text, `"A"`, `"B"`, 1))
		for _, mode := range []records.UpdateMode{records.Merge, records.Overwrite} {
			res, err := w.service.Update(t.Context(), w.call("bob"), id, records.Change{Mode: mode, Body: body})
			if err != nil {
				t.Fatal(show(err))
			}
			text = string(res.Record.AppendJSON(nil))
			body = doc(t, text)
		}
		if rec.Rev() != 1 || !strings.Contains(text, `"title":"B"`) || !strings.Contains(text, `"_rev":3`) ||
			!strings.Contains(text, `"createdBy":"`+alice.Hex()) || !strings.Contains(text, `"updatedBy":"`+bob.Hex()) {
			t.Error(text)
		}
		for _, tt := range []struct{ body, want string }{
			{`{"_rev": 2}`, "stale: the record has changed since you read it: read it again and repeat the change on its new revision"},
			{`{"id": "` + bob.Hex() + `"}`, "validation_failed: id: is set by the service: leave it out"},
			{`{"_id": "` + bob.Hex() + `"}`, "validation_failed: _id: is set by the service: leave it out"},
			{`{"createdBy": "` + bob.Hex() + `"}`, "validation_failed: createdBy: is set by the service: leave it out"},
			{`{"createdAt": null}`, "validation_failed: createdAt: is set by the service: leave it out"},
		} {
			_, err := w.service.Update(t.Context(), w.call("bob"), id, records.Change{Body: doc(t, tt.body)})
			if show(err) != tt.want {
				t.Errorf("%s: got %s\nwant %s", tt.body, show(err), tt.want)
			}
		}
	})
}

// sameButTimes compares records but for the digits of the seconds.
func sameButTimes(got, want string) bool {
	cut := func(s string) string {
		parts := strings.Split(s, ":00:")
		for i := range parts[1:] {
			parts[i+1] = parts[i+1][2:]
		}
		return strings.Join(parts, ":00:")
	}
	return cut(got) == cut(want)
}

func TestUpdate(t *testing.T) {
	const first = `{"title": "A", "slug": "a", "status": "live", "tags": ["x", "y"], "seo": {"title": "T", "note": "N"}}`
	merge, overwrite, patch := records.Merge, records.Overwrite, records.JSONPatch
	for _, tt := range []struct {
		name string
		mode records.UpdateMode
		body string
		want string
	}{
		{"merge", merge, `{"title": "B", "seo": {"note": null}}`, `{"seo":{"title":"T"},"slug":"a","status":"live","tags":["x","y"],"title":"B"}`},
		{"lists replace", merge, `{"tags": ["z"]}`, `{"seo":{"note":"N","title":"T"},"slug":"a","status":"live","tags":["z"],"title":"A"}`},
		{"null unsets, no default comes back", merge, `{"status": null, "seo": null, "slug": null, "tags": null}`, `{"title":"A"}`},
		{"nothing", merge, `{}`, `{"seo":{"note":"N","title":"T"},"slug":"a","status":"live","tags":["x","y"],"title":"A"}`},
		{"required goes", merge, `{"title": null}`, "validation_failed: title: is required"},
		{"wrong type", merge, `{"seo": "x"}`, "validation_failed: seo: must be an object, is a string"},
		{"unknown", merge, `{"nope": 1}`, "validation_failed: nope: unknown field"},
		{"unknown below", merge, `{"seo": {"nope": 1}}`, "validation_failed: seo.nope: unknown field"},
		{"taking away what is not there", merge, `{"views": null}`, `{"seo":{"note":"N","title":"T"},"slug":"a","status":"live","tags":["x","y"],"title":"A"}`},
		{"replace", overwrite, `{"title": "B"}`, `{"title":"B"}`},
		{"replace without a required field", overwrite, `{"slug": "b"}`, "validation_failed: title: is required"},
		{
			"patch", patch, `[{"op": "replace", "path": "/title", "value": "B"}, {"op": "remove", "path": "/seo/note"}, {"op": "add", "path": "/tags/-", "value": "z"}]`,
			`{"seo":{"title":"T"},"slug":"a","status":"live","tags":["x","y","z"],"title":"B"}`,
		},
		{"patch that tests", patch, `[{"op": "test", "path": "/title", "value": "Z"}]`, `patch_test_failed: operation 0: the value at "/title" is not the one tested for`},
		{"patch of the id", patch, `[{"op": "replace", "path": "/id", "value": "650102030405060708090a0b"}]`, "validation_failed: id: is set by the service: leave it out"},
		{"patch of the revision", patch, `[{"op": "replace", "path": "/_rev", "value": 9}]`, "stale: the record has changed since you read it: read it again and repeat the change on its new revision"},
		{"patch that copies itself", patch, `[` + strings.Repeat(`{"op": "copy", "from": "", "path": "/data"},`, 40) + `{"op": "test", "path": "", "value": 1}]`, "bad_patch: operation 31: the copies are too large or too deep"},
		{"no patch", patch, `{"title": "B"}`, "bad_patch: send a list of operations, not an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, typed)
				id := w.create("alice", first)
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
				if got := seen(t, res.Record); got != tt.want || w.stored(id) != tt.want {
					t.Errorf("answer %s\nstored %s\nwant   %s", got, w.stored(id), tt.want)
				}
			})
		})
	}
}

// Records that an earlier config admitted, or that other hands stored, can still be changed, and lose nothing by it.
func TestUpdateOfOldRecords(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		patch := records.Change{Mode: records.JSONPatch, Patch: []byte(`[{"op": "replace", "path": "/title", "value": "B"}]`)}
		for _, ch := range []records.Change{{Body: doc(t, `{"title": "B"}`)}, patch} {
			id := w.put(`{"title": "A", "gone": {"x": 1}, "views": "many"}`)
			res, err := w.service.Update(t.Context(), w.call("alice"), id, ch)
			if err != nil {
				t.Fatal(show(err))
			}
			if got, want := w.stored(id), `{"gone":{"x":1},"title":"B","views":"many"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if !strings.Contains(string(res.Record.AppendJSON(nil)), `"updatedBy":"`+alice.Hex()+`","_rev":1}`) {
				t.Error(string(res.Record.AppendJSON(nil)))
			}
			if _, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, `{"views": "few"}`)}); err == nil {
				t.Error("a field that the change speaks of must be good")
			}
			if _, err := w.service.Delete(t.Context(), w.call("alice"), id); err != nil {
				t.Error(show(err))
			}
		}
		id := w.put(`{"title": "A", "_rev": "x"}`)
		if _, err := w.service.Delete(t.Context(), w.call("alice"), id); err != nil {
			t.Error(show(err))
		}
	})
}

func TestRevisions(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		id := w.create("alice", `{"title": "A"}`)
		set := func(rev ...int64) error {
			_, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, `{"views": 1}`), IfRev: rev})
			return err
		}
		if err := set(1); err != nil {
			t.Error(err)
		}
		for _, stale := range [][]int64{{1}, {1, 3, 7}} {
			if err := set(stale...); errs.KindOf(err) != errs.Precondition {
				t.Error(stale, err)
			}
		}
		if _, err := w.service.Delete(t.Context(), w.call("alice"), id, 1); errs.KindOf(err) != errs.Precondition {
			t.Error(err)
		}
		if err := set(1, 2, 3); err != nil {
			t.Error(err)
		}
		if _, err := w.service.Delete(t.Context(), w.call("alice"), id, 1, 3); err != nil {
			t.Error(err)
		}
		for _, err := range []error{set(3), deleted(w.service.Delete(t.Context(), w.call("alice"), id))} {
			if !errors.Is(err, errs.ErrNotFound) {
				t.Error(err)
			}
		}
		for _, bad := range []string{"", "x", "650102030405060708090a0", "650102030405060708090a0bb", "../650102030405060708090a", "650102030405060708090a0\x00"} {
			if _, err := w.service.Delete(t.Context(), w.call("alice"), bad); show(err) != "bad_id: invalid id: must be 24 hex digits" {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

// Writers to one record at once: every change that was answered with success is there.
func TestNoLostUpdates(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\n"+open))
		id := w.create("alice", `{}`)
		const writers, each = 8, 4
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for j := range each {
					name := string(rune('a'+i)) + string(rune('a'+j))
					body := bson.D{{Key: name, Value: int64(1)}}
					for {
						_, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: body})
						if errs.KindOf(err) == errs.Unavailable && err != nil { // told to try again
							continue
						}
						if err != nil {
							t.Error(show(err))
						}
						break
					}
				}
			})
		}
		wg.Wait()
		rec, err := w.service.Get(t.Context(), w.call("alice"), id, records.GetParams{})
		if err != nil || rec.Rev() != writers*each+1 || strings.Count(w.stored(id), ":1") != writers*each {
			t.Errorf("rev %d: %s, %v", rec.Rev(), w.stored(id), err)
		}
	})
}

func TestUnique(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		w.create("alice", `{"title": "A", "slug": "a"}`)
		id := w.create("alice", `{"title": "A", "slug": "b"}`)
		w.create("alice", `{"title": "A"}`)
		w.create("alice", `{"title": "A"}`)
		_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "A", "slug": "a"}`))
		if show(err) != "unique: slug is already taken" || errs.KindOf(err) != errs.Conflict {
			t.Error(show(err))
		}
		_, err = w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, `{"slug": "a"}`)})
		if show(err) != "unique: slug is already taken" {
			t.Error(show(err))
		}
	})
}

// 64 writers want the same value; one gets it.
func TestUniqueRace(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		body := doc(t, `{"title": "A", "slug": "s"}`)
		outcomes := make(chan error, 64)
		for range cap(outcomes) {
			go func() {
				_, err := w.service.Create(t.Context(), w.call("alice"), body)
				outcomes <- err
			}()
		}
		made := 0
		for range cap(outcomes) {
			switch err := <-outcomes; {
			case err == nil:
				made++
			case errs.From(err).Code != "unique":
				t.Error(show(err))
			}
		}
		if made != 1 {
			t.Errorf("%d were created", made)
		}
	})
}

// The rule exists looks at every item of a list, by id and by another key.
func TestExistsInLists(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections(`
name: items
fields:
  - {name: code, type: string}
  - {name: ids, type: "string[]", validator: {exists: true}, meta: {foreign: {collection: items, key: _id}}}
  - {name: codes, type: "string[]", validator: {exists: true}, meta: {foreign: {collection: items, key: code}}}
`+open))
		a, b := w.create("alice", `{"code": "a"}`), w.create("alice", `{"code": "b"}`)
		const missing = ": refers to a record of items that does not exist, or that you may not read"
		for body, want := range map[string]string{
			`{"ids": []}`: "ok",
			`{"ids": ["` + a + `", "` + b + `", "` + a + `"]}`:                "ok",
			`{"ids": ["` + a + `", "` + bob.Hex() + `"]}`:                     "validation_failed: ids" + missing,
			`{"ids": ["` + a + `", "x"]}`:                                     "validation_failed: ids.1: must be an id: 24 hex digits",
			`{"ids": [` + strings.Repeat(`"`+a+`", `, 1200) + `"` + b + `"]}`: "ok",
			`{"codes": ["a", "b", "a"]}`:                                      "ok",
			`{"codes": ["a", "c"]}`:                                           "validation_failed: codes" + missing,
		} {
			_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, body))
			if show(err) != want {
				t.Errorf("%.80s: %s, want %s", body, show(err), want)
			}
		}
	})
}

func TestNamesThatNoRecordMayHoldAreRefusedInUpdates(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
  - name: items
    permissions: {public: {methods: {get: true, post: true, put: {bulk: true}}}, user: {methods: {}}}
`)
		id := w.create("public", `{"a": 1}`)
		before := w.stored(id)
		for _, body := range []string{`{".": {"$q": 1}}`, `{"a.b": 1}`, `{"$set": {"a": 2}}`, `{"x": {"__proto__": 1}}`} {
			for _, mode := range []records.UpdateMode{records.Merge, records.Overwrite} {
				_, err := w.service.Update(t.Context(), w.call("public"), id, records.Change{Mode: mode, Body: doc(t, body)})
				if errs.KindOf(err) != errs.Invalid || err == nil {
					t.Errorf("%s in mode %d: %v", body, mode, err)
				}
			}
		}
		if after := w.stored(id); after != before {
			t.Errorf("something was written: %s", after)
		}
	})
}

func TestJSONPatchNeedsTheRightToRead(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
  - name: items
    permissions: {public: {methods: {post: true, put: true}}, user: {methods: {}}}
`)
		id := w.create("public", `{"a": 1}`)
		_, err := w.service.Update(t.Context(), w.call("public"), id, records.Change{
			Mode: records.JSONPatch, Patch: []byte(`[{"op": "test", "path": "/a", "value": 1}]`),
		})
		if !errors.Is(err, errs.ErrDenied) {
			t.Errorf("got %v, want a denial", err)
		}
	})
}

func TestATakenCombinationNamesAllItsFields(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
  - name: items
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
    indexes: [{key: [event, email], unique: true}]
`)
		w.create("public", `{"event": 1, "email": "a"}`)
		w.create("public", `{"event": 1, "email": "b"}`)
		_, err := w.service.Create(t.Context(), w.call("public"), doc(t, `{"event": 1, "email": "a"}`))
		if e := errs.From(err); e == nil || e.Message != "the combination of event, email is already taken" || len(e.Fields) != 2 {
			t.Errorf("got %+v", e)
		}
	})
}
