package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// open opens a store, and at the end of t checks that its indexes are what its documents say, and closes it.
func open(tb testing.TB, opts embedded.Options) *embedded.Store {
	tb.Helper()
	s := start(tb, opts)
	tb.Cleanup(func() { validateAndClose(tb, s) })
	return s
}

// start opens a store that the caller closes with validateAndClose: those of a loop, with their files, would add up until
// the end of the test.
func start(tb testing.TB, opts embedded.Options) *embedded.Store {
	tb.Helper()
	if opts.OnFatal == nil {
		opts.OnFatal = func(err error) { tb.Errorf("the engine failed: %v", err) }
	}
	s, err := embedded.Open(tb.Context(), opts)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	return s
}

func validateAndClose(tb testing.TB, s *embedded.Store) {
	tb.Helper()
	err := validate(context.WithoutCancel(tb.Context()), s)
	if err != nil && errs.KindOf(err) != errs.Unavailable { // closed before
		tb.Errorf("Validate: %v", err)
	}
	if err := s.Close(); err != nil {
		tb.Errorf("Close: %v", err) // iterators that were not closed show here
	}
}

// validate gives the problems of a store as one error.
func validate(ctx context.Context, s *embedded.Store) error {
	var problems []error
	err := s.Validate(ctx, func(p store.Problem) {
		problems = append(problems, fmt.Errorf("collection %q index %q: %s (repairable: %v)", p.Collection, p.Index, p.Text, p.Repairable))
	}, nil)
	return errors.Join(append(problems, err)...)
}

func collection(s *embedded.Store) store.Collection { return s.Database("db").Collection("things") }

func raw(tb testing.TB, doc bson.D) bson.Raw {
	tb.Helper()
	out, err := bson.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func value(tb testing.TB, v any) bson.RawValue {
	tb.Helper()
	return raw(tb, bson.D{{Key: "v", Value: v}}).Lookup("v")
}

func insert(tb testing.TB, doc bson.D) store.Op {
	tb.Helper()
	return store.Op{Kind: store.Insert, Doc: raw(tb, doc)}
}

// must applies ops that have to succeed.
func must(tb testing.TB, c store.Collection, ops ...store.Op) {
	tb.Helper()
	results, err := c.Write(tb.Context(), ops, false)
	if err != nil {
		tb.Fatalf("Write: %v", err)
	}
	for i, r := range results {
		if r.Err != nil {
			tb.Fatalf("op %d: %v", i, r.Err)
		}
	}
}

func createIndex(tb testing.TB, c store.Collection, index store.Index) {
	tb.Helper()
	if err := c.CreateIndex(tb.Context(), index); err != nil {
		tb.Fatalf("CreateIndex(%s): %v", index.Name, err)
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

func find(tb testing.TB, c store.Collection, q store.Query) []bson.Raw {
	tb.Helper()
	var docs []bson.Raw
	err := c.Find(tb.Context(), q, func(doc bson.Raw) error {
		docs = append(docs, append(bson.Raw(nil), doc...))
		return nil
	})
	if err != nil {
		tb.Fatalf("Find: %v", err)
	}
	return docs
}
