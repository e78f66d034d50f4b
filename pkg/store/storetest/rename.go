package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

func testRename(t *testing.T, s store.Store) {
	t.Run("documents and indexes come along", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(unique(on("a")))
		f.index(partial(on("b"), `{"b":{"$gt":1}}`))
		f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
		f.rename("things", "x.y", false)
		f.wantCollections("x.y")
		to := f.collection("x.y")
		to.wantContents(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
		to.wantIndexes(unique(on("a")), partial(on("b"), `{"b":{"$gt":1}}`))
		if got := to.write(false, insert(`{"_id":3,"a":1}`))[0]; got != "dup a[a]" {
			t.Errorf("the unique index gives %s", got)
		}
		if got := to.find(store.Query{Filter: filter(`{"a":{"$gte":2}}`)}); got != "2" {
			t.Errorf("found %s, want 2", got)
		}
		f.wantContents()
		f.wantIndexes()
		f.given(`{"_id":1,"a":1}`, `{"_id":7,"a":1}`) // the old name is free, and without indexes
		f.wantCollections("things", "x.y")
		to.wantContents(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
	})

	t.Run("onto another", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(on("a"))
		f.given(`{"_id":1,"a":1}`)
		other := f.collection("other")
		other.index(unique(on("z")))
		other.given(`{"_id":9,"z":1}`)
		if err := f.db.RenameCollection(t.Context(), "things", "other", false); !asConflict(err, "collection_exists") {
			t.Errorf("onto one that is there: %v", err)
		}
		f.wantCollections("other", "things")
		other.wantContents(`{"_id":9,"z":1}`)
		f.rename("things", "other", true)
		f.wantCollections("other")
		other.wantContents(`{"_id":1,"a":1}`)
		other.wantIndexes(on("a"))
		f.rename("other", "things", true) // replace is no matter where there is nothing
		f.wantCollections("things")
	})

	t.Run("what isn't there", func(t *testing.T) {
		f := newFixture(t, s)
		for _, replace := range []bool{false, true} {
			if err := f.db.RenameCollection(t.Context(), "things", "other", replace); !errors.Is(err, errs.ErrNotFound) {
				t.Errorf("replace %v: %v", replace, err)
			}
		}
		f.collection("other").given(`{"_id":1}`)
		for _, replace := range []bool{false, true} {
			if err := f.db.RenameCollection(t.Context(), "things", "other", replace); !errors.Is(err, errs.ErrNotFound) {
				t.Errorf("onto one that is there, replace %v: %v", replace, err)
			}
		}
		f.collection("other").wantContents(`{"_id":1}`)
	})

	t.Run("onto itself", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(on("a"))
		f.given(`{"_id":1}`)
		if err := f.db.RenameCollection(t.Context(), "things", "things", false); !asConflict(err, "collection_exists") {
			t.Errorf("without replace: %v", err)
		}
		f.rename("things", "things", true)
		f.wantCollections("things")
		f.wantContents(`{"_id":1}`)
		f.wantIndexes(on("a"))
	})

	t.Run("a swap by a third name", func(t *testing.T) {
		f := newFixture(t, s)
		for i := range 3 {
			f.collection(fmt.Sprint("c", i)).given(fmt.Sprintf(`{"_id":%d}`, i))
		}
		f.rename("c0", "tmp", false)
		f.rename("c1", "c0", false)
		f.rename("tmp", "c1", false)
		f.rename("c2", "c1", true)
		f.wantCollections("c0", "c1")
		f.collection("c0").wantContents(`{"_id":1}`)
		f.collection("c1").wantContents(`{"_id":2}`)
	})
}

// testReplace is for stores in which several collections take the places of others at once.
func testReplace(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	db, ok := f.db.(store.Replacer)
	if !ok {
		t.Skip("the store renames one collection after the other")
	}
	names := []string{"a", "b", "c"}
	shadow := func(name string) string { return "svc.shadow." + name }
	fill := func(round int) (renames []store.Rename) {
		for _, name := range names {
			c := f.collection(shadow(name))
			c.index(unique(on("n")))
			c.given(fmt.Sprintf(`{"_id":%d,"n":1}`, round), fmt.Sprintf(`{"_id":%d,"n":2}`, 1000+round))
			renames = append(renames, store.Rename{From: shadow(name), To: name})
		}
		return renames
	}
	wanted := func(round int) {
		t.Helper()
		for _, name := range names {
			c := f.collection(name)
			c.wantContents(fmt.Sprintf(`{"_id":%d,"n":1}`, round), fmt.Sprintf(`{"_id":%d,"n":2}`, 1000+round))
			c.wantIndexes(unique(on("n")))
			f.collection(shadow(name)).wantContents()
		}
	}

	// Whoever reads all of them at one moment sees all of one round.
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			v := f.view()
			seen := map[string]bool{}
			for _, name := range names {
				ids, err := v.Collection(name).Distinct(t.Context(), "_id", nil)
				if err != nil {
					t.Errorf("read: %v", err)
				}
				seen[fmt.Sprint(ids)] = true
			}
			if err := v.Close(); err != nil || len(seen) != 1 {
				t.Errorf("one moment has %v, %v", seen, err)
			}
		}
	})
	after := f.position()
	for round := 1; round < 6; round++ {
		if err := db.ReplaceCollections(t.Context(), fill(round)); err != nil {
			t.Fatal(err)
		}
		wanted(round)
	}
	stop()
	reading.Wait()
	f.wantCollections("a", "b", "c")
	f.wantEvents(after, store.Watch{Collections: []string{"b"}}, slices.Repeat([]string{"svc.shadow.b renamed to b"}, 5)...)

	t.Run("refused", func(t *testing.T) {
		renames := fill(7)
		for what, tt := range map[string]struct {
			renames []store.Rename
			want    error
		}{
			"one that isn't there": {append(slices.Clone(renames), store.Rename{From: "none", To: "x"}), errs.ErrNotFound},
			"a name twice":         {append(slices.Clone(renames), store.Rename{From: "a", To: "x"}), store.ErrBadName},
			"no name":              {append(slices.Clone(renames), store.Rename{From: "a b", To: "x"}), store.ErrBadName},
		} {
			if err := db.ReplaceCollections(t.Context(), tt.renames); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", what, err, tt.want)
			}
		}
		for _, name := range names {
			f.collection(name).wantContents(`{"_id":5,"n":1}`, `{"_id":1005,"n":2}`)
		}
		if err := db.ReplaceCollections(t.Context(), nil); err != nil {
			t.Errorf("nothing: %v", err)
		}
		if err := db.ReplaceCollections(t.Context(), renames); err != nil {
			t.Error(err)
		}
		wanted(7)
	})
}

func (f *fixture) rename(from, to string, replace bool) {
	f.t.Helper()
	if err := f.db.RenameCollection(f.t.Context(), from, to, replace); err != nil {
		f.t.Fatalf("RenameCollection(%s, %s): %v", from, to, err)
	}
}

// testBookkeeping uses collections whose names begin with "svc.": they work as others do, and do not show.
func testBookkeeping(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	after := f.position()
	hidden := f.collection("svc.test")
	hidden.index(unique(on("a")))
	hidden.given(`{"_id":1,"a":1}`)
	f.wantCollections()
	if got := hidden.write(false, insert(`{"_id":2,"a":1}`))[0]; got != "dup a[a]" {
		t.Errorf("a unique index gives %s", got)
	}
	hidden.wantContents(`{"_id":1,"a":1}`)
	f.given(`{"_id":1}`)
	f.wantCollections("things")
	f.wantEvents(after, store.Watch{}, "things inserted 1")

	f.collection("svc.next").given(`{"_id":7}`) // of other names of fields nothing shows
	after = f.position()
	f.rename("svc.next", "svc.other", false)
	f.rename("svc.other", "things", true)
	f.wantContents(`{"_id":7}`)
	f.rename("things", "svc.next", false)
	f.wantEvents(after, store.Watch{Collections: []string{"things"}}, "svc.other renamed to things", "things renamed to svc.next")
	f.wantEvents(after, store.Watch{}, "svc.other renamed to things", "things renamed to svc.next")
	f.given(`{"_id":1}`)

	f.collection("svcx").given(`{"_id":1}`)
	f.collection("svc").given(`{"_id":1}`)
	f.wantCollections("marker", "svc", "svcx", "things")

	t.Run("positions", func(t *testing.T) {
		f := newFixture(t, s)
		f.wantPosition("a", "")
		f.savePosition("a", "one")
		f.savePosition("b", "other")
		f.wantPosition("a", "one")
		f.savePosition("a", "two")
		f.savePosition("a", "two")
		f.wantPosition("a", "two")
		f.wantPosition("b", "other")
		f.wantCollections()
	})
}

func (f *fixture) savePosition(consumer, p string) {
	f.t.Helper()
	err := f.transact(func(tx *txFixture) error { return store.SavePosition(tx.ctx, tx.tx, consumer, store.Position(p)) })
	if err != nil {
		f.t.Fatalf("SavePosition: %v", err)
	}
}

func (f *fixture) wantPosition(consumer, want string) {
	f.t.Helper()
	if got, err := store.LoadPosition(f.t.Context(), f.db, consumer); err != nil || string(got) != want || (got == nil) != (want == "") {
		f.t.Errorf("the position of %s is %q, %v, want %q", consumer, got, err, want)
	}
}

func testStats(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	stats := func() store.Stats {
		t.Helper()
		got, err := f.Stats(t.Context())
		if err != nil {
			t.Fatalf("Stats: %v", err)
		}
		return got
	}
	if got := stats(); got.Documents != 0 || got.Bytes != 0 || len(got.IndexBytes) != 0 {
		t.Errorf("of a collection that isn't there: %+v", got)
	}
	f.index(on("n"))
	var documents, bytes int64
	check := func(doing string) {
		t.Helper()
		if got := stats(); got.Documents != documents || got.Bytes != bytes {
			t.Errorf("%s: %d documents of %d bytes, want %d of %d", doing, got.Documents, got.Bytes, documents, bytes)
		}
	}
	for i := range 300 {
		d := numbered(i, i)
		documents, bytes = documents+1, bytes+int64(len(d))
		f.mustWrite(store.Op{Kind: store.Insert, Doc: d})
	}
	check("inserted")
	if got := stats(); len(got.IndexBytes) < 1 || got.IndexBytes["n"] < 0 || got.DiskBytes < 0 {
		t.Errorf("sizes: %+v", got)
	} else if _, ok := got.IndexBytes["n"]; !ok {
		t.Errorf("the index has no size: %+v", got)
	}
	f.mustWrite(store.Op{Kind: store.Replace, Doc: doc(`{"_id":1}`)}, remove(`2`))
	bytes += int64(len(doc(`{"_id":1}`)) - len(numbered(1, 1)) - len(numbered(2, 2)))
	documents--
	check("replaced and deleted")
	f.mustWrite(store.Op{Kind: store.Update, ID: value(`3`), Update: update(`{"$unset":{"text":""}}`)})
	bytes += int64(len(doc(`{"_id":3,"n":3}`)) - len(numbered(3, 3)))
	check("updated")
	f.write(true, remove(`4`), remove(`4`))
	check("aborted")
	if err := f.transact(func(tx *txFixture) error {
		tx.in("things").must(remove(`5`), insert(`{"_id":"new"}`))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	bytes += int64(len(doc(`{"_id":"new"}`)) - len(numbered(5, 5)))
	check("changed in a transaction")
	f.mustWrite(store.Op{Kind: store.Delete, Filter: filter(`{}`), Many: true})
	documents, bytes = 0, 0
	check("emptied")
}
