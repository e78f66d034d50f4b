package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// testPartialIndexes checks which documents a partial index constrains and which queries it may serve.
func testPartialIndexes(t *testing.T, s store.Store) {
	t.Run("definitions", func(t *testing.T) {
		f := newFixture(t, s)
		where := []string{
			`{"a":1}`, `{"a":{"$gt":5},"b":{"$lte":"x"}}`, `{"a":{"$exists":true}}`, `{"a":{"$type":"string"}}`,
			`{"$or":[{"a":1},{"b":{"$gte":2}}]}`, `{"a":{"$in":[1,2]}}`, `{"a":{"$type":"number"}}`, `{"$and":[{"a":1},{"b.c":null}]}`,
		}
		indexes := make([]store.Index, len(where))
		for i, w := range where {
			indexes[i] = partial(on(fmt.Sprintf("p%d", i)), w)
			f.index(indexes[i])
			f.index(indexes[i])
		}
		f.wantIndexes(indexes...)
		other := partial(on("p0"), `{"a":2}`)
		if err := f.CreateIndex(t.Context(), other); errs.From(err) == nil || errs.From(err).Code != "index_exists" {
			t.Errorf("another condition: %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		f := newFixture(t, s)
		for _, where := range []string{
			`{"a":{"$ne":1}}`, `{"a":{"$exists":false}}`, `{"a":{"$regex":"x"}}`, `{"a":{"$not":{"$gt":1}}}`, `{"$nor":[{"a":1}]}`,
			`{"a":{"$elemMatch":{"b":1}}}`, `{"a":{"$size":1}}`, `{"a":{"$nin":[1]}}`,
		} {
			if err := f.CreateIndex(t.Context(), partial(on("x"), where)); errs.KindOf(err) != errs.Invalid {
				t.Errorf("%s: %v", where, err)
			}
		}
		if err := f.CreateIndex(t.Context(), sparse(partial(on("x"), `{"a":1}`))); errs.KindOf(err) != errs.Invalid {
			t.Errorf("sparse and partial: %v", err)
		}
		f.wantIndexes()
	})
	t.Run("unique", func(t *testing.T) { testPartialUnique(newFixture(t, s)) })
	t.Run("served queries", func(t *testing.T) { testPartialServed(newFixture(t, s)) })
	t.Run("violations", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":1,"u":1,"on":true}`, `{"_id":2,"u":1,"on":false}`, `{"_id":3,"u":1}`)
		index := unique(partial(on("u"), `{"on":true}`))
		f.index(index)
		f.drop(index)
		f.mustWrite(replace(`{"_id":3,"u":1,"on":true}`))
		f.wantViolation(f.CreateIndex(t.Context(), index), index.Name, []string{"1", "3"})
	})
}

func testPartialUnique(f *fixture) {
	f.index(unique(partial(on("u"), `{"on":true}`)))
	for _, step := range []struct {
		op   store.Op
		want string
	}{
		{insert(`{"_id":1,"u":1,"on":true}`), "ok"},
		{insert(`{"_id":2,"u":1,"on":true}`), "dup u[u]"},
		{insert(`{"_id":2,"u":1,"on":false}`), "ok"},
		{insert(`{"_id":3,"u":1}`), "ok"},
		{replace(`{"_id":2,"u":1,"on":true}`), "dup u[u]"}, // comes into the index
		{replace(`{"_id":1,"u":1}`), "ok"},                 // leaves it
		{replace(`{"_id":2,"u":1,"on":true}`), "ok"},
		{replace(`{"_id":1,"u":1,"on":[true]}`), "dup u[u]"},
		{insert(`{"_id":4,"on":true}`), "ok"},
		{insert(`{"_id":5,"u":null,"on":true}`), "dup u[u]"},
	} {
		if got := f.write(false, step.op)[0]; got != step.want {
			f.t.Errorf("%v: got %s, want %s", step.op.Doc, got, step.want)
		}
	}
}

// testPartialServed asks for more and for less than what the index has.
func testPartialServed(f *fixture) {
	f.index(partial(on("a"), `{"a":{"$gte":10}}`))
	for i := range 60 {
		f.given(fmt.Sprintf(`{"_id":%d,"a":%d}`, i, i))
	}
	f.given(`{"_id":60}`, `{"_id":61,"a":"x"}`)
	for _, c := range []struct {
		filter, sort string
		want         int
		served       bool
	}{
		{`{"a":{"$gte":50,"$lte":100}}`, "", 10, true},
		{`{"a":55}`, "", 1, true},
		{`{"a":{"$in":[50,51]}}`, "", 2, true},
		{`{"a":{"$gt":5,"$lt":12}}`, "", 6, false},
		{`{"a":5}`, "", 1, false},
		{`{"a":null}`, "", 1, false},
		{`{"a":{"$in":[5,55]}}`, "", 2, false},
		{`{"a":{"$ne":3}}`, "", 61, false},
		{`{"a":"x"}`, "", 1, false},
		{``, "a", 62, false},
		{`{"a":{"$gte":40}}`, "a", 20, true},
	} {
		q := store.Query{Filter: filter(c.filter), Sort: sortBy(c.sort)}
		if got := len(strings.Fields(f.find(q))); got != c.want {
			f.t.Errorf("%s sort %q: %d documents, want %d", c.filter, c.sort, got, c.want)
		}
		e, err := f.Explain(f.t.Context(), q)
		if err != nil || slices.Contains(e.Indexes, "a") != c.served {
			f.t.Errorf("%s sort %q: served by the index, should be %v: %+v, %v", c.filter, c.sort, c.served, e, err)
		}
	}
}

// asConflict says whether err is the conflict with that code.
func asConflict(err error, code string) bool {
	e, ok := errors.AsType[*errs.Error](err)
	return ok && e.Kind == errs.Conflict && e.Code == code
}
