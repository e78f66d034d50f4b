package snapshot_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/lease"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestStatesOfInstances: what two instances that share a folder note of a snapshot, both stays; and what one has pinned, the other one does not remove.
func TestStatesOfInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	one, two := w.instance("one"), w.instance("two")
	const rounds = 40
	for range rounds {
		info, err := one.Create(t.Context(), w.p, w.profile("daily"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := one.Pin(t.Context(), w.p, info.ID, true); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if _, err := two.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{}); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if now, err := two.Show(t.Context(), w.p, info.ID); err != nil || !now.State.Pinned || now.State.Verified == nil {
			t.Fatalf("%+v, %v", now.State, err)
		}
		if err := two.Delete(t.Context(), w.p, info.ID); !errors.Is(err, snapshot.ErrPinned) {
			t.Fatal(err)
		}
		if err := one.Pin(t.Context(), w.p, info.ID, false); err != nil {
			t.Fatal(err)
		}
		var pinned, deleted error
		both.Go(func() { pinned = one.Pin(t.Context(), w.p, info.ID, true) })
		both.Go(func() { deleted = two.Delete(t.Context(), w.p, info.ID) })
		both.Wait()
		if pinned == nil && deleted == nil {
			t.Fatal("it was removed after it had been pinned")
		}
		if deleted != nil {
			if err := errors.Join(one.Pin(t.Context(), w.p, info.ID, false), two.Delete(t.Context(), w.p, info.ID)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWatchOthers: who has watched an instance that makes itself alone need not wait for its time once more when it is known to be gone.
func TestWatchOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, teststore.Memory(t))
		watches, comes := w.instance("watches"), w.instance("comes")
		if _, err := lease.New(w.db, "gone", nil).Acquire(t.Context(), "snapshots", 15*time.Second); err != nil {
			t.Fatal(err)
		}
		take := func(s *snapshot.Snapshots) error {
			_, err := s.Create(t.Context(), w.p, w.profile("daily"), nil)
			return err
		}
		for range 16 {
			if err := watches.WatchOthers(t.Context(), w.p.Namespace); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := take(comes); !errors.Is(err, snapshot.ErrBusy) {
			t.Errorf("without: %v", err)
		}
		if err := take(watches); err != nil {
			t.Errorf("watched: %v", err)
		}
	})
}
