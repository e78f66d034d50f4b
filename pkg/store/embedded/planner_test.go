package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestBounds tells for each operator how many keys of an index on n are read: 40 documents have the numbers 0 to 39, 10
// have texts, 5 have null, 5 have no n.
func TestBounds(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	for _, x := range []store.Index{
		index("n", "n"), index("desc", "-n", "x"), index("list", "l"), index("two", "l.a", "l.b"), index("mixed", "k", "l.a"),
	} {
		createIndex(t, c, x)
	}
	for i := range 60 {
		doc := bson.D{
			{Key: "_id", Value: i},
			{Key: "k", Value: i % 4},
			{Key: "l", Value: bson.A{bson.D{{Key: "a", Value: i}, {Key: "b", Value: 1}}, bson.D{{Key: "a", Value: i + 100}, {Key: "b", Value: 2}}}},
		}
		switch {
		case i < 40:
			doc = append(doc, bson.E{Key: "n", Value: i})
		case i < 50:
			doc = append(doc, bson.E{Key: "n", Value: fmt.Sprintf("text %d", i-40)})
		case i < 55:
			doc = append(doc, bson.E{Key: "n", Value: nil})
		}
		must(t, c, insert(t, doc))
	}
	for _, tt := range []struct {
		filter string
		keys   int64 // read; 60: all
	}{
		{`{"n":{"$ne":3}}`, 59},
		{`{"n":{"$nin":[1,2,"text 1"]}}`, 57},
		{`{"n":{"$not":{"$gt":3}}}`, 24},
		{`{"n":{"$not":{"$gte":3,"$lt":39}}}`, 24},
		{`{"$nor":[{"n":{"$lt":30}},{"n":{"$type":"number"}}]}`, 20},
		{`{"n":null}`, 10},
		{`{"n":{"$ne":null}}`, 50},
		{`{"n":{"$exists":false}}`, 10},
		{`{"n":{"$lte":null}}`, 10},
		{`{"n":{"$gt":null}}`, 0},
		{`{"n":{"$type":"number"}}`, 40},
		{`{"n":{"$type":["string","null"]}}`, 20},
		{`{"n":{"$type":"array"}}`, 0},
		{`{"n":{"$mod":[5,0]}}`, 40},
		{`{"n":{"$regex":"^text"}}`, 10},
		{`{"n":{"$regex":"^text 1"}}`, 1},
		{`{"n":{"$regex":"t 1"}}`, 10},
		{`{"n":{"$regex":"^TEXT 1","$options":"i"}}`, 10},
		{`{"n":{"$not":{"$regex":"^text"}}}`, 50},
		{`{"n":{"$in":[1,"text 1",null]}}`, 12},
		{`{"n":{"$in":[{"$regularExpression":{"pattern":"^text","options":""}},5]}}`, 11},
		{`{"n":{"$gt":{"$minKey":1},"$lt":5}}`, 5},
		{`{"n":{"$gte":{"$maxKey":1}}}`, 0},
		{`{"n":[1,2]}`, 0},
		{`{"n":{"$size":1}}`, 0},
		{`{"n":{"$all":[3]}}`, 1},
		{`{"n":{"$elemMatch":{"$gt":3}}}`, 0},
		{`{"n":{"$gt":3,"$lt":8,"$ne":5}}`, 3},
		{`{"l.a":{"$gte":50,"$lte":52}}`, 70}, // one side only: an element may be above and another below
		{`{"l":{"$elemMatch":{"a":3,"b":2}}}`, 0},
		{`{"l":{"$elemMatch":{"a":103,"b":2}}}`, 1},
		{`{"k":1,"l.a":{"$gt":150}}`, 2},
		{`{"l.a":{"$in":[1,2,3]}}`, 3},
		{`{"l.a":{"$size":0}}`, 0},
		{`{"$or":[{"n":3},{"l.a":{"$in":[5,7]}}]}`, 3},
		{`{"$or":[{"n":3},{"l.a":3},{"_id":{"$gte":58}}]}`, 4},
		{`{"$or":[{"n":{"$gt":38}},{"$or":[{"n":7},{"n":"text 1"}]}]}`, 3},
		{`{"$or":[{"n":3},{"other":1}]}`, 60},
		{`{"k":2,"$or":[{"n":3},{"n":6}]}`, 2},
		{`{"$and":[{"$or":[{"n":3},{"n":6}]},{"$or":[{"n":6},{"other":2}]}]}`, 2},
	} {
		q := store.Query{Filter: mql.MustCompile(parse(t, tt.filter))}
		e, err := c.Explain(t.Context(), q)
		if err != nil || e.KeysExamined != tt.keys {
			t.Errorf("%s: %d keys of %v, want %d (%v)", tt.filter, e.KeysExamined, e.Indexes, tt.keys, err)
		}
	}
}

func parse(t *testing.T, text string) bson.D {
	t.Helper()
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

// TestMergedOrder reads pages out of several ranges and branches that each have the order asked for.
func TestMergedOrder(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("kind_n", "kind", "n"))
	createIndex(t, c, index("tags_n", "tags", "-n"))
	createIndex(t, c, index("n", "n"))
	for i := range 200 {
		must(t, c, insert(t, bson.D{
			{Key: "_id", Value: i}, {Key: "kind", Value: i % 10}, {Key: "n", Value: i * 37 % 200}, {Key: "tags", Value: bson.A{i % 3, 5 + i%2}},
		}))
	}
	either := func(branches ...bson.D) *mql.Filter {
		list := bson.A{}
		for _, b := range branches {
			list = append(list, b)
		}
		return mql.MustCompile(bson.D{{Key: "$or", Value: list}})
	}
	in := func(path string, v ...any) bson.D {
		return bson.D{{Key: path, Value: bson.D{{Key: "$in", Value: bson.A(v)}}}}
	}
	for _, tt := range []struct {
		name    string
		filter  *mql.Filter
		sort    mql.Sort
		indexes []string
		keys    int64 // for the first page of 5
	}{
		{"points", mql.MustCompile(in("kind", 1, 3, 5)), sortBy("n", "_id"), []string{"kind_n"}, 3 + 4},
		{"points backwards", mql.MustCompile(in("kind", 1, 3, 5)), sortBy("-n", "-_id"), []string{"kind_n"}, 3 + 4},
		{"points of lists", mql.MustCompile(in("tags", 0, 1, 2, 5, 6)), sortBy("-n", "_id"), []string{"tags_n"}, 5 + 8},
		{"branches", either(bson.D{{Key: "kind", Value: 1}}, bson.D{{Key: "kind", Value: 2}}), sortBy("n", "_id"), []string{"kind_n"}, 2 + 4},
		{
			name:    "branches with duplicates",
			filter:  either(bson.D{{Key: "kind", Value: 1}}, in("kind", 1, 2), bson.D{{Key: "tags", Value: 1}}),
			sort:    sortBy("n"),
			indexes: []string{"kind_n", "tags_n"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := store.Query{Filter: tt.filter, Sort: tt.sort, Limit: 5}
			e, err := c.Explain(t.Context(), q)
			if err != nil || e.SortInMemory || !slices.Equal(e.Indexes, tt.indexes) || (tt.keys > 0 && e.KeysExamined != tt.keys) {
				t.Errorf("%+v, %v; want %v, %d keys", e, err, tt.indexes, tt.keys)
			}
			var want, got []bson.Raw
			for _, d := range find(t, c, store.Query{}) {
				if tt.filter.Match(d) {
					want = append(want, d)
				}
			}
			slices.SortFunc(want, tt.sort.Compare)
			for page := find(t, c, q); len(page) > 0; page = find(t, c, q) {
				got = append(got, page...)
				q.After = q.Sort.Key(page[len(page)-1])
			}
			if diff := cmp.Diff(show(want), show(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOrderOfLists: an index gives the order by a list's least or greatest element, if it is read whole.
func TestOrderOfLists(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("l", "l"))
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 50 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "l", Value: bson.A{r.IntN(100), r.IntN(100)}[:r.IntN(3)]}}))
	}
	for _, sort := range []mql.Sort{sortBy("l", "_id"), sortBy("-l", "-_id")} {
		q := store.Query{Sort: sort, Limit: 7}
		if e, err := c.Explain(t.Context(), q); err != nil || e.SortInMemory || e.KeysExamined > 20 {
			t.Errorf("%v: %+v, %v", sort, e, err)
		}
		want := find(t, c, store.Query{})
		slices.SortFunc(want, sort.Compare)
		var got []bson.Raw
		for page := find(t, c, q); len(page) > 0; page = find(t, c, q) {
			got = append(got, page...)
			q.After = sort.Key(page[len(page)-1])
		}
		if diff := cmp.Diff(show(want), show(got)); diff != "" {
			t.Error(diff)
		}
		q = store.Query{Sort: sort, Filter: gte("l", 50), Limit: 7}
		if e, err := c.Explain(t.Context(), q); err != nil || (!e.SortInMemory && e.DocsExamined < 50) {
			t.Errorf("%v, some elements: %+v, %v", sort, e, err)
		}
	}
}

// TestPlanCache: which of two indexes is better depends on the documents. A choice holds until it turns out to be bad, or
// the indexes change.
func TestPlanCache(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("a", "a"))
	createIndex(t, c, index("b", "b"))
	var ops []store.Op
	for i := range 4000 { // of a, 0 is rare; of b, 1 is
		a, b := 1, 0
		if i < 10 {
			a = 0
		}
		if i >= 3990 {
			b = 1
		}
		ops = append(ops, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: a}, {Key: "b", Value: b}}))
	}
	must(t, c, ops...)
	explain := func(a, b int) store.Explanation {
		t.Helper()
		e, err := c.Explain(t.Context(), store.Query{Filter: mql.MustCompile(bson.D{{Key: "a", Value: a}, {Key: "b", Value: b}})})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for i, want := range []struct {
		a, b  int
		index string
	}{
		{0, 0, "a"},
		{0, 0, "a"}, // remembered
		{1, 1, "a"}, // remembered, though b is better here: 3990 keys for what took 10
		{1, 1, "b"}, // tried anew
		{0, 0, "b"},
		{0, 0, "a"},
	} {
		if got := explain(want.a, want.b); strings.Join(got.Indexes, " ") != want.index {
			t.Fatalf("query %d: %+v, want %s", i, got, want.index)
		}
	}
	if err := c.DropIndex(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := explain(0, 0); strings.Join(got.Indexes, " ") != "b" || got.Returned != 10 {
		t.Errorf("without the index: %+v", got)
	}
	createIndex(t, c, index("ab", "a", "b"))
	if got := explain(0, 0); strings.Join(got.Indexes, " ") != "ab" || got.KeysExamined != 10 {
		t.Errorf("with a better one: %+v", got)
	}
}

// TestPartialAndSparse: indexes that lack documents serve only queries that can't find those.
func TestPartialAndSparse(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	partial := index("partial", "n")
	partial.Partial = mql.MustCompile(bson.D{{Key: "live", Value: true}})
	sparse := index("sparse", "rare")
	sparse.Sparse = true
	createIndex(t, c, partial)
	createIndex(t, c, sparse)
	for i := range 100 {
		doc := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "live", Value: i%10 == 0}}
		if i%25 == 0 {
			doc = append(doc, bson.E{Key: "rare", Value: []any{nil, i}[i/25%2]})
		}
		must(t, c, insert(t, doc))
	}
	for _, tt := range []struct {
		filter string
		sort   mql.Sort
		index  string
		keys   int64
	}{
		{`{"n":{"$lt":50}}`, nil, "", 100},
		{`{"n":{"$lt":50},"live":true}`, nil, "partial", 5},
		{`{"live":true}`, nil, "partial", 10},
		{`{"live":true}`, sortBy("n"), "partial", 10},
		{`{"n":{"$lt":50},"live":{"$ne":false}}`, nil, "", 100},
		{`{}`, sortBy("n"), "", 100},
		{`{"rare":{"$exists":true}}`, nil, "sparse", 4},
		{`{"rare":{"$ne":null}}`, nil, "sparse", 2},
		{`{"rare":null}`, nil, "", 100},
		{`{"rare":{"$ne":25}}`, nil, "", 100},
		{`{"rare":{"$gt":30}}`, nil, "sparse", 1},
		{`{}`, sortBy("rare"), "", 100},
		{`{"rare":{"$exists":true}}`, sortBy("rare"), "sparse", 4},
	} {
		e, err := c.Explain(t.Context(), store.Query{Filter: mql.MustCompile(parse(t, tt.filter)), Sort: tt.sort})
		if err != nil || strings.Join(e.Indexes, " ") != tt.index || e.KeysExamined != tt.keys {
			t.Errorf("%s sorted by %v: %+v, %v; want %q, %d", tt.filter, tt.sort, e, err, tt.index, tt.keys)
		}
	}
}

func TestParallelSort(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c,
		insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1}}, {Key: "b", Value: 1}}),
		insert(t, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: bson.A{1}}, {Key: "b", Value: bson.A{}}}),
		insert(t, bson.D{{Key: "_id", Value: 3}, {Key: "l", Value: bson.A{bson.D{{Key: "x", Value: 1}, {Key: "y", Value: 2}}}}}))
	run := func(filter bson.D, sort mql.Sort) string {
		err := c.Find(t.Context(), store.Query{Filter: mql.MustCompile(filter), Sort: sort}, func(bson.Raw) error { return nil })
		if err == nil {
			return ""
		}
		return errs.From(err).Code
	}
	if got := run(bson.D{}, sortBy("a", "b")); got != "parallel_sort" {
		t.Errorf("two lists: %q", got)
	}
	if got := run(bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: 2}}}}, sortBy("a", "b")); got != "" {
		t.Errorf("one list: %q", got)
	}
	if got := run(bson.D{}, sortBy("l.x", "l.y")); got != "" {
		t.Errorf("the same list: %q", got)
	}
}

// TestReadsEndWithContext: reads of all kinds end soon after their context.
func TestReadsEndWithContext(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("n", "n"))
	createIndex(t, c, index("kind_n", "kind", "n"))
	var ops []store.Op
	for i := range 3000 {
		ops = append(ops, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "m", Value: -i}, {Key: "kind", Value: i % 5}}))
	}
	must(t, c, ops...)
	kinds := mql.MustCompile(bson.D{{Key: "kind", Value: bson.D{{Key: "$in", Value: bson.A{0, 1, 2, 3, 4}}}}})
	either := mql.MustCompile(bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "kind", Value: 1}}, bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 0}}}}}}})
	for name, q := range map[string]store.Query{
		"scan": {}, "index": {Filter: gte("n", 0)}, "points": {Filter: kinds}, "merge": {Filter: kinds, Sort: sortBy("n")},
		"branches": {Filter: either}, "merged branches": {Filter: either, Sort: sortBy("n")}, "sorted": {Sort: sortBy("m")},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := c.Find(ctx, q, func(bson.Raw) error {
			if n++; n == 1 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || n > 1 {
			t.Errorf("%s: %v after %d documents", name, err, n)
		}
		cancel()
	}
	for name, read := range map[string]func(ctx context.Context) error{
		"count":            func(ctx context.Context) error { _, err := c.Count(ctx, gte("n", 0), 0); return err },
		"count documents":  func(ctx context.Context) error { _, err := c.Count(ctx, gte("m", -5000), 0); return err },
		"sort":             func(ctx context.Context) error { return c.Find(ctx, store.Query{Sort: sortBy("m")}, nil) },
		"distinct":         func(ctx context.Context) error { _, err := c.Distinct(ctx, "m", nil); return err },
		"distinct by seek": func(ctx context.Context) error { _, err := c.Distinct(ctx, "n", nil); return err },
	} {
		if err := read(&endsLater{Context: t.Context(), after: 4}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endsLater is a context that ends when it has been asked a few times.
type endsLater struct {
	context.Context
	after int
}

func (c *endsLater) Err() error {
	if c.after--; c.after < 0 {
		return context.Canceled
	}
	return nil
}

// TestDistinct compares with a scan, on random documents under indexes.
func TestDistinct(t *testing.T) {
	for seed := range uint64(10 * soak()) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := open(t, embedded.Options{InMemory: true})
		o := &oracle{t: t, r: r, c: collection(s), docs: map[int]bson.Raw{}, lists: seed%2 == 0, paths: []string{"a", "b", "c", "a.b"}}
		for range 3 {
			for range 60 {
				o.change()
			}
			o.changeIndexes()
			for range 60 {
				f, path := o.filter(), []string{"a", "b", "c", "a.b", "_id"}[r.IntN(5)]
				got, err := o.c.Distinct(t.Context(), path, f)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.IsSortedFunc(got, document.Compare) {
					t.Errorf("out of order: %v", got)
				}
				want := o.distinct(path, f)
				if !slices.EqualFunc(got, want, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 }) {
					t.Errorf("seed %d: Distinct(%s, %v) = %v, want %v", seed, path, f.Raw(), got, want)
				}
			}
		}
	}
}

// distinct works values out from decoded documents.
func (o *oracle) distinct(path string, f *mql.Filter) []bson.RawValue {
	var out []bson.RawValue
	var walk func(v bson.RawValue, names []string)
	walk = func(v bson.RawValue, names []string) {
		doc, isDoc := v.DocumentOK()
		switch list, isList := v.ArrayOK(); {
		case len(names) == 0 && isList:
			values, _ := list.Values()
			out = append(out, values...)
		case len(names) == 0:
			out = append(out, v)
		case isList:
			values, _ := list.Values()
			for _, item := range values {
				if sub, ok := item.DocumentOK(); ok {
					if next, err := sub.LookupErr(names[0]); err == nil {
						walk(next, names[1:])
					}
				}
			}
		case isDoc:
			if next, err := doc.LookupErr(names[0]); err == nil {
				walk(next, names[1:])
			}
		}
	}
	for _, d := range o.matches(store.Query{Filter: f}) {
		walk(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: d}, strings.Split(path, "."))
	}
	slices.SortFunc(out, document.Compare)
	return slices.CompactFunc(out, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 })
}

// TestListsInElements: of one $elemMatch, two fields that lead into a further list may be satisfied by different elements
// of that one.
func TestListsInElements(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("pair", "l.x.b", "l.x.c"))
	must(t, c, insert(t, parse(t, `{"_id":1,"l":[{"x":[{"b":1,"c":0},{"b":0,"c":2}]}]}`)))
	q := store.Query{Filter: mql.MustCompile(parse(t, `{"l":{"$elemMatch":{"x.b":1,"x.c":2}}}`))}
	if e, err := c.Explain(t.Context(), q); err != nil || e.Returned != 1 || len(e.Indexes) != 1 {
		t.Errorf("%+v, %v", e, err)
	}
}
