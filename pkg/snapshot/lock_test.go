package snapshot_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestStatesOfInstances: what two instances that share a folder note of a snapshot, both stays; and what one has pinned, the other one does not remove.
func TestStatesOfInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	instance := func(name string) *snapshot.Snapshots {
		return snapshot.New(snapshot.Options{Store: w.store, Media: w.library, Version: "1", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Holder: name})
	}
	one, two := instance("one"), instance("two")
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
