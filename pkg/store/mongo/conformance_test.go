package mongo_test

import (
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	uri := mongotest.URI(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Helper()
		return open(t, uri)
	})
}

// TestHistory needs a server of its own, with the smallest oplog there can be.
func TestHistory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes hundreds of MB")
	}
	server, err := mongotest.Start(t.Context(), mongotest.OplogMB(1), mongotest.CheckpointEvery(time.Second))
	if err != nil {
		t.Skipf("NOT TESTED with a small oplog: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	storetest.RunHistory(t, open(t, server.URI), nil)
}

func open(t *testing.T, uri string) *mongo.Store {
	t.Helper()
	s, err := mongo.Open(t.Context(), mongo.Options{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}
