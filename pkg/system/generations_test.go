package system_test

import (
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/system"
)

func TestGenerationsAreNumberedUntilTheyAreRemoved(t *testing.T) {
	st, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
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
		if got, err := generations.Number(t.Context(), step.project, step.revision); got != step.want || err != nil {
			t.Errorf("%+v: %d, %v", step, got, err)
		}
	}
}
