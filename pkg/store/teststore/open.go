package teststore

import (
	"testing"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// Each runs a test on every store: the embedded one in memory, and a real MongoDB where there is one.
func Each(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, Memory(t)) })
	t.Run("mongodb", func(t *testing.T) {
		s, err := mongo.Open(t.Context(), mongo.Options{URI: mongotest.URI(t)})
		test(t, opened(t, s, err))
	})
}

// EachParallel is Each of a test that runs beside others.
func EachParallel(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Parallel()
	Each(t, test)
}

// Memory is a store for tests that no store makes a difference to.
func Memory(tb testing.TB) store.Store {
	tb.Helper()
	s, err := embedded.Open(tb.Context(), embedded.Options{InMemory: true})
	return opened(tb, s, err)
}

func opened(tb testing.TB, s store.Store, err error) store.Store {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
