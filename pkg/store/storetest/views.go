package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// view opens a view, which is closed at the end of the test.
func (f *fixture) view() store.View {
	f.t.Helper()
	v, err := f.db.View(f.t.Context())
	if err != nil {
		f.t.Fatalf("View: %v", err)
	}
	f.t.Cleanup(func() { _ = v.Close() })
	return v
}

// wantView reads a collection of a view in every way.
func (f *fixture) wantView(v store.View, name, where, want string) {
	f.t.Helper()
	r := v.Collection(name)
	var ids []string
	var last bson.RawValue
	err := r.Find(f.t.Context(), store.Query{Filter: filter(where), Sort: sortBy("_id")}, func(d bson.Raw) error {
		last = bson.RawValue{Type: d.Lookup("_id").Type, Value: slices.Clone(d.Lookup("_id").Value)}
		ids = append(ids, show(last))
		return nil
	})
	if got := strings.Join(ids, " "); err != nil || got != want {
		f.t.Errorf("%s of %s in the view: %q, %v, want %q", where, name, got, err, want)
	}
	if n, err := r.Count(f.t.Context(), filter(where), 0); err != nil || int(n) != len(strings.Fields(want)) {
		f.t.Errorf("count of %s of %s in the view: %d, %v, want %d", where, name, n, err, len(strings.Fields(want)))
	}
	if len(ids) > 0 {
		if _, err := r.Get(f.t.Context(), last); err != nil {
			f.t.Errorf("get %v of %s in the view: %v", last, name, err)
		}
	}
}

func testViews(t *testing.T, s store.Store) {
	t.Run("later changes are not in it", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(on("a"))
		f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":3}`)
		f.collection("other").given(`{"_id":1}`)
		v := f.view()
		f.mustWrite(remove(`1`), replace(`{"_id":2,"a":9}`), insert(`{"_id":4,"a":2}`))
		f.collection("other").mustWrite(insert(`{"_id":2}`))
		f.collection("new").given(`{"_id":1}`)
		later := f.view()
		f.mustWrite(insert(`{"_id":5,"a":2}`))

		for range 2 {
			f.wantView(v, "things", "", "1 2 3")
			f.wantView(v, "things", `{"a":{"$gte":2}}`, "2 3")
			f.wantView(v, "other", "", "1")
			f.wantView(v, "new", "", "")
			f.wantView(v, "none", "", "")
			f.wantView(later, "things", `{"a":{"$gte":2}}`, "2 3 4")
			f.wantView(later, "new", "", "1")
		}
		if _, err := v.Collection("things").Get(t.Context(), value(`4`)); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("get of a later document: %v", err)
		}
		if values, err := v.Collection("things").Distinct(t.Context(), "a", nil); err != nil || showDistinct(values) != "1 2 3" {
			t.Errorf("distinct: %s, %v", showDistinct(values), err)
		}
		for v, want := range map[store.View]string{v: "other things", later: "new other things"} {
			if names, err := v.CollectionNames(t.Context()); err != nil || strings.Join(names, " ") != want {
				t.Errorf("collections %v, %v, want %s", names, err, want)
			}
		}
		if err := v.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, err := v.Collection("things").Count(t.Context(), nil, 0); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a closed view: %v", err)
		}
		f.wantView(later, "things", "", "2 3 4")
	})

	t.Run("of nothing", func(t *testing.T) {
		f := newFixture(t, s)
		v := f.view()
		f.given(`{"_id":1}`)
		f.wantView(v, "things", "", "")
		if names, err := v.CollectionNames(t.Context()); err != nil || len(names) != 0 {
			t.Errorf("collections %v, %v", names, err)
		}
	})

	t.Run("with a transaction it sees all or nothing", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":0}`)
		f.collection("other").given(`{"_id":0}`)
		var during store.View
		err := f.transact(func(tx *txFixture) error {
			if err := tx.in("things").apply(insert(`{"_id":1}`)); err != nil {
				return err
			}
			during = f.view()
			return tx.in("other").apply(insert(`{"_id":1}`))
		})
		if err != nil {
			t.Fatal(err)
		}
		f.wantView(during, "things", "", "0")
		f.wantView(during, "other", "", "0")
		after := f.view()
		f.wantView(after, "things", "", "0 1")
		f.wantView(after, "other", "", "0 1")
	})

	t.Run("the feed behind it has what it lacks", func(t *testing.T) { testViewAndFeed(newFixture(t, s)) })
	t.Run("more than one batch", func(t *testing.T) {
		f := newFixture(t, s)
		f.manyDocuments(1500)
		v := f.view()
		n := 0
		err := v.Collection("things").Find(t.Context(), store.Query{}, func(bson.Raw) error {
			if n++; n == 1 {
				f.mustWrite(store.Op{Kind: store.Delete, Filter: filter(`{"_id":{"$gte":10}}`), Many: true})
			}
			return nil
		})
		if err != nil || n != 1500 {
			t.Errorf("%d documents, %v", n, err)
		}
		f.wantView(v, "things", `{"_id":{"$gte":1497}}`, "1497 1498 1499")
	})
}

// testViewAndFeed takes views while documents are written, and makes each whole with the changes behind it.
func testViewAndFeed(f *fixture) {
	const n = 120
	done := make(chan error, 1)
	go func() {
		for i := range n {
			results, err := f.Write(f.t.Context(), []store.Op{insert(fmt.Sprintf(`{"_id":%d}`, i))}, i%5 == 0)
			if err == nil {
				err = results[0].Err
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	type part struct {
		seen map[string]bool
		from store.Position
	}
	var parts []part
	for range 6 {
		v := f.view()
		p := part{seen: map[string]bool{}, from: v.Position()}
		err := v.Collection("things").Find(f.t.Context(), store.Query{}, func(d bson.Raw) error {
			p.seen[show(d.Lookup("_id"))] = true
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
		parts = append(parts, p)
	}
	if err := <-done; err != nil {
		f.t.Fatal(err)
	}
	for i, p := range parts {
		before := len(p.seen)
		for _, e := range f.events(p.from, store.Watch{Collections: []string{"things"}}) {
			id := show(e.ID)
			if p.seen[id] {
				f.t.Errorf("view %d, of %d documents: the feed behind it has document %s, which is in the view", i, before, id)
			}
			p.seen[id] = true
		}
		if len(p.seen) != n {
			f.t.Errorf("view %d: its %d documents and the feed behind it are %d, want %d", i, before, len(p.seen), n)
		}
	}
}
