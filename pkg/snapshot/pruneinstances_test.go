package snapshot_test

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// instance is another process that has the store and the folder of snapshots, too.
func (w *world) instance(name string) *snapshot.Snapshots {
	return snapshot.New(snapshot.Options{Store: w.store, Media: w.library, Version: "1", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Holder: name})
}

// TestPruneOfInstances: of several instances that share a folder and prune at once one does it, and what others pin and check meanwhile stays.
func TestPruneOfInstances(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fillWith(1, 1)
		all := []*snapshot.Snapshots{w.instance("one"), w.instance("two"), w.instance("three")}
		rounds, removals, refusals := 6, 0, 0
		for range rounds {
			ids := w.daily("daily", 6)
			var mu sync.Mutex
			var removed []string
			kept := map[string]bool{}
			var together sync.WaitGroup
			for _, one := range all[:2] {
				together.Go(func() {
					out, err := one.Prune(t.Context(), w.p, "daily", keepLast(2), snapshot.PruneOptions{})
					mu.Lock()
					defer mu.Unlock()
					if errors.Is(err, snapshot.ErrBusy) {
						refusals++
					} else if err != nil {
						t.Error(err)
					}
					removed = append(removed, out.Removed...)
				})
			}
			together.Go(func() { // the third one pins and checks what the others remove
				for range 2 {
					id := ids[randtest.Of(t).IntN(3)]
					err := all[2].Pin(t.Context(), w.p, id, true)
					if errors.Is(err, snapshot.ErrNotFound) {
						continue
					}
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					kept[id] = true
					mu.Unlock()
				}
				if v, err := all[2].Verify(t.Context(), w.p, ids[3], snapshot.VerifyOptions{}); err == nil && v.Whole() {
					mu.Lock()
					kept[ids[3]] = true
					mu.Unlock()
				}
			})
			together.Wait()
			left := w.ids("daily") // each of them whole
			for id := range kept {
				if id != ids[3] && !slices.Contains(left, id) {
					t.Errorf("%s was pinned, and is gone", id)
				}
			}
			for i, id := range removed {
				if slices.Contains(removed[i+1:], id) || slices.Contains(left, id) {
					t.Errorf("%s was removed twice, or is there", id)
				}
			}
			if !slices.Contains(left, ids[5]) || !slices.Contains(left, ids[4]) {
				t.Errorf("of the newest two there are %v", left)
			}
			removals += len(removed)
			if t.Failed() {
				return
			}
			for _, id := range left {
				if err := errors.Join(all[2].Pin(t.Context(), w.p, id, false), all[2].Delete(t.Context(), w.p, id)); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("%d were removed, %d times one was refused", removals, refusals)
		if removals < rounds {
			t.Error("that is few")
		}
	})
}

// TestPruneChecked: what another instance has found whole, or damaged, since it was decided what goes stays, and is decided about anew.
func TestPruneChecked(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fillWith(1, 1)
		one, two := w.instance("one"), w.instance("two")
		var ids []string
		for range 4 {
			w.clock.Pass(24 * time.Hour)
			info, err := one.Create(t.Context(), w.p, w.profile("daily"), nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, info.ID)
		}
		out, err := one.Prune(t.Context(), w.p, "daily", keepLast(1), snapshot.PruneOptions{Report: func(p snapshot.Progress) {
			if p.Done == 1 {
				if v, err := two.Verify(t.Context(), w.p, ids[1], snapshot.VerifyOptions{}); err != nil || !v.Whole() {
					t.Error(v, err)
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "removed", []string{ids[0], ids[2]}, out.Removed)
		if len(out.Skipped) != 1 || out.Skipped[0].Path != ids[1] {
			t.Errorf("skipped: %+v", out.Skipped)
		}
		again, err := two.Prune(t.Context(), w.p, "daily", keepLast(1), snapshot.PruneOptions{})
		if err != nil || len(again.Removed) > 0 { // it is the newest that was found whole
			t.Errorf("%+v, %v", again, err)
		}
		if e := errs.From(one.Delete(t.Context(), w.p, ids[1])); e != nil { // people may
			t.Error(e)
		}
	})
}
