package project

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command"
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
		path = filepath.Join("..", "..", "projects", name, "tsconfig.json")
		if got, err = os.ReadFile(path); err != nil || string(got) != editorConfig {
			t.Errorf("%s is not what svcctl project types writes (%v)", path, err)
		}
	}
	if !strings.Contains(hooks.Types(), "interface PostBind") {
		t.Error("no stage is in the types")
	}
}

// A tsconfig.json that is there stays as it is.
func TestTypesLeaveTheEditorsConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := &command.State{}
	st.Out, st.Err = io.Discard, io.Discard
	for _, own := range []string{"", "{}"} {
		want := editorConfig
		if own != "" {
			want = own
			if err := os.WriteFile(filepath.Join(dir, editorFile), []byte(own), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := runTypes(st, []string{dir}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, editorFile)); err != nil || string(got) != want {
			t.Errorf("got %s %v", got, err)
		}
	}
}
