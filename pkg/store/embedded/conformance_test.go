package embedded_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, embedded.Options{InMemory: true}) })
}

// open opens a store and at the end of t checks that its indexes are what its documents say.
func open(t testing.TB, opts embedded.Options) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { validateAndClose(t, s) })
	return s
}
