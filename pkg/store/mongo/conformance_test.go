package mongo_test

import (
	"testing"

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
