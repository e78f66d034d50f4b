package embedded_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Helper()
		return open(t, embedded.Options{InMemory: true})
	})
}

func TestHistory(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true, FeedBytes: 1})
	storetest.RunHistory(t, s, func() { embedded.Sweep(t.Context(), s) })
}
