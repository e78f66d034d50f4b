package embedded_test

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// open opens a store, and at the end of t checks that its indexes are what its documents say, and closes it.
func open(t testing.TB, opts embedded.Options) *embedded.Store {
	t.Helper()
	if opts.OnFatal == nil {
		opts.OnFatal = func(err error) { t.Errorf("the engine failed: %v", err) }
	}
	s, err := embedded.Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { validateAndClose(t, s) })
	return s
}

func validateAndClose(t testing.TB, s *embedded.Store) {
	t.Helper()
	err := s.Validate(context.WithoutCancel(t.Context()))
	if err != nil && errs.KindOf(err) != errs.Unavailable { // closed before
		t.Errorf("Validate: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err) // iterators that were not closed show here
	}
}

func collection(s *embedded.Store) store.Collection { return s.Database("db").Collection("things") }

func raw(t testing.TB, doc bson.D) bson.Raw {
	t.Helper()
	out, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func value(t testing.TB, v any) bson.RawValue {
	t.Helper()
	return raw(t, bson.D{{Key: "v", Value: v}}).Lookup("v")
}

func insert(t testing.TB, doc bson.D) store.Op {
	t.Helper()
	return store.Op{Kind: store.Insert, Doc: raw(t, doc)}
}

// must applies ops that have to succeed.
func must(t testing.TB, c store.Collection, ops ...store.Op) {
	t.Helper()
	results, err := c.Write(t.Context(), ops, false)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("op %d: %v", i, r.Err)
		}
	}
}

func createIndex(t testing.TB, c store.Collection, index store.Index) {
	t.Helper()
	if err := c.CreateIndex(t.Context(), index); err != nil {
		t.Fatalf("CreateIndex(%s): %v", index.Name, err)
	}
}

// index makes a definition out of paths, descending ones with a minus.
func index(name string, paths ...string) store.Index {
	def := store.Index{Name: name}
	for _, f := range sortBy(paths...) {
		def.Keys = append(def.Keys, store.IndexKey{Path: f.Path, Desc: f.Desc})
	}
	return def
}

func sortBy(paths ...string) mql.Sort {
	var s mql.Sort
	for _, p := range paths {
		if p[0] == '-' {
			s = append(s, mql.SortField{Path: p[1:], Desc: true})
		} else {
			s = append(s, mql.SortField{Path: p})
		}
	}
	return s
}

func find(t testing.TB, c store.Collection, q store.Query) []bson.Raw {
	t.Helper()
	var docs []bson.Raw
	err := c.Find(t.Context(), q, func(doc bson.Raw) error {
		docs = append(docs, append(bson.Raw(nil), doc...))
		return nil
	})
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return docs
}
