package storetest

import (
	"fmt"
	"testing"

	"github.com/svcctl/svc/pkg/store"
)

// opCase is one call of Write on the documents of testFilterOps: the results in the words of result, and what is there
// then ("=": what was).
type opCase struct {
	name   string
	atomic bool
	ops    []store.Op
	want   []string
	then   []string
}

func opDocs() []string {
	return []string{
		`{"_id":1,"a":3,"b":"x"}`, `{"_id":2,"a":1,"b":"y"}`, `{"_id":3,"a":2,"b":"x"}`, `{"_id":4,"a":1,"b":"x"}`, `{"_id":5,"b":"z"}`,
	}
}

// testFilterOps chooses documents by filters: the first in an order, all, the one before and after; and mixes those
// with ops by _id.
func testFilterOps(t *testing.T, s store.Store) {
	cases := opCases()
	f := newFixture(t, s)
	f.underIndexes(t, admitting(permutations("a", "b")), func(f *fixture) {
		for _, c := range cases {
			f.t.Run(c.name, func(t *testing.T) {
				f := f.in(t)
				f.given(opDocs()...)
				f.wantResults(c.atomic, c.ops, c.want...)
				if len(c.then) == 1 && c.then[0] == "=" {
					c.then = opDocs()
				}
				f.wantContents(c.then...)
				f.empty()
			})
		}
	})
	t.Run("many documents", func(t *testing.T) {
		for _, atomic := range []bool{false, true} {
			testManyDocuments(newFixture(t, s), atomic)
		}
	})
	t.Run("the first that fails ends it", func(t *testing.T) { testManyFailing(t, s) })
	t.Run("each document once", func(t *testing.T) { testManyMoving(newFixture(t, s)) })
}

// by chooses the documents of an op.
func by(where, order string, op store.Op) store.Op {
	op.Filter, op.Sort = filter(where), sortBy(order)
	return op
}

// empty deletes all documents.
func (f *fixture) empty() {
	f.t.Helper()
	f.mustWrite(many(store.Op{Kind: store.Delete, Filter: filter(`{}`)}))
}

func many(op store.Op) store.Op {
	op.Many = true
	return op
}

// returning asks for a document, or with project for parts of it.
func returning(which store.Returning, project string, op store.Op) store.Op {
	op.Return, op.Project = which, projection(project)
	return op
}

func change(u string) store.Op { return store.Op{Kind: store.Update, Update: update(u)} }

func opCases() []opCase {
	opDocs, del := opDocs(), store.Op{Kind: store.Delete}
	setC := change(`{"$set":{"c":1}}`)
	without := func(out ...int) []string {
		var left []string
		for i, d := range opDocs {
			keep := true
			for _, o := range out {
				keep = keep && o != i+1
			}
			if keep {
				left = append(left, d)
			}
		}
		return left
	}
	return []opCase{
		{name: "nothing matches", ops: []store.Op{
			by(`{"a":9}`, "", del), by(`{"a":9}`, "", setC), many(by(`{"a":9}`, "", setC)), many(by(`{"a":9}`, "", del)),
			by(`{"a":9}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"x":1}`)}),
			returning(store.ReturnBefore, "", by(`{"a":9}`, "", del)), returning(store.ReturnAfter, "", by(`{"a":9}`, "", setC)),
		}, want: []string{"ok 0/0", "ok 0/0", "ok 0/0", "ok 0/0", "ok 0/0", "ok 0/0", "ok 0/0"}, then: []string{"="}},
		{
			name: "the first in an order", ops: []store.Op{
				by(`{"b":"x"}`, "a", change(`{"$set":{"c":"first"}}`)), by(`{"b":"x"}`, "-a", change(`{"$set":{"c":"last"}}`)),
				by(`{}`, "a _id", change(`{"$set":{"c":"missing first"}}`)),
			}, want: []string{"ok 1/1", "ok 1/1", "ok 1/1"},
			then: []string{
				`{"_id":1,"a":3,"b":"x","c":"last"}`, opDocs[1], opDocs[2], `{"_id":4,"a":1,"b":"x","c":"first"}`,
				`{"_id":5,"b":"z","c":"missing first"}`,
			},
		},
		{
			name: "delete in an order", ops: []store.Op{by(`{"a":{"$gte":1}}`, "a -_id", del), by(`{}`, "-_id", del)},
			want: []string{"ok 1/1", "ok 1/1"}, then: without(4, 5),
		},
		{
			name: "many", ops: []store.Op{many(by(`{"b":"x"}`, "", change(`{"$inc":{"a":1}}`))), many(by(`{"a":{"$gt":2}}`, "", del))},
			want: []string{"ok 3/3", "ok 2/2"},
			then: []string{opDocs[1], `{"_id":4,"a":2,"b":"x"}`, opDocs[4]},
		},
		{
			name: "many that are so already", ops: []store.Op{
				many(by(`{}`, "", change(`{"$set":{"b":"x"}}`))), many(by(`{}`, "", change(`{"$max":{"a":2}}`))),
			}, want: []string{"ok 5/2", "ok 5/3"},
			then: []string{
				opDocs[0], `{"_id":2,"a":2,"b":"x"}`, opDocs[2], `{"_id":4,"a":2,"b":"x"}`, `{"_id":5,"b":"x","a":2}`,
			},
		},
		{
			name: "replace keeps the id", ops: []store.Op{
				by(`{"a":3}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"n":1}`)}),
				by(`{"a":2}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"n":2,"_id":3}`)}),
				by(`{"b":"z"}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"_id":9}`)}),
			}, want: []string{"ok 1/1", "ok 1/1", "invalid"},
			then: []string{`{"_id":1,"n":1}`, opDocs[1], `{"_id":3,"n":2}`, opDocs[3], opDocs[4]},
		},
		{
			name: "before and after", ops: []store.Op{
				returning(store.ReturnBefore, "", by(`{"b":"x"}`, "a", change(`{"$inc":{"a":10}}`))),
				returning(store.ReturnAfter, "", by(`{"b":"x"}`, "-a", change(`{"$inc":{"a":10}}`))),
				returning(store.ReturnBefore, "", by(`{"b":"x"}`, "a", del)),
				returning(store.ReturnAfter, "", by(`{"b":"z"}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"n":1}`)})),
				returning(store.ReturnBefore, "", by(`{"n":1}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"n":2}`)})),
			}, want: []string{
				"ok 1/1 doc " + doc(opDocs[3]).String(), "ok 1/1 doc " + doc(`{"_id":4,"a":21,"b":"x"}`).String(),
				"ok 1/1 doc " + doc(opDocs[2]).String(), "ok 1/1 doc " + doc(`{"_id":5,"n":1}`).String(),
				"ok 1/1 doc " + doc(`{"_id":5,"n":1}`).String(),
			},
			then: []string{opDocs[0], opDocs[1], `{"_id":4,"a":21,"b":"x"}`, `{"_id":5,"n":2}`},
		},
		{
			name: "before and after by id", ops: []store.Op{
				returning(store.ReturnBefore, "", store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$unset":{"b":""}}`)}),
				returning(store.ReturnAfter, "", store.Op{Kind: store.Replace, Doc: doc(`{"_id":2,"n":1}`)}),
				returning(store.ReturnBefore, "", remove(`3`)),
				returning(store.ReturnBefore, "", remove(`9`)),
				returning(store.ReturnBefore, "", when(`{"a":9}`, remove(`1`))),
			}, want: []string{
				"ok 1/1 doc " + doc(opDocs[0]).String(), "ok 1/1 doc " + doc(`{"_id":2,"n":1}`).String(),
				"ok 1/1 doc " + doc(opDocs[2]).String(), "missing", "stale",
			},
			then: []string{`{"_id":1,"a":3}`, `{"_id":2,"n":1}`, opDocs[3], opDocs[4]},
		},
		{
			name: "parts of it", ops: []store.Op{
				returning(store.ReturnBefore, `{"a":1}`, by(`{"b":"x"}`, "a", change(`{"$inc":{"a":10}}`))),
				returning(store.ReturnAfter, `{"_id":0,"b":0}`, by(`{"b":"y"}`, "", change(`{"$inc":{"a":10}}`))),
				returning(store.ReturnBefore, `{"b":1,"_id":0}`, remove(`5`)),
				returning(store.ReturnAfter, `{"n":1}`, by(`{"n":9}`, "", store.Op{Kind: store.Update, Update: update(`{"$set":{"_id":9}}`), Upsert: true})),
			}, want: []string{
				"ok 1/1 doc " + doc(`{"_id":4,"a":1}`).String(), "ok 1/1 doc " + doc(`{"a":11}`).String(),
				"ok 1/1 doc " + doc(`{"b":"z"}`).String(), "ok 0/0 upserted 9 doc " + doc(`{"_id":9,"n":9}`).String(),
			},
			then: []string{opDocs[0], `{"_id":2,"a":11,"b":"y"}`, opDocs[2], `{"_id":4,"a":11,"b":"x"}`, `{"_id":9,"n":9}`},
		},
		{
			name: "an upsert has no document before", ops: []store.Op{
				returning(store.ReturnBefore, "", by(`{"_id":9}`, "", store.Op{Kind: store.Update, Update: update(`{"$set":{"a":1}}`), Upsert: true})),
			}, want: []string{"ok 0/0 upserted 9"}, then: append(without(), `{"_id":9,"a":1}`),
		},
		{
			name: "ops see those before", ops: []store.Op{
				insert(`{"_id":6,"a":7}`), by(`{"a":{"$gt":5}}`, "", change(`{"$set":{"a":0}}`)), many(by(`{"a":{"$lte":1}}`, "", del)),
				by(`{"a":1}`, "", del), remove(`6`),
			}, want: []string{"ok 0/0", "ok 1/1", "ok 3/3", "ok 0/0", "missing"}, then: without(2, 4),
		},
		{
			name: "atomic: all or none", atomic: true, ops: []store.Op{
				many(by(`{"b":"x"}`, "", setC)), by(`{"b":"y"}`, "", del), remove(`9`), insert(`{"_id":10}`),
			}, want: []string{"aborted", "aborted", "missing", "aborted"}, then: []string{"="},
		},
		{
			name: "atomic: nothing found is no failure", atomic: true, ops: []store.Op{
				by(`{"a":9}`, "", setC), many(by(`{"a":9}`, "", del)), by(`{"a":2}`, "", change(`{"$set":{"a":9}}`)), by(`{"a":9}`, "", del),
			}, want: []string{"ok 0/0", "ok 0/0", "ok 1/1", "ok 1/1"}, then: without(3),
		},
		{
			name: "atomic: returning and upserting", atomic: true, ops: []store.Op{
				returning(store.ReturnAfter, "", by(`{"a":3}`, "", change(`{"$inc":{"a":1}}`))),
				by(`{"_id":6}`, "", store.Op{Kind: store.Update, Update: update(`{"$set":{"a":6}}`), Upsert: true}),
				returning(store.ReturnBefore, "", by(`{"a":{"$gte":4}}`, "-a", del)),
			}, want: []string{
				"ok 1/1 doc " + doc(`{"_id":1,"a":4,"b":"x"}`).String(), "ok 0/0 upserted 6", "ok 1/1 doc " + doc(`{"_id":6,"a":6}`).String(),
			},
			then: append([]string{`{"_id":1,"a":4,"b":"x"}`}, opDocs[1:]...),
		},
		{
			name: "atomic: one that can't be applied", atomic: true, ops: []store.Op{
				many(by(`{"a":1}`, "", del)), by(`{"_id":1}`, "", change(`{"$inc":{"b":1}}`)),
			}, want: []string{"aborted", "invalid"}, then: []string{"="},
		},
		{
			name: "each by itself", ops: []store.Op{
				by(`{"_id":1}`, "", change(`{"$inc":{"b":1}}`)), by(`{"_id":1}`, "", setC), remove(`9`), many(by(`{"b":"x"}`, "", change(`{"$unset":{"c":""}}`))),
				insert(`{"_id":2}`), by(`{"_id":2}`, "", del),
			}, want: []string{"invalid", "ok 1/1", "missing", "ok 3/1", "dup _id[_id]", "ok 1/1"}, then: without(2),
		},
	}
}

// testManyDocuments changes and deletes more documents than any adapter does in one step.
func testManyDocuments(f *fixture, atomic bool) {
	const n = 1300
	ops := make([]store.Op, n)
	for i := range ops {
		ops[i] = store.Op{Kind: store.Insert, Doc: numbered(i, i%3)}
	}
	f.mustWrite(ops...)
	f.index(on("n"))
	f.wantResults(atomic, []store.Op{
		many(by(`{"n":{"$gte":1}}`, "", change(`{"$inc":{"n":1}}`))), many(by(`{"n":3}`, "", store.Op{Kind: store.Delete})),
	}, fmt.Sprintf("ok %d/%[1]d", n-(n+2)/3), fmt.Sprintf("ok %d/%[1]d", n/3))
	for where, want := range map[string]int64{`{"n":0}`: (n + 2) / 3, `{"n":2}`: (n + 1) / 3, `{"n":3}`: 0, `{}`: n - n/3} {
		if got, err := f.Count(f.t.Context(), filter(where), 0); err != nil || got != want {
			f.t.Errorf("atomic %v: %d documents match %s (%v), want %d", atomic, got, where, err, want)
		}
	}
}

// testManyFailing has one document among many that can't be changed. Which come before it is up to the store; atomic,
// none does.
func testManyFailing(t *testing.T, s store.Store) {
	for _, atomic := range []bool{false, true} {
		f := newFixture(t, s)
		f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":"x"}`, `{"_id":4,"a":4}`)
		op := many(by(`{}`, "", change(`{"$inc":{"a":10}}`)))
		results, err := f.Write(t.Context(), []store.Op{op, insert(`{"_id":5}`)}, atomic)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := f.Count(t.Context(), filter(`{"a":{"$gt":10}}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		want, second := results[0].Modified, "ok"
		if atomic {
			want, second = 0, "aborted"
		}
		if got := outcome(results[0].Err); got != "invalid" || changed != want || outcome(results[1].Err) != second {
			t.Errorf("atomic %v: %s, then %s: %d documents changed, the result says %d", atomic, got, outcome(results[1].Err), changed, results[0].Modified)
		}
	}
}

// testManyMoving changes documents so that they come again, further on in the index that finds them.
func testManyMoving(f *fixture) {
	f.index(on("n"))
	ops := make([]store.Op, 400)
	for i := range ops {
		ops[i] = store.Op{Kind: store.Insert, Doc: numbered(i, i)}
	}
	f.mustWrite(ops...)
	f.wantResults(false, []store.Op{many(by(`{"n":{"$gte":0}}`, "", change(`{"$inc":{"n":50}}`)))}, "ok 400/400")
	var wrong int64
	for i := range 400 {
		d, err := f.Get(f.t.Context(), numbered(i, 0).Lookup("_id"))
		if err != nil {
			f.t.Fatal(err)
		}
		if d.Lookup("n").AsInt64() != int64(i+50) {
			wrong++
		}
	}
	if wrong > 0 {
		f.t.Errorf("%d documents were not changed exactly once", wrong)
	}
}
