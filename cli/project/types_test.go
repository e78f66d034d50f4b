package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/hooks"
)

// The sample projects carry the types as they are.
func TestTypesOfTheSamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"blog", "shop"} {
		path := filepath.Join("..", "..", "projects", name, "svc.d.ts")
		got, err := os.ReadFile(path)
		if err != nil || string(got) != hooks.Types() {
			t.Errorf("%s is not what svcctl project types writes; make samples does (%v):\n%s", path, err, cmp.Diff(string(got), hooks.Types()))
		}
	}
	if !strings.Contains(hooks.Types(), "interface PostBind") {
		t.Error("no stage is in the types")
	}
}
