package storetest_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/storetest"
)

// TestDifferential holds the embedded store against a real MongoDB.
func TestDifferential(t *testing.T) {
	server, err := mongo.Open(t.Context(), mongo.Options{URI: mongotest.URI(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	local, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	})
	storetest.Differential(t, local, server)
}
