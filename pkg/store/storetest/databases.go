package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/store"
)

func testDatabases(t *testing.T, s store.Store) {
	if name := s.Name(); name != "embedded" && name != "mongodb" {
		t.Errorf("Name() = %q", name)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}

	t.Run("collections by name", func(t *testing.T) {
		f := newFixture(t, s)
		f.wantCollections()
		for _, name := range []string{"b", "a.b", "a", "B", "_meta", "a-b", "ab"} {
			(&fixture{t: t, Collection: f.db.Collection(name)}).given(`{"_id":1,"in":"` + name + `"}`)
		}
		f.wantCollections("B", "_meta", "a", "a-b", "a.b", "ab", "b")
		for _, name := range []string{"a", "nothing", "a"} {
			if err := f.db.DropCollection(t.Context(), name); err != nil {
				t.Errorf("DropCollection(%s): %v", name, err)
			}
		}
		f.wantCollections("B", "_meta", "a-b", "a.b", "ab", "b")
		left := &fixture{t: t, Collection: f.db.Collection("ab")}
		if got, want := left.contents(), doc(`{"_id":1,"in":"ab"}`).String(); got != want {
			t.Errorf("ab holds %s, want %s", got, want)
		}
	})

	t.Run("reading makes nothing", func(t *testing.T) {
		f := newFixture(t, s)
		f.find(store.Query{})
		f.write(false, remove(`1`), replace(`{"_id":1}`))
		f.drop(on("a"))
		f.wantIndexes()
		f.wantCollections()
	})

	t.Run("a dropped collection starts anew", func(t *testing.T) {
		f := newFixture(t, s)
		f.index(unique(on("a")))
		f.given(`{"_id":1,"a":1}`)
		if err := f.db.DropCollection(t.Context(), "things"); err != nil {
			t.Fatal(err)
		}
		f.wantIndexes()
		if got := f.contents(); got != "" {
			t.Errorf("still there: %s", got)
		}
		f.given(`{"_id":1,"a":2}`, `{"_id":2,"a":2}`)
		if got := f.find(store.Query{Filter: filter(`{"a":{"$gt":0}}`), Sort: sortBy("_id")}); got != "1 2" {
			t.Errorf("found %s, want 1 2", got)
		}
	})

	t.Run("databases are apart", func(t *testing.T) { testIsolation(t, s) })
}

// testIsolation works on databases whose names begin with each other.
func testIsolation(t *testing.T, s store.Store) {
	first := newFixture(t, s)
	name := databaseName(t, s)
	var others []*fixture
	for _, n := range []string{name, name + "_", name + "-a", name + "0"} {
		t.Cleanup(func() { _ = s.DropDatabase(t.Context(), n) })
		db := s.Database(n)
		others = append(others, &fixture{t: t, store: s, db: db, Collection: db.Collection("things")})
	}
	for i, f := range append(others, first) {
		f.index(unique(on("a")))
		f.mustWrite(store.Op{Kind: store.Insert, Doc: numbered(1, i)})
		f.mustWrite(store.Op{Kind: store.Replace, Doc: numbered(1, i+10)})
	}
	first.mustWrite(remove(`1`))

	dropped, kept := others[0], others[1:]
	for range 2 {
		if err := s.DropDatabase(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	dropped.wantCollections()
	dropped.wantIndexes()
	if got := dropped.contents(); got != "" {
		t.Errorf("a dropped database holds %s", got)
	}
	for i, f := range kept {
		f.wantCollections("things")
		f.wantIndexes(unique(on("a")))
		if got, want := f.contents(), numbered(1, i+11).String(); got != want {
			t.Errorf("database %d holds %s, want %s", i, got, want)
		}
	}
	dropped.given(`{"_id":1,"a":5}`)
	dropped.wantCollections("things")
}

func (f *fixture) wantCollections(want ...string) {
	f.t.Helper()
	got, err := f.db.CollectionNames(f.t.Context())
	if err != nil {
		f.t.Fatalf("CollectionNames: %v", err)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("collections (-want +got):\n%s", diff)
	}
}
