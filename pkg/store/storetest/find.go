package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

func testFind(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(
		`{"_id":1,"a":3,"b":"x"}`, `{"_id":2,"a":1,"b":"y"}`, `{"_id":3,"a":2,"b":"x"}`,
		`{"_id":4,"a":1,"b":"x"}`, `{"_id":5,"b":"z"}`, `{"_id":6,"a":null,"b":"y"}`,
	)
	type query struct {
		filter, sort string
		skip, limit  int64
		want         string
	}
	queries := []query{
		{"", "_id", 0, 0, "1 2 3 4 5 6"},
		{"", "-_id", 0, 0, "6 5 4 3 2 1"},
		{"", "a _id", 0, 0, "5 6 2 4 3 1"},
		{"", "-a _id", 0, 0, "1 3 2 4 5 6"},
		{"", "-a -_id", 0, 0, "1 3 4 2 6 5"},
		{"", "a -b _id", 0, 0, "5 6 2 4 3 1"},
		{"", "b -a _id", 0, 0, "1 3 4 2 6 5"},
		{"", "nothing _id", 0, 0, "1 2 3 4 5 6"},
		{"", "_id", 2, 0, "3 4 5 6"},
		{"", "_id", 0, 2, "1 2"},
		{"", "_id", 2, 3, "3 4 5"},
		{"", "a _id", 4, 100, "3 1"},
		{"", "_id", 6, 0, ""},
		{"", "_id", 100, 1, ""},
		{`{}`, "_id", 0, 0, "1 2 3 4 5 6"},
		{`{"b":"x"}`, "a _id", 0, 0, "4 3 1"},
		{`{"b":"x"}`, "-a _id", 1, 1, "3"},
		{`{"a":1}`, "-_id", 0, 1, "4"},
		{`{"a":{"$gte":1}}`, "b -_id", 0, 0, "4 3 1 2"},
		{`{"b":"none"}`, "_id", 0, 0, ""},
		{`{"_id":3}`, "", 0, 0, "3"},
		{`{"_id":{"$in":[5,1,9]}}`, "_id", 0, 0, "1 5"},
		{`{"_id":{"$gt":4}}`, "-_id", 0, 0, "6 5"},
	}
	f.underIndexes(t, append(permutations("a", "b"), on("b a")), func(f *fixture) {
		for _, q := range queries {
			got := f.find(store.Query{Filter: filter(q.filter), Sort: sortBy(q.sort), Skip: q.skip, Limit: q.limit})
			if got != q.want {
				f.t.Errorf("filter %s sort %q skip %d limit %d: got %q, want %q", q.filter, q.sort, q.skip, q.limit, got, q.want)
			}
		}
	})

	t.Run("no documents", func(t *testing.T) {
		f := newFixture(t, s)
		if got := f.find(store.Query{Filter: filter(`{"a":1}`), Sort: sortBy("a")}); got != "" {
			t.Errorf("a collection that isn't there has %s", got)
		}
	})
	t.Run("an error of fn ends it", func(t *testing.T) { testFindError(t, s) })
	t.Run("more than one batch", func(t *testing.T) { testFindMany(t, s) })
	t.Run("fn may read", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":1,"next":2}`, `{"_id":2,"next":1}`)
		err := f.Find(t.Context(), store.Query{}, func(d bson.Raw) error {
			next, err := f.Get(t.Context(), d.Lookup("next"))
			if err == nil && !next.Lookup("next").Equal(d.Lookup("_id")) {
				t.Errorf("next of %v is %v", d, next)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func testFindError(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1}`, `{"_id":2}`, `{"_id":3}`)
	errStop := errors.New("stop")
	calls := 0
	err := f.Find(t.Context(), store.Query{Sort: sortBy("_id")}, func(bson.Raw) error {
		if calls++; calls == 2 {
			return errStop
		}
		return nil
	})
	if !errors.Is(err, errStop) || calls != 2 {
		t.Errorf("got %v after %d calls, want the error of fn after 2", err, calls)
	}
}

// testFindMany reads more documents, and more bytes, than an adapter keeps at once.
func testFindMany(t *testing.T, s store.Store) {
	const n = 2000 // 20 MB
	f := newFixture(t, s)
	f.manyDocuments(n)
	for _, q := range []store.Query{{Sort: sortBy("-_id")}, {Sort: sortBy("-n")}, {Sort: sortBy("-n"), Limit: n - 1}} {
		next, calls := n-1, 0
		err := f.Find(t.Context(), q, func(d bson.Raw) error {
			if id := int(d.Lookup("_id").AsInt64()); id != next {
				return fmt.Errorf("call %d: document %d, want %d", calls, id, next)
			}
			next, calls = next-1, calls+1
			return nil
		})
		want := n
		if q.Limit > 0 {
			want = int(q.Limit)
		}
		if err != nil || calls != want {
			t.Errorf("sort %v: %d calls, want %d: %v", q.Sort, calls, want, err)
		}
	}
}

// manyDocuments inserts n documents of 10 KB with _id and n from 0 up.
func (f *fixture) manyDocuments(n int) {
	f.t.Helper()
	for at := 0; at < n; at += 500 {
		var ops []store.Op
		for i := at; i < min(n, at+500); i++ {
			ops = append(ops, large(i, i, 10_000))
		}
		f.mustWrite(ops...)
	}
}

// drop drops an index, which must succeed.
func (f *fixture) drop(index store.Index) {
	f.t.Helper()
	if err := f.DropIndex(f.t.Context(), index.Name); err != nil {
		f.t.Fatalf("DropIndex(%s): %v", index.Name, err)
	}
}

func testCount(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for _, where := range []string{"", `{"a":1}`} {
		if n, err := f.Count(t.Context(), filter(where), 5); err != nil || n != 0 {
			t.Errorf("Count(%s) in an empty collection = %d, %v", where, n, err)
		}
	}
	for i := range 20 {
		f.given(fmt.Sprintf(`{"_id":%d,"a":%d,"l":[%d,%d,%d]}`, i, i%4, i, i+1, i+2))
	}
	f.underIndexes(t, permutations("a", "l"), func(f *fixture) {
		for _, c := range []struct {
			filter      string
			limit, want int64
		}{
			{"", 0, 20},
			{`{}`, 7, 7},
			{"", 20, 20},
			{"", 21, 20},
			{`{"a":1}`, 0, 5},
			{`{"a":1}`, 3, 3},
			{`{"a":{"$gt":1}}`, 0, 10},
			{`{"l":{"$gte":0}}`, 0, 20}, // each document once, however many of its elements match
			{`{"l":{"$gte":18}}`, 0, 4},
			{`{"a":9}`, 1, 0},
			{`{"_id":{"$lt":3}}`, 0, 3},
		} {
			got, err := f.Count(f.t.Context(), filter(c.filter), c.limit)
			if err != nil || got != c.want {
				f.t.Errorf("Count(%s, limit %d) = %d, %v, want %d", c.filter, c.limit, got, err, c.want)
			}
		}
	})
}

func testExplain(t *testing.T, s store.Store) {
	const n = 60
	f := newFixture(t, s)
	for i := range n {
		f.given(fmt.Sprintf(`{"_id":%d,"a":%d,"b":%d}`, i, i, i))
	}
	f.index(on("a"))
	for _, c := range []struct {
		filter, sort string
		limit        int64
		index        string
		inMemory     bool
	}{
		{`{"b":5}`, "", 0, "", false},
		{`{"b":5}`, "b", 0, "", true},
		{`{"_id":5}`, "", 0, "_id", false},
		{`{"_id":{"$in":[5,7]}}`, "", 0, "_id", false},
		{`{"a":5}`, "", 0, "a", false},
		{`{"a":{"$gte":5,"$lt":8}}`, "", 0, "a", false},
		{`{"a":{"$gte":5,"$lt":8}}`, "-a", 0, "a", false},
		{`{"a":{"$gte":5,"$lt":8}}`, "b", 0, "a", true},
		{"", "a", 3, "a", false},
		{"", "-_id", 3, "_id", false},
	} {
		q := store.Query{Filter: filter(c.filter), Sort: sortBy(c.sort), Limit: c.limit}
		got, err := f.Explain(t.Context(), q)
		if err != nil {
			t.Errorf("Explain(%s sort %q): %v", c.filter, c.sort, err)
			continue
		}
		if strings.Join(got.Indexes, " ") != c.index || got.SortInMemory != c.inMemory {
			t.Errorf("Explain(%s sort %q) = %+v, want index %q, sort in memory %v", c.filter, c.sort, got, c.index, c.inMemory)
		}
		if scan := c.index == ""; scan && got.DocsExamined != n || !scan && got.DocsExamined > 5 {
			t.Errorf("Explain(%s sort %q) examined %d documents", c.filter, c.sort, got.DocsExamined)
		}
		if ranged := c.index == "a"; ranged && (got.KeysExamined == 0 || got.KeysExamined > 5) {
			t.Errorf("Explain(%s sort %q) examined %d keys", c.filter, c.sort, got.KeysExamined)
		}
	}
}
