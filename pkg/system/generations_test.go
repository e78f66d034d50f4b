package system_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

func TestGenerationsAreNumberedUntilTheyAreRemoved(t *testing.T) {
	st := teststore.Memory(t)
	generations := system.New(st, system.Options{Now: time.Now}).Generations
	for _, step := range []struct {
		project, revision string
		want              int64
	}{{"a", "x", 1}, {"a", "x", 1}, {"a", "y", 2}, {"b", "x", 1}, {"a", "x", 3}, {"a", "", 0}, {"a", "", 0}, {"a", "x", 1}, {"b", "y", 2}} {
		if step.revision == "" {
			if err := generations.Remove(t.Context(), step.project); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := generations.Number(t.Context(), step.project, step.revision, "project.yaml", map[string][]byte{"project.yaml": []byte(step.revision)}); got != step.want || err != nil {
			t.Errorf("%+v: %d, %v", step, got, err)
		}
	}
}

func TestLatestGenerationIsKeptWhole(t *testing.T) {
	t.Parallel()
	st := teststore.Memory(t)
	g := system.New(st, system.Options{Now: time.Now}).Generations
	if _, err := g.Latest(t.Context(), "p"); !errors.Is(err, errs.ErrNotFound) {
		t.Fatalf("before any: %v", err)
	}
	files := map[string][]byte{"project.yaml": []byte("namespace: a"), "b/c.yaml": []byte("x")}
	if _, err := g.Number(t.Context(), "p", "r1", "project.yaml", files); err != nil {
		t.Fatal(err)
	}
	latest, err := g.Latest(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	want := []system.GenerationFile{{Name: "b/c.yaml", Data: []byte("x")}, {Name: "project.yaml", Data: []byte("namespace: a")}}
	if diff := cmp.Diff(want, latest.Files); diff != "" || latest.Entry != "project.yaml" || latest.Number != 1 {
		t.Errorf("%+v (-want +got):\n%s", latest, diff)
	}
	if _, err := g.Number(t.Context(), "p", "r2", "project.yaml", map[string][]byte{"project.yaml": make([]byte, 9<<20)}); err != nil {
		t.Fatalf("too large to keep: %v", err)
	}
	if latest, err = g.Latest(t.Context(), "p"); err != nil || latest.Number != 2 || latest.Files != nil {
		t.Errorf("%d with %d files, %v", latest.Number, len(latest.Files), err)
	}
}
