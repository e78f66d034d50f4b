package outside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/wire"
)

// unifiedParts are the folders of the specifications that are run. The others are of drivers alone, or of features that no
// store here has.
func unifiedParts() []string {
	return []string{
		"change-streams", "collection-management", "causal-consistency", "crud", "index-management", "retryable-reads", "retryable-writes", "run-command",
		"sessions", "transactions", "transactions-convenient-api", "unified-test-format", "versioned-api",
	}
}

// runUnified runs the unified tests by the runner of the Go driver: its tests, in a copy of its module, on these specifications.
func runUnified(t *testing.T, dir string) (results []result) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.mongodb.org/mongo-driver/v2").Output()
	if err != nil {
		t.Fatalf("where the driver is: %v", err)
	}
	driver := filepath.Join(t.TempDir(), "driver")
	if err := os.CopyFS(driver, writable{os.DirFS(strings.TrimSpace(string(out)))}); err != nil {
		t.Fatal(err)
	}
	specs := filepath.Join(driver, "testdata", "specifications")
	if err := os.MkdirAll(specs, 0o755); err != nil { // a copy for this test
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(specs, "source")); err != nil {
		t.Fatal(err)
	}
	binary := buildTests(t, driver, "./internal/integration/unified")
	folder := filepath.Join(driver, "internal", "integration", "unified")
	control := make(chan []result, 1)
	go func() { control <- runUnifiedOnMongoDB(t, folder, binary) }()
	results = runUnifiedOn(t, folder, binary, "MONGODB_URI="+serve(t, wire.Testing{FailPoints: true}), "AUTH=auth")
	leaveOut(results, <-control)
	return results
}

const mongodFails = "fails with a MongoDB 6.0.5 as well"

// runUnifiedOnMongoDB is the control: the same tests, run in the same way, where the server is a MongoDB. It gives nothing where there is
// none.
func runUnifiedOnMongoDB(t *testing.T, dir, binary string) []result {
	t.Helper()
	server, err := mongotest.Start(t.Context(), mongotest.FailPoints())
	if err != nil {
		t.Logf("unified: no control, since there is no MongoDB: %v", err)
		return nil
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Errorf("the MongoDB of the control: %v", err)
		}
	}()
	return runUnifiedOn(t, dir, binary, "MONGODB_URI="+server.URI, "AUTH=noauth")
}

// runUnifiedOn runs the tests on a server.
func runUnifiedOn(t *testing.T, dir, binary string, env ...string) (results []result) {
	t.Helper()
	for _, part := range unifiedParts() {
		pattern := "^" + part + "$"
		if *tests != "" {
			pattern = *tests
		}
		if !strings.HasPrefix(strings.TrimLeft(pattern, "^"), part) {
			continue
		}
		for _, r := range runTests(t, dir, binary, 10*time.Minute, env, "-test.run", "^TestUnifiedSpec$/"+pattern) {
			r.Suite, r.Name = "unified: "+part, strings.TrimPrefix(r.Name, "TestUnifiedSpec/")
			results = append(results, r)
		}
	}
	return results
}
