package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

func testIndexes(t *testing.T, s store.Store) {
	t.Run("list", func(t *testing.T) {
		f := newFixture(t, s)
		f.wantIndexes()
		z, a, u := on("z"), on("a.b -c"), sparse(unique(on("u")))
		f.index(z)
		f.index(a)
		f.index(u)
		f.wantIndexes(a, u, z)
		f.given(`{"_id":1}`)
		f.wantIndexes(a, u, z)
	})

	t.Run("an index makes the collection", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(on("a"))
		names, err := f.db.CollectionNames(t.Context())
		if diff := cmp.Diff([]string{"things"}, names); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})

	t.Run("an equal index is no error", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":1,"a":1}`)
		for range 2 {
			f.index(unique(on("a -b")))
		}
		f.wantIndexes(unique(on("a -b")))
	})

	t.Run("dates expire", func(t *testing.T) {
		f := newFixture(t, s)
		hour := on("at")
		hour.ExpireAfter = time.Hour
		day := on("until")
		day.ExpireAfter = 24 * time.Hour
		f.index(hour)
		f.index(day)
		f.index(hour)
		f.wantIndexes(hour, day)
		other := hour
		other.ExpireAfter = time.Minute
		if err := f.CreateIndex(t.Context(), other); errs.From(err) == nil || errs.From(err).Code != "index_exists" {
			t.Errorf("another time: %v", err)
		}
		f.given(`{"_id":1,"at":{"$date":"2999-01-01T00:00:00Z"}}`, `{"_id":2,"at":"2000-01-01"}`, `{"_id":3}`)
		if got := f.find(store.Query{Filter: filter(`{"at":{"$gte":{"$date":"2000-01-01T00:00:00Z"}}}`)}); got != "1" {
			t.Errorf("found %s, want 1", got)
		}
	})

	t.Run("one name, another definition", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":1,"a":1}`)
		f.index(store.Index{Name: "x", Keys: on("a b").Keys})
		for _, other := range []store.Index{
			on("a"), on("b a"), on("a -b"), on("a c"), on("a b c"), unique(on("a b")), sparse(on("a b")),
			partial(on("a b"), `{"a":1}`),
		} {
			other.Name = "x"
			err := f.CreateIndex(t.Context(), other)
			if e := errs.From(err); e == nil || e.Kind != errs.Conflict || e.Code != "index_exists" {
				t.Errorf("%+v: got %v, want the conflict index_exists", other, err)
			}
		}
		f.wantIndexes(store.Index{Name: "x", Keys: on("a b").Keys})
	})

	t.Run("drop", func(t *testing.T) {
		f := newFixture(t, s)
		f.drop(on("nothing"))
		f.index(unique(on("a")))
		f.index(on("b"))
		f.given(`{"_id":1,"a":1}`)
		for _, none := range []string{"*", "_id", "_id_", "", "A", "a_"} {
			f.drop(store.Index{Name: none})
		}
		f.wantIndexes(unique(on("a")), on("b"))
		f.drop(on("a"))
		f.drop(on("a"))
		f.wantIndexes(on("b"))
		f.given(`{"_id":2,"a":1}`)
		if got := f.write(false, insert(`{"_id":1}`))[0]; got != "dup _id[_id]" {
			t.Errorf("after dropping indexes, a taken id gives %s", got)
		}
	})

	t.Run("dropped and made anew", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(on("a"))
		f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
		f.drop(on("a"))
		f.mustWrite(remove(`1`), replace(`{"_id":2,"a":7}`), insert(`{"_id":3,"a":2}`))
		f.index(on("a"))
		if got := f.find(store.Query{Filter: filter(`{"a":{"$gt":0}}`), Sort: sortBy("a")}); got != "3 2" {
			t.Errorf("got %s, want 3 2", got)
		}
	})

	t.Run("existing documents are in it", func(t *testing.T) {
		f := newFixture(t, s)
		for i := range 300 {
			f.given(fmt.Sprintf(`{"_id":%d,"a":%d}`, i, i))
		}
		f.index(unique(on("a")))
		q := store.Query{Filter: filter(`{"a":{"$gte":290}}`), Sort: sortBy("-a"), Limit: 3}
		if e, err := f.Explain(t.Context(), q); err != nil || strings.Join(e.Indexes, " ") != "a" {
			t.Errorf("Explain = %+v, %v", e, err)
		}
		if got := f.find(q); got != "299 298 297" {
			t.Errorf("got %s", got)
		}
		if got := f.write(false, insert(`{"_id":1000,"a":7}`))[0]; got != "dup a[a]" {
			t.Errorf("a value from before the index gives %s", got)
		}
	})

	t.Run("32 keys", func(t *testing.T) {
		f := newFixture(t, s)
		paths := make([]string, 32)
		for i := range paths {
			paths[i] = fmt.Sprintf("k%d", i)
		}
		index := on(strings.Join(paths, " "))
		index.Name = "wide"
		f.index(index)
		f.wantIndexes(index)
	})
}

func (f *fixture) wantIndexes(want ...store.Index) {
	f.t.Helper()
	got, err := f.Indexes(f.t.Context())
	if err != nil {
		f.t.Fatalf("Indexes: %v", err)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !slices.EqualFunc(want, got, store.Index.Equal) {
		f.t.Errorf("indexes are %s, want %s", showIndexes(got), showIndexes(want))
	}
}

func showIndexes(indexes []store.Index) string {
	texts := make([]string, len(indexes))
	for i, x := range indexes {
		texts[i] = fmt.Sprintf("%s%v unique %v sparse %v", x.Name, x.Keys, x.Unique, x.Sparse)
		if x.Partial != nil {
			texts[i] += " where " + x.Partial.Raw().String()
		}
		if x.ExpireAfter != 0 {
			texts[i] += " expires after " + x.ExpireAfter.String()
		}
	}
	return strings.Join(texts, "; ")
}

// testViolations builds unique indexes on documents that share a key.
func testViolations(t *testing.T, s store.Store) {
	for _, c := range []struct {
		name  string
		index store.Index
		docs  []string
		among []string // the documents that share a key, in groups; nil: none do
	}{
		{"none", on("a"), []string{`{"_id":1,"a":1}`, `{"_id":2,"a":2}`}, nil},
		{"two", on("a"), []string{`{"_id":1,"a":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":1.0}`}, []string{"1", "3"}},
		{"missing and null", on("a"), []string{`{"_id":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":null}`}, []string{"1", "3"}},
		{"empty lists", on("a"), []string{`{"_id":1,"a":[]}`, `{"_id":2}`, `{"_id":3,"a":[]}`}, []string{"1", "3"}},
		{"elements of lists", on("a"), []string{`{"_id":1,"a":[1,2]}`, `{"_id":2,"a":[3]}`, `{"_id":3,"a":[4,2]}`}, []string{"1", "3"}},
		{"objects", on("a"), []string{`{"_id":1,"a":{"x":1}}`, `{"_id":2,"a":{"x":1,"y":1}}`, `{"_id":3,"a":{"x":1.0}}`}, []string{"1", "3"}},
		{"dotted", on("a.b"), []string{`{"_id":1,"a":{"b":1}}`, `{"_id":2,"a":1}`, `{"_id":3,"a":[{"b":1}]}`}, []string{"1", "3"}},
		{"NaN", on("a"), []string{
			`{"_id":1,"a":{"$numberDouble":"NaN"}}`, `{"_id":2,"a":0}`, `{"_id":3,"a":{"$numberDouble":"NaN"}}`,
		}, []string{"1", "3"}},
		{"compound", on("a -b"), []string{
			`{"_id":1,"a":1,"b":2}`, `{"_id":2,"a":1}`, `{"_id":3,"a":1,"b":2}`, `{"_id":4,"b":2}`,
		}, []string{"1", "3"}},
		{"sparse, missing", sparse(on("a")), []string{`{"_id":1}`, `{"_id":2}`, `{"_id":3,"a":null}`}, nil},
		{"sparse, null", sparse(on("a")), []string{`{"_id":1,"a":null}`, `{"_id":2}`, `{"_id":3,"a":null}`}, []string{"1", "3"}},
		{"many", on("a"), []string{
			`{"_id":1,"a":1}`, `{"_id":2,"a":1}`, `{"_id":3,"a":1}`, `{"_id":4,"a":1}`, `{"_id":5,"a":1}`, `{"_id":6,"a":1}`,
			`{"_id":7,"a":1}`, `{"_id":8,"a":2}`,
		}, []string{"1", "2", "3", "4", "5", "6", "7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, s)
			f.given(c.docs...)
			before := f.contents()
			err := f.CreateIndex(t.Context(), unique(c.index))
			if c.among == nil {
				if err != nil {
					t.Errorf("CreateIndex: %v", err)
				}
				return
			}
			f.wantViolation(err, c.index.Name, c.among)
			f.wantIndexes()
			if got := f.contents(); got != before {
				t.Errorf("documents are now\n%s\nand were\n%s", got, before)
			}
			// Nothing is left behind that refuses writes or stands in the way of the next attempt.
			f.mustWrite(replace(c.docs[len(c.docs)-1]))
			f.mustWrite(remove(`1`), remove(`2`), remove(`3`))
			for _, id := range c.among {
				f.write(false, remove(id))
			}
			f.index(unique(c.index))
		})
	}
}

// wantViolation checks that err names index and up to 5 documents, all of them from among.
func (f *fixture) wantViolation(err error, index string, among []string) {
	f.t.Helper()
	violation, ok := asViolation(err)
	if !ok {
		f.t.Fatalf("CreateIndex: %v, want a ViolationError", err)
	}
	var ids []string
	for _, id := range violation.IDs {
		ids = append(ids, show(id))
		if !slices.Contains(among, show(id)) {
			f.t.Errorf("document %s does not violate the index", show(id))
		}
	}
	slices.Sort(ids)
	if distinct := slices.Compact(ids); len(distinct) != min(len(among), 5) || violation.Index != index {
		f.t.Errorf("violation of %s names documents %v, want index %s and %d of %v", violation.Index, ids, index, min(len(among), 5), among)
	}
}

func asViolation(err error) (*store.ViolationError, bool) {
	var violation *store.ViolationError
	ok := errors.As(err, &violation)
	return violation, ok
}
