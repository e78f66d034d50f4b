package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

const (
	byValue  = `[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"k","foreignField":"k","as":"o"}},{"$project":{"k":1,"o":{"$setUnion":["$o._id",[]]}}}]`
	together = `[{"$unionWith":"others"},{"$group":{"_id":null,"n":{"$sum":1},"k":{"$sum":"$k"}}},{"$project":{"_id":0}}]`
)

// wantResults runs a pipeline.
func wantResults(ctx context.Context, t *testing.T, what string, r store.Reader, text, want string) {
	t.Helper()
	if got, err := aggregate(ctx, r, stages(text), store.AggregateOptions{}); err != nil || got != want {
		t.Errorf("%s: %s\ngave %v\n%s\nwant\n%s", what, text, err, got, want)
	}
}

func testAggregateViews(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	others := f.collection("others")
	f.index(on("k"))
	others.index(on("k"))
	f.given(`{"_id":1,"k":1}`, `{"_id":2,"k":2}`)
	others.given(`{"_id":1,"k":1}`)
	v := f.view()
	f.mustWrite(replace(`{"_id":1,"k":5}`), insert(`{"_id":3,"k":1}`))
	others.mustWrite(remove(`1`), insert(`{"_id":2,"k":2}`))
	f.collection("new").given(`{"_id":1}`)

	wantResults(t.Context(), t, "view", v.Collection("things"), byValue, `{"_id":1,"k":1,"o":[1]}`+"\n"+`{"_id":2,"k":2,"o":[]}`)
	wantResults(t.Context(), t, "view", v.Collection("things"), together, `{"n":3,"k":4}`)
	facets, err := pipeline.Facets(nil, []string{"k"}, 9)
	if err != nil {
		t.Fatal(err)
	}
	wantFacets(t.Context(), t, v.Collection("things"), facets, `2 [1:1 2:1]`)
	wantResults(t.Context(), t, "now", f, byValue, `{"_id":1,"k":5,"o":[]}`+"\n"+`{"_id":2,"k":2,"o":[2]}`+"\n"+`{"_id":3,"k":1,"o":[]}`)
	const count = `[{"$facet":{"n":[{"$count":"n"}]}}]`
	wantResults(t.Context(), t, "a collection that came later", v.Collection("new"), count, `{"n":[]}`)
	wantResults(t.Context(), t, "a collection that never was", v.Collection("never"), count, `{"n":[]}`)
	wantResults(t.Context(), t, "a union with what never was", v.Collection("things"), `[{"$unionWith":"never"},{"$count":"n"}]`, `{"n":2}`)

	wantResults(t.Context(), t, "a union with what came later", v.Collection("things"), `[{"$unionWith":"new"},{"$count":"n"}]`, `{"n":2}`)
	wantResults(t.Context(), t, "a lookup in what came later", v.Collection("things"),
		`[{"$lookup":{"from":"new","localField":"_id","foreignField":"_id","as":"l"}},{"$sort":{"_id":1}}]`, `{"_id":1,"k":1,"l":[]}`+"\n"+`{"_id":2,"k":2,"l":[]}`)

	if err := f.db.DropCollection(t.Context(), "others"); err != nil {
		t.Fatal(err)
	}
	got, err := aggregate(t.Context(), v.Collection("things"), stages(byValue), store.AggregateOptions{})
	if err == nil && got != `{"_id":1,"k":1,"o":[1]}`+"\n"+`{"_id":2,"k":2,"o":[]}` || err != nil && !errors.Is(err, store.ErrViewExpired) {
		t.Errorf("the other collection was dropped since: %s, %v", got, err)
	}
}

func testAggregateInTransactions(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	others := f.collection("others")
	f.index(on("k"))
	others.index(on("k"))
	f.given(`{"_id":1,"k":1}`, `{"_id":2,"k":2}`)
	others.given(`{"_id":1,"k":1}`, `{"_id":2,"k":2}`)
	err := f.transact(func(tx *txFixture) error {
		things, others := tx.in("things"), tx.in("others")
		wantResults(tx.ctx, t, "before a write", things, byValue, `{"_id":1,"k":1,"o":[1]}`+"\n"+`{"_id":2,"k":2,"o":[2]}`)
		things.must(replace(`{"_id":2,"k":3}`), insert(`{"_id":3,"k":1}`))
		others.must(remove(`1`), insert(`{"_id":4,"k":3}`), insert(`{"_id":5,"k":3}`))
		wantResults(tx.ctx, t, "behind writes", things, byValue, `{"_id":1,"k":1,"o":[]}`+"\n"+`{"_id":2,"k":3,"o":[4,5]}`+"\n"+`{"_id":3,"k":1,"o":[]}`)
		wantResults(tx.ctx, t, "behind writes", things, together, `{"n":6,"k":13}`)
		wantResults(tx.ctx, t, "behind writes", things, `[{"$sort":{"k":-1,"_id":-1}},{"$skip":1},{"$limit":2}]`, `{"_id":3,"k":1}`+"\n"+`{"_id":1,"k":1}`)
		wantResults(tx.ctx, t, "behind writes", things, `[{"$match":{"k":3}},{"$count":"n"}]`, `{"n":1}`)
		wantResults(tx.ctx, t, "behind writes", tx.in("none"), `[{"$unionWith":"others"},{"$count":"n"}]`, `{"n":3}`)
		if _, err := things.ExplainAggregate(tx.ctx, stages(byValue), store.AggregateOptions{}); err != nil {
			t.Errorf("explain in a transaction: %v", err)
		}
		// An error of the caller ends nothing.
		if err := things.Aggregate(tx.ctx, stages(`[]`), store.AggregateOptions{}, func(bson.Raw) error { return errStop }); !errors.Is(err, errStop) {
			t.Errorf("the error of a function: %v", err)
		}
		if _, err := aggregate(tx.ctx, things, stages(`[]`), store.AggregateOptions{Results: 1}); err == nil {
			t.Error("three results where one is allowed: no error")
		}
		things.must(insert(`{"_id":9}`))
		return nil
	})
	if err != nil {
		t.Errorf("Transact: %v", err)
	}
	wantResults(t.Context(), t, "after the commit", f, together, `{"n":7,"k":13}`)

	const fails = `[{"$project":{"x":{"$divide":["$k","$none"]}}},{"$project":{"x":{"$divide":[1,{"$subtract":["$_id","$_id"]}]}}}]`
	for name, give := range map[string]error{"nothing": nil, "its own error": errStop} {
		err = f.transact(func(tx *txFixture) error {
			things := tx.in("things")
			things.must(insert(`{"_id":10}`))
			if _, err := aggregate(tx.ctx, things, stages(fails), store.AggregateOptions{}); document.ServerCodeOf(err) != 2 {
				t.Errorf("a pipeline that fails in a transaction: %v", err)
			}
			if _, err := aggregate(tx.ctx, things, stages(`[]`), store.AggregateOptions{}); !errors.Is(err, store.ErrAborted) {
				t.Errorf("after a pipeline that failed: %v", err)
			}
			return give
		})
		if give != nil && !errors.Is(err, give) || give == nil && document.ServerCodeOf(err) != 2 {
			t.Errorf("Transact, whose function gives %s: %v", name, err)
		}
	}
	wantResults(t.Context(), t, "after those that failed", f, together, `{"n":7,"k":13}`)
}

// testAggregateSnapshot moves amounts between two collections. No pipeline that reads both sees one on its way.
func testAggregateSnapshot(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	others := f.collection("others")
	others.index(on("k"))
	const n = 20
	for i := range n {
		f.given(fmt.Sprintf(`{"_id":%d,"k":10,"o":%d}`, i, i))
		others.given(fmt.Sprintf(`{"_id":%d,"k":10}`, i))
	}
	var done atomic.Bool
	group, ctx := errgroup.WithContext(t.Context())
	group.Go(func() error {
		defer done.Store(true)
		for i := range 30 * rounds() {
			err := f.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				from, to := tx.Collection("things"), tx.Collection("others")
				if i%2 == 1 {
					from, to = to, from
				}
				id := value(strconv.Itoa(i % n))
				_, err := from.Write(ctx, []store.Op{{Kind: store.Update, ID: id, Update: update(`{"$inc":{"k":-1}}`)}}, false)
				if err == nil {
					_, err = to.Write(ctx, []store.Op{{Kind: store.Update, ID: id, Update: update(`{"$inc":{"k":1}}`)}}, false)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	lookup := stages(`[{"$lookup":{"from":"others","localField":"o","foreignField":"_id","as":"x"}},{"$unwind":"$x"},
		{"$group":{"_id":null,"k":{"$sum":{"$add":["$k","$x.k"]}}}},{"$project":{"_id":0}}]`)
	for _, p := range []string{together, ``} {
		group.Go(func() error {
			for more := true; more; {
				more = !done.Load()
				run, want := lookup, fmt.Sprintf(`{"k":%d}`, 20*n)
				if p != "" {
					run, want = stages(p), fmt.Sprintf(`{"n":%d,"k":%d}`, 2*n, 20*n)
				}
				if got, err := aggregate(ctx, f, run, store.AggregateOptions{}); err != nil || got != want {
					return fmt.Errorf("%s, %w, want %s", got, err, want)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func testAggregateMissing(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for _, c := range []struct{ stages, want string }{
		{`[]`, ``},
		{`[{"$count":"n"}]`, ``},
		{`[{"$group":{"_id":null,"n":{"$sum":1}}}]`, ``},
		{`[{"$facet":{"n":[{"$count":"n"}]}}]`, `{"n":[]}`},
		{`[{"$unionWith":"none"}]`, ``},
		{`[{"$unionWith":"there"},{"$lookup":{"from":"none","localField":"_id","foreignField":"_id","as":"o"}}]`, `{"_id":1,"o":[]}`},
		{`[{"$unionWith":{"coll":"there","pipeline":[{"$lookup":{"from":"things","pipeline":[],"as":"o"}}]}}]`, `{"_id":1,"o":[]}`},
	} {
		for _, there := range []bool{false, true} {
			if there {
				f.collection("there").mustWrite(store.Op{Kind: store.Replace, Doc: doc(`{"_id":1}`), Filter: filter(`{"_id":1}`), Upsert: true})
			} else if strings.Contains(c.stages, "there") {
				continue
			}
			wantResults(t.Context(), t, "a collection that is not there", f, c.stages, c.want)
		}
	}
	if names, err := f.db.CollectionNames(t.Context()); err != nil || !slices.Equal(names, []string{"there"}) {
		t.Errorf("reading has made collections: %v, %v", names, err)
	}
}

func testExplainAggregate(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	others := f.collection("others")
	var docs []store.Op
	for i := range 60 {
		docs = append(docs, insert(fmt.Sprintf(`{"_id":%d,"a":%d,"b":%d}`, i, i, i)))
	}
	f.mustWrite(docs...)
	others.mustWrite(docs...)
	f.index(on("a"))
	others.index(on("b"))
	lookup := func(by string) string {
		return `{"$lookup":{"from":"others","localField":"a","foreignField":"` + by + `","as":"o"}}`
	}
	for _, c := range []struct {
		stages   string
		index    string
		docs     int64 // at most; a server may count those that it looks up, too
		inMemory bool
		others   string
	}{
		{`[{"$match":{"b":5}}]`, "", 60, false, "[]"},
		{`[{"$match":{"a":5}},{"$project":{"b":1}}]`, "a", 1, false, "[]"},
		{`[{"$match":{"a":{"$gte":5,"$lt":8}}},{"$group":{"_id":"$b"}}]`, "a", 3, false, "[]"},
		{`[{"$sort":{"a":-1}},{"$limit":3},{"$project":{"b":1}}]`, "a", 3, false, "[]"},
		{`[{"$sort":{"a":-1}},{"$match":{"a":{"$lt":3}}},{"$addFields":{"x":1}}]`, "a", 3, false, "[]"},
		{`[{"$match":{"a":{"$lt":3}}},{"$sort":{"b":1}},{"$addFields":{"x":1}}]`, "a", 3, true, "[]"},
		{`[{"$match":{"_id":{"$in":[1,2]}}},{"$unwind":"$b"}]`, "_id", 2, false, "[]"},
		{`[{"$match":{"a":{"$lt":3}}},` + lookup("b") + `]`, "a", 6, false, "[{others [b]}]"},
		{`[{"$match":{"a":{"$lt":3}}},` + lookup("_id") + `]`, "a", 6, false, "[{others [_id]}]"},
		{`[{"$match":{"a":{"$lt":3}}},` + lookup("a") + `]`, "a", 3, false, "[{others []}]"},
		{
			`[{"$match":{"a":3}},{"$lookup":{"from":"others","let":{"a":"$a"},"pipeline":[{"$match":{"b":{"$lt":2},"$expr":{"$ne":["$b","$$a"]}}}],"as":"o"}}]`,
			"a", 1, false, "[{others [b]}]",
		},
	} {
		e, err := f.ExplainAggregate(t.Context(), stages(c.stages), store.AggregateOptions{})
		if err != nil || strings.Join(e.Indexes, " ") != c.index || e.SortInMemory != c.inMemory || e.DocsExamined > c.docs ||
			fmt.Sprint(e.Others) != c.others {
			t.Errorf("ExplainAggregate(%s) = %+v, %v; want index %q, at most %d documents, sort in memory %v, others %s",
				c.stages, e, err, c.index, c.docs, c.inMemory, c.others)
		}
	}
}
