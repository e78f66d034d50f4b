package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// testNames checks that what can't be a name is refused by every method, alike.
func testNames(t *testing.T, s store.Store) {
	for _, name := range []string{"", "admin", "config", "local", "a/b", "..", "a.b", "$cmd", "Upper", "a b", "ä", strings.Repeat("x", 61)} {
		refusesAll(t, fmt.Sprintf("database %q", name), s, name, "things")
		wantInvalid(t, fmt.Sprintf("DropDatabase(%q)", name), s.DropDatabase(t.Context(), name))
	}
	database := databaseName(t, s)
	f := &fixture{db: s.Database(database)}
	for _, name := range []string{
		"", "system.users", ".a", "a.", "..", "a b", "a$b", "$cmd", "a\x00b", "\xff", strings.Repeat("x", 121),
	} {
		refusesAll(t, fmt.Sprintf("collection %q", name), s, database, name)
		wantInvalid(t, fmt.Sprintf("DropCollection(%q)", name), f.db.DropCollection(t.Context(), name))
		wantInvalid(t, fmt.Sprintf("RenameCollection(%q)", name), f.db.RenameCollection(t.Context(), name, "other", true))
		wantInvalid(t, fmt.Sprintf("RenameCollection to %q", name), f.db.RenameCollection(t.Context(), "other", name, true))
	}
	for _, name := range []string{strings.Repeat("x", 120), "a/b", "ä", "A.b-c_d"} {
		(&fixture{t: t, Collection: f.db.Collection(name)}).given(`{"_id":1}`)
	}
}

func wantInvalid(t *testing.T, what string, err error) {
	t.Helper()
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("%s: %v, want errs.Invalid", what, err)
	}
}

// refusesAll calls all methods of a collection that can't be.
func refusesAll(t *testing.T, what string, s store.Store, database, collection string) {
	t.Helper()
	ctx := t.Context()
	c := s.Database(database).Collection(collection)
	_, err := c.Write(ctx, []store.Op{insert(`{"_id":1}`)}, true)
	wantInvalid(t, what+": Write", err)
	_, err = c.Indexes(ctx)
	wantInvalid(t, what+": Indexes", err)
	_, err = c.Stats(ctx)
	wantInvalid(t, what+": Stats", err)
	wantInvalid(t, what+": CreateIndex", c.CreateIndex(ctx, on("a")))
	wantInvalid(t, what+": DropIndex", c.DropIndex(ctx, "a"))
	refusesReads(t, what, c)
	err = s.Database(database).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Collection(collection).Write(ctx, []store.Op{insert(`{"_id":1}`)}, true)
		return err
	})
	wantInvalid(t, what+": Write in a transaction", err)
	if v, err := s.Database(database).View(ctx); err == nil {
		refusesReads(t, what+" in a view", v.Collection(collection))
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	} else {
		wantInvalid(t, what+": View", err)
	}
}

func refusesReads(t *testing.T, what string, c store.Reader) {
	t.Helper()
	ctx := t.Context()
	_, err := c.Get(ctx, value(`1`))
	wantInvalid(t, what+": Get", err)
	wantInvalid(t, what+": Find", c.Find(ctx, store.Query{}, func(bson.Raw) error { return nil }))
	_, err = c.Count(ctx, nil, 0)
	wantInvalid(t, what+": Count", err)
	_, err = c.Distinct(ctx, "a", nil)
	wantInvalid(t, what+": Distinct", err)
	_, err = c.Explain(ctx, store.Query{})
	wantInvalid(t, what+": Explain", err)
}

// testPageEnds checks pages of any length, and positions that belong to another sort.
func testPageEnds(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1,"a":3}`, `{"_id":2,"a":1}`, `{"_id":3,"a":2}`)
	pages := []struct {
		skip, limit int64
		want        int
	}{
		{math.MaxInt64, 10, 0},
		{1, math.MaxInt64, 2},
		{math.MaxInt64, math.MaxInt64, 0},
		{math.MaxInt64, 0, 0},
		{0, math.MaxInt64, 3},
		{5, math.MaxInt32, 0},
		{-1, -1, 3},
		{0, math.MinInt64, 3},
		{math.MinInt64, 0, 3},
	}
	try := func(t *testing.T, c store.Reader) {
		for _, sort := range []string{"", "_id", "a _id", "-a"} {
			for _, p := range pages {
				got := 0
				q := store.Query{Sort: sortBy(sort), Skip: p.skip, Limit: p.limit}
				err := c.Find(t.Context(), q, func(bson.Raw) error { got++; return nil })
				if err != nil || got != p.want {
					t.Errorf("sort %q skip %d limit %d: %d documents, %v; want %d", sort, p.skip, p.limit, got, err, p.want)
				}
			}
			for _, n := range []int{1, 2, 3} {
				q := store.Query{Sort: sortBy(sort), After: []bson.RawValue{value(`1`), value(`2`), value(`3`)}[:n]}
				if len(q.Sort) != n {
					none := func(bson.Raw) error { return nil }
					wantInvalid(t, fmt.Sprintf("sort %q after %d values", sort, n), c.Find(t.Context(), q, none))
					_, err := c.Explain(t.Context(), q)
					wantInvalid(t, fmt.Sprintf("explain sort %q after %d values", sort, n), err)
				}
			}
		}
	}
	try(t, f.Collection)
	f.underIndexes(t, permutations("a"), func(f *fixture) { try(f.t, f.Collection) })
	v, err := f.db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	try(t, v.Collection("things"))
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	errRollBack := errors.New("roll back")
	err = f.db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		c := tx.Collection("things")
		if _, err := c.Write(ctx, []store.Op{remove(`1`), insert(`{"_id":1,"a":4}`)}, false); err != nil {
			return err
		}
		for _, p := range pages {
			got := 0
			q := store.Query{Sort: sortBy("a _id"), Skip: p.skip, Limit: p.limit}
			err := c.Find(ctx, q, func(bson.Raw) error { got++; return nil })
			if err != nil || got != p.want {
				t.Errorf("in a transaction, skip %d limit %d: %d documents, %v; want %d", p.skip, p.limit, got, err, p.want)
			}
		}
		return errRollBack
	})
	if !errors.Is(err, errRollBack) {
		t.Error(err)
	}
}

// testBadPaths checks that sorts and paths that can't be are refused by every read and write, and the longest are taken.
func testBadPaths(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1}`)
	longest := make(mql.Sort, store.MaxSortFields)
	for i := range longest {
		longest[i].Path = fmt.Sprint("f", i)
	}
	deepest := strings.Repeat("a.", 99) + "a"
	for _, c := range []struct {
		sort mql.Sort
		ok   bool
	}{
		{longest, true},
		{append(slices.Clip(longest), mql.SortField{Path: "g"}), false},
		{mql.Sort{{Path: deepest}}, true},
		{mql.Sort{{Path: deepest + ".a"}}, false},
		{mql.Sort{{Path: "a"}, {Path: ""}}, false},
		{mql.Sort{{Path: "a..b"}}, false},
		{mql.Sort{{Path: "a."}}, false},
		{mql.Sort{{Path: ".a"}}, false},
		{mql.Sort{{Path: "$a"}}, false},
		{mql.Sort{{Path: "a.$b"}}, false},
		{mql.Sort{{Path: "a.$"}}, false},
		{mql.Sort{{Path: "a\x00b"}}, false},
		{mql.Sort{{Path: "\xff"}}, false},
	} {
		check := func(what string, err error) {
			t.Helper()
			if c.ok && err != nil || !c.ok && errs.KindOf(err) != errs.Invalid {
				t.Errorf("%s by %.40q: %v", what, fmt.Sprint(c.sort), err)
			}
		}
		q := store.Query{Sort: c.sort}
		check("find", f.Find(t.Context(), q, func(bson.Raw) error { return nil }))
		_, err := f.Explain(t.Context(), q)
		check("explain", err)
		op := store.Op{Kind: store.Update, Filter: filter(`{}`), Sort: c.sort, Update: update(`{"$inc":{"n":1}}`)}
		for _, returning := range []store.Returning{store.ReturnNone, store.ReturnAfter} {
			op.Return = returning
			results, err := f.Write(t.Context(), []store.Op{op}, false)
			if err != nil {
				t.Fatal(err)
			}
			check("update", results[0].Err)
		}
		if len(c.sort) == 1 {
			_, err := f.Distinct(t.Context(), c.sort[0].Path, nil)
			check("distinct", err)
			err = f.db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Collection("things").Distinct(ctx, c.sort[0].Path, nil)
				return err
			})
			check("distinct in a transaction", err)
		}
	}
}

// testDepth checks that documents that go too deep are refused, and that those which do not stay.
func testDepth(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for _, c := range []struct {
		levels int
		ok     bool
	}{{100, true}, {101, false}, {200, false}, {200_000, false}} {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: c.levels}, {Key: "d", Value: nested(c.levels - 1)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []store.Op{
			{Kind: store.Insert, Doc: doc},
			{Kind: store.Replace, Doc: doc},
			{Kind: store.Replace, Doc: doc, Filter: filter(`{"_id":` + strconv.Itoa(c.levels) + `}`), Upsert: true},
		} {
			results, err := f.Write(t.Context(), []store.Op{op}, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := results[0].Err; (got == nil) != c.ok || !c.ok && errs.KindOf(got) != errs.Invalid {
				t.Errorf("%d levels, kind %d: %v", c.levels, op.Kind, got)
			}
		}
	}
}

// nested is objects in objects.
func nested(levels int) bson.Raw {
	const around = 8 // a length, a type, a name and two NUL
	size := 5 + (levels-1)*around
	doc := make([]byte, 0, size)
	for n := size; n > 5; n -= around {
		doc = append(doc, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(bson.TypeEmbeddedDocument), 'a', 0)
	}
	doc = append(doc, 5, 0, 0, 0, 0)
	return append(doc, make([]byte, levels-1)...)
}

// testBadIndexes checks definitions that would mean something else to one of the stores.
func testBadIndexes(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1}`)
	for _, index := range []store.Index{
		{Name: "", Keys: on("a").Keys},
		{Name: "*", Keys: on("a").Keys},
		{Name: "a\x00b", Keys: on("a").Keys},
		{Name: "\xff", Keys: on("a").Keys},
		{Name: "_id", Keys: on("a").Keys},
		{Name: "id", Keys: on("_id").Keys},
		{Name: "none"},
		{Name: "n", Keys: []store.IndexKey{{Path: ""}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "a..b"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "$a"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "a.$b"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "$**"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "a\xff"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "a\x00"}}},
		{Name: "n", Keys: []store.IndexKey{{Path: "a"}, {Path: "a", Desc: true}}},
	} {
		wantInvalid(t, fmt.Sprintf("CreateIndex(%+v)", index), f.CreateIndex(t.Context(), index))
	}
	for i := range 63 {
		f.index(on(fmt.Sprintf("f%d", i)))
	}
	wantInvalid(t, "the 64th index", f.CreateIndex(t.Context(), on("g")))
	for _, name := range []string{"*", "_id_", ""} {
		if err := f.DropIndex(t.Context(), name); err != nil {
			t.Errorf("DropIndex(%q): %v", name, err)
		}
	}
	if indexes, err := f.Indexes(t.Context()); err != nil || len(indexes) != 63 {
		t.Errorf("%d indexes left, %v", len(indexes), err)
	}
}

// testLargeFilters checks that filters of thousands of conditions are answered, by an index or without.
func testLargeFilters(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":5000}`, `{"_id":3,"a":[2,6000]}`, `{"_id":4}`, `{"_id":5,"a":"x"}`)
	var not, either, all, values bson.A
	for i := range 3000 {
		not = append(not, bson.D{{Key: "a", Value: bson.D{{Key: "$ne", Value: i}}}})
		either = append(either, bson.D{{Key: "a", Value: i}})
		values = append(values, i)
		all = append(all, bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "a", Value: i}}, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 1}}}}}}})
	}
	f.underIndexes(t, permutations("a"), func(f *fixture) {
		for _, c := range []struct {
			filter bson.D
			want   string
		}{
			{bson.D{{Key: "$and", Value: not}}, "2 4 5"},
			{bson.D{{Key: "$nor", Value: either}}, "2 4 5"},
			{bson.D{{Key: "$or", Value: either}}, "1 3"},
			{bson.D{{Key: "a", Value: bson.D{{Key: "$nin", Value: values}}}}, "2 4 5"},
			{bson.D{{Key: "$and", Value: all[:500]}}, "2 3 4 5"},
		} {
			if got := f.find(store.Query{Filter: mql.MustCompile(c.filter), Sort: sortBy("_id")}); got != c.want {
				f.t.Errorf("%s of %d: got %q, want %q", c.filter[0].Key, len(not), got, c.want)
			}
		}
	})
}
