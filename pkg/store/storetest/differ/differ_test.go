package differ_test

import (
	"context"
	"flag"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/storetest/differ"
)

var (
	ops      = flag.Int("cases", 2000, "how many ops TestDiffer compares")
	seed     = flag.Uint64("seed", 1, "the seed of TestDiffer")
	workers  = flag.Int("workers", 1, "how many servers TestDiffer compares with at once")
	failures = flag.Int("failures", 1, "how many differences end TestDiffer")
)

// TestDiffer compares the embedded store with a server.
func TestDiffer(t *testing.T) { run(t, differ.Config{Store: openEmbedded(t)}) }

// TestDifferLanguage compares package mql alone.
func TestDifferLanguage(t *testing.T) { run(t, differ.Config{}) }

func openEmbedded(t *testing.T) store.Store {
	t.Helper()
	local, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	})
	return local
}

// starter starts servers of its own, as one that goes down takes others' tests along. It skips the test where there is
// none to start.
func starter(t *testing.T) func(context.Context) (string, error) {
	t.Helper()
	first, err := startServer(t, t.Context())
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("NO MONGODB TO TEST WITH, and CI=true: %v", err)
		}
		t.Skipf("NOT TESTED ON MONGODB: %v", err)
	}
	var used atomic.Bool
	return func(ctx context.Context) (string, error) {
		if !used.Swap(true) {
			return first, nil
		}
		return startServer(t, ctx)
	}
}

func startServer(t *testing.T, ctx context.Context) (string, error) {
	t.Helper()
	server, err := mongotest.Start(ctx)
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = server.Stop() }) // it may have gone down
	return server.URI, nil
}

func run(t *testing.T, config differ.Config) {
	t.Helper()
	config.Start = starter(t)
	config.Seed, config.Ops, config.Workers, config.Failures, config.Log = *seed, *ops, *workers, *failures, t.Logf
	began := time.Now()
	report, err := differ.Run(t.Context(), config)
	if report != nil {
		t.Logf("seed %d: %s", *seed, report)
		t.Logf("%.0f a second", float64(report.Ops)/time.Since(began).Seconds())
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Found) > 0 {
		t.Error("it differs from the server")
	}
	if least := 1000; report.Disagrees*1000 > max(report.Ops, least) {
		t.Error("more than one in a thousand ops could not be compared: the server disagrees with itself too often")
	}
}
