package storetest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// testUpserts inserts by updates and replacements where there is nothing to write to. What is inserted is made of what the
// filter says is equal, by name, and nothing else of it.
func testUpserts(t *testing.T, s store.Store) {
	newFixture(t, s).underIndexes(t, admitting(permutations("a", "d.e")), func(f *fixture) {
		for _, c := range upsertCases() {
			f.checkUpsert(c)
		}
	})
	t.Run("by id", func(t *testing.T) { testUpsertByID(newFixture(t, s)) })
	t.Run("replace", func(t *testing.T) { testUpsertReplace(newFixture(t, s)) })
	t.Run("unique", func(t *testing.T) { testUpsertUnique(newFixture(t, s)) })
}

// upsertCase has the document that comes into being; without an _id it gets one, which want leaves out. "invalid" is a
// refusal.
type upsertCase struct{ filter, update, want string }

func upsertCases() []upsertCase {
	return []upsertCase{
		{`{"_id":7}`, `{"$set":{"a":1}}`, `{"_id":7,"a":1}`},
		{`{"a":1,"_id":7}`, `{"$set":{"b":1}}`, `{"_id":7,"a":1,"b":1}`},
		{`{"a":1}`, `{"$set":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"b":1,"a":2}`, `{"$set":{"c":3}}`, `{"a":2,"b":1,"c":3}`}, // by name
		{`{"a":{"$eq":1}}`, `{"$set":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"$and":[{"a":1},{"b":2}]}`, `{"$inc":{"n":1}}`, `{"a":1,"b":2,"n":1}`},
		{`{"$or":[{"a":1}]}`, `{"$set":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"$or":[{"a":1},{"a":2}]}`, `{"$set":{"b":2}}`, `{"b":2}`},
		{`{"a":{"$in":[1]}}`, `{"$set":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"a":{"$in":[1,2]}}`, `{"$set":{"b":2}}`, `{"b":2}`},
		{`{"a":{"$all":[1]}}`, `{"$set":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"d.e":1,"d.f":2}`, `{"$set":{"b":2}}`, `{"d":{"e":1,"f":2},"b":2}`},
		{`{"d.e":1}`, `{"$set":{"d.f":2}}`, `{"d":{"e":1,"f":2}}`},
		{`{"a":null}`, `{"$set":{"b":2}}`, `{"a":null,"b":2}`},
		{`{"a":{"$gt":1},"b":{"$ne":1},"c":{"$exists":false}}`, `{"$set":{"x":2}}`, `{"x":2}`},
		{`{"$nor":[{"a":1}]}`, `{"$set":{"x":2}}`, `{"x":2}`},
		{`{"a":[1,2]}`, `{"$push":{"a":3}}`, `{"a":[1,2,3]}`},
		{`{"a":{"x":1}}`, `{"$set":{"a.y":2}}`, `{"a":{"x":1,"y":2}}`},
		{`{"a":1}`, `{"$set":{"a":2}}`, `{"a":2}`},
		{`{"a":1}`, `{"$inc":{"a":2}}`, `{"a":3}`},
		{`{"a":1}`, `{"$unset":{"a":""}}`, `{}`},
		{`{"a":1}`, `{"$setOnInsert":{"b":2}}`, `{"a":1,"b":2}`},
		{`{"a":1}`, `{"$setOnInsert":{"_id":8}}`, `{"_id":8,"a":1}`},
		{`{"a":1}`, `{"$set":{"_id":9}}`, `{"_id":9,"a":1}`},
		{`{"_id":7}`, `{"$set":{"_id":8}}`, "invalid"},
		{`{"a":1}`, `{"$set":{}}`, `{"a":1}`},
		{`{"a":1}`, `{"$set":{"a.b":1}}`, "invalid"},
		{`{"a":[1]}`, `{"$set":{"a.$":1}}`, "invalid"},
		{`{"$and":[{"a":1},{"a":2}]}`, `{"$set":{"b":1}}`, "invalid"},
		{`{"a":1,"a.b":2}`, `{"$set":{"c":1}}`, "invalid"},
		{`{"x":1}`, `{"$pull":{"a":1},"$min":{"b":2},"$mul":{"c":3}}`, `{"x":1,"b":2,"c":0}`},
	}
}

// checkUpsert runs c twice: what the first one inserts, the second one finds, if its filter still matches.
func (f *fixture) checkUpsert(c upsertCase) {
	f.t.Helper()
	op := store.Op{Kind: store.Update, Filter: filter(c.filter), Update: update(c.update), Upsert: true, Return: store.ReturnAfter}
	results, err := f.Write(f.t.Context(), []store.Op{op}, false)
	if err != nil {
		f.t.Fatalf("%s with %s: %v", c.filter, c.update, err)
	}
	r := results[0]
	if c.want == "invalid" {
		if got := result(r); got != c.want {
			f.t.Errorf("%s with %s: got %s, want a refusal", c.filter, c.update, got)
		}
		if all := f.contents(); all != "" {
			f.t.Errorf("%s with %s left %s", c.filter, c.update, all)
		}
		return
	}
	if r.Err != nil || r.Matched != 0 || r.Modified != 0 || r.Upserted.Type == 0 {
		f.t.Fatalf("%s with %s: %s", c.filter, c.update, result(r))
	}
	want := doc(c.want)
	if want.Lookup("_id").Type == 0 {
		if r.Upserted.Type != bson.TypeObjectID {
			f.t.Errorf("%s with %s: the new _id is %v", c.filter, c.update, r.Upserted)
		}
		want = doc(strings.Replace(`{"_id":`+r.Upserted.String()+`,`+c.want[1:], ",}", "}", 1))
	}
	if r.Doc.String() != want.String() {
		f.t.Errorf("%s with %s:\ngot  %v\nwant %v", c.filter, c.update, r.Doc, want)
	}
	if got := f.contents(); got != want.String() {
		f.t.Errorf("%s with %s:\nstored %v\nwant   %v", c.filter, c.update, got, want)
	}
	op.Return = store.ReturnNone
	if op.Filter.Match(want) && !strings.Contains(c.update, `"_id"`) {
		results, err = f.Write(f.t.Context(), []store.Op{op}, false)
		if err != nil || results[0].Upserted.Type != 0 || results[0].Matched != 1 {
			f.t.Errorf("%s with %s, a second time: %v, %v", c.filter, c.update, results, err)
		}
	}
	f.mustWrite(store.Op{Kind: store.Delete, ID: r.Upserted})
}

func testUpsertByID(f *fixture) {
	set := store.Op{Kind: store.Update, ID: value(`7`), Update: update(`{"$inc":{"n":1},"$setOnInsert":{"a":1}}`), Upsert: true}
	f.wantResults(false, []store.Op{set, set}, "ok 0/0 upserted 7", "ok 1/1")
	put := store.Op{Kind: store.Replace, Doc: doc(`{"_id":8,"a":1}`), Upsert: true}
	f.wantResults(true, []store.Op{put, put}, "ok 0/0 upserted 8", "ok 1/0")
	f.wantContents(`{"_id":7,"a":1,"n":2}`, `{"_id":8,"a":1}`)
}

func testUpsertReplace(f *fixture) {
	replaceBy := func(where, d string) store.Op {
		return store.Op{Kind: store.Replace, Filter: filter(where), Doc: doc(d), Upsert: true}
	}
	f.wantResults(false, []store.Op{
		replaceBy(`{"a":1,"_id":1}`, `{"b":1}`), // the _id of the filter; nothing else of it
		replaceBy(`{"a":1}`, `{"_id":2,"b":2}`),
		replaceBy(`{"b":2}`, `{"b":3}`),
		replaceBy(`{"b":3}`, `{"_id":2,"b":3}`),
		replaceBy(`{"_id":1}`, `{"_id":1.0,"b":4}`), // equal ids, of which the new one stays
		replaceBy(`{"_id":1}`, `{"_id":9}`),
		replaceBy(`{"_id":5}`, `{"_id":6}`),
	}, "ok 0/0 upserted 1", "ok 0/0 upserted 2", "ok 1/1", "ok 1/0", "ok 1/1", "invalid", "invalid")
	f.wantContents(`{"_id":1.0,"b":4}`, `{"_id":2,"b":3}`)

	results, err := f.Write(f.t.Context(), []store.Op{replaceBy(`{"x":1}`, `{"y":1}`)}, false)
	if err != nil || results[0].Upserted.Type != bson.TypeObjectID {
		f.t.Fatalf("a replacement without _id: %v, %v", results, err)
	}
	if d, err := f.Get(f.t.Context(), results[0].Upserted); err != nil || !d.Lookup("y").Equal(value(`1`)) {
		f.t.Errorf("inserted %v, %v", d, err)
	}
}

func testUpsertUnique(f *fixture) {
	f.index(unique(on("u")))
	f.given(`{"_id":1,"u":1,"a":1}`)
	upsert := func(where, change string) store.Op {
		return store.Op{Kind: store.Update, Filter: filter(where), Update: update(change), Upsert: true}
	}
	f.wantResults(false, []store.Op{
		upsert(`{"u":1,"a":2}`, `{"$set":{"x":1}}`), // a document that does not match has the key
		upsert(`{"_id":1,"a":2}`, `{"$set":{"u":2}}`),
		upsert(`{"u":1}`, `{"$set":{"x":1}}`),
		upsert(`{"_id":2}`, `{"$set":{"u":2}}`),
	}, "dup u[u]", "dup _id[_id]", "ok 1/1", "ok 0/0 upserted 2")
	f.wantContents(`{"_id":1,"u":1,"a":1,"x":1}`, `{"_id":2,"u":2}`)
}

// wantResults applies ops and compares what each came to, in the words of result.
func (f *fixture) wantResults(atomic bool, ops []store.Op, want ...string) {
	f.t.Helper()
	results, err := f.Write(f.t.Context(), ops, atomic)
	if err != nil {
		f.t.Fatalf("Write: %v", err)
	}
	if len(results) != len(want) {
		f.t.Fatalf("%d results, want %d", len(results), len(want))
	}
	for i, r := range results {
		if got := result(r); got != want[i] {
			f.t.Errorf("op %d: got %s, want %s", i, got, want[i])
		}
	}
}

// wantContents compares all documents, in _id order.
func (f *fixture) wantContents(want ...string) {
	f.t.Helper()
	lines := make([]string, len(want))
	for i, d := range want {
		lines[i] = doc(d).String()
	}
	if got := f.contents(); got != strings.Join(lines, "\n") {
		f.t.Errorf("documents are now\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
	}
}
