package outside_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/wire"
)

const password = "the-admin-token-of-tests"

// open gives a store in memory that ends with t.
func open(t *testing.T) *embedded.Store {
	t.Helper()
	st, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return st
}

// serve starts an endpoint for a suite on a store of its own, and gives its URI. Both end with t.
func serve(t *testing.T, testing wire.Testing) (uri string) {
	t.Helper()
	testing.Names = storeName
	return endpoint(t, open(t), false, testing)
}

// endpoint starts an endpoint that ends with t.
func endpoint(t *testing.T, st *embedded.Store, readOnly bool, testing wire.Testing) (uri string) {
	t.Helper()
	s, err := wire.Listen(t.Context(), wire.Options{
		Store: st,
		Databases: func(context.Context) ([]string, error) {
			names, _ := st.Contents()
			return names, nil
		},
		Hidden: func(name string) bool { return name == "svc" }, Feeds: st, Address: "127.0.0.1:0", Password: password,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Connections: 4096, // suites have clients by the hundred, each with its monitors
		ReadOnly:    readOnly,
		Testing:     testing,
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "mongodb://admin:" + password + "@" + s.Addr().String() + "/?replicaSet=svc&authSource=admin"
}

// storeName makes a name that a store takes of one that a suite has.
func storeName(client string) string {
	if store.CheckDatabaseName(client) == nil {
		return client
	}
	sum := sha256.Sum256([]byte(client))
	return "x" + hex.EncodeToString(sum[:20])
}
