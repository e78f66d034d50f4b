package mongotest

import (
	"context"
	"os"
	"sync"
	"testing"
)

// shared is the server of this test process, started by the first test that asks.
//
//nolint:gochecknoglobals // it belongs to the process: it ends with it
var shared struct {
	sync.Once
	server *Server
	err    error
}

// URI gives the connection string of a MongoDB replica set for tests: that of MONGODB_URI, or else of a server of
// this test process (see Start). Without one the test is skipped with a line that says so; with CI=true it fails.
// Databases on it are shared: a test uses a name of its own and drops it.
func URI(tb testing.TB) string {
	tb.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" { // the setting of whoever runs the tests
		return uri
	}
	shared.Do(func() { shared.server, shared.err = Start(context.WithoutCancel(tb.Context())) })
	if shared.err == nil {
		return shared.server.URI
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("NO MONGODB TO TEST WITH, and CI=true: %v", shared.err)
	}
	tb.Skipf("NOT TESTED ON MONGODB: %v", shared.err)
	return ""
}
