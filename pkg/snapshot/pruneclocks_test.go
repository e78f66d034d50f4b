package snapshot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestPruneClocks: whatever the clock is set to, back or forth, and whatever is taken, checked, pinned and pruned meanwhile: what is pinned stays, and so does the newest that was
// found whole, and what is dated in the future.
func TestPruneClocks(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	jumps := []time.Duration{-day, -day, 365 * day, -365 * day, -time.Hour, day, day, 7 * day, time.Minute}
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	removed, back := 0, 0
	for n := range 80 {
		jump := jumps[randtest.Of(t).IntN(len(jumps))]
		if jump < 0 {
			back++
		}
		w.clock.Pass(jump)
		info := w.create("daily")
		if randtest.Of(t).IntN(4) == 0 {
			if err := w.snaps.Pin(t.Context(), w.p, info.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		all := w.list(t)
		some := all[randtest.Of(t).IntN(len(all))]
		switch randtest.Of(t).IntN(4) {
		case 0:
			w.verify(some)
		case 1:
			if err := w.snaps.Pin(t.Context(), w.p, some.ID, false); err != nil {
				t.Fatal(err)
			}
		}
		before, now := w.list(t), w.clock.Now()
		out := w.prune("daily", keepLast(1+n%2), snapshot.PruneOptions{})
		removed += len(out.Removed)
		left := w.list(t)
		verified := false // a newer one was
		slices.SortStableFunc(before, func(a, b snapshot.Info) int { return b.ConsistentAt.Compare(a.ConsistentAt) })
		for _, info := range before {
			is := slices.ContainsFunc(left, func(other snapshot.Info) bool { return other.ID == info.ID })
			future, whole := info.ConsistentAt.After(now), info.State.Whole()
			if !is && (info.State.Pinned || future || whole && !verified) {
				t.Fatalf("at %s %+v was removed", now, info)
			}
			verified = verified || whole && !future
		}
		if !slices.ContainsFunc(left, func(other snapshot.Info) bool { return other.ID == info.ID }) {
			t.Fatalf("at %s the one was removed that was just taken", now)
		}
	}
	if removed < 5 || back < 5 {
		t.Errorf("%d were removed, the clock was set back %d times", removed, back)
	}
}

func (w *world) list(t *testing.T) []snapshot.Info {
	t.Helper()
	all, err := w.snaps.List(t.Context(), w.p)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPruneLatelyClocks: what came in, or was checked, while the clock was a year ahead counts as of lately when it is right again.
func TestPruneLatelyClocks(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(1, 1)
	archived := from.export(from.create("daily"))
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	w.clock.Pass(365 * 24 * time.Hour)
	info, err := w.imports(archived, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Pass(-365 * 24 * time.Hour)
	w.daily("daily", 3)
	w.prune("daily", keepLast(1), snapshot.PruneOptions{})
	if !slices.Contains(w.ids("daily"), info.ID) {
		t.Error("what came in lately is gone")
	}
}
