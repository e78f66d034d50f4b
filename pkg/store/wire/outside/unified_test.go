package outside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	uri := serve(t, wire.Testing{FailPoints: true})
	for _, part := range unifiedParts() {
		found := runTests(t, filepath.Join(driver, "internal", "integration", "unified"), binary, 10*time.Minute,
			[]string{"MONGODB_URI=" + uri, "AUTH=auth"}, "-test.run", "^TestUnifiedSpec$/^"+part+"$")
		for _, r := range found {
			r.Suite, r.Name = "unified: "+part, strings.TrimPrefix(r.Name, "TestUnifiedSpec/")
			results = append(results, r)
		}
	}
	return results
}
