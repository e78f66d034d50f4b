package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// R4: whichever operation of the store or on the disk fails while a snapshot is rehearsed, once or from then on, for want of space or otherwise, the records, their files and
// the snapshot are as they were, and nobody is kept from them; the next drill finds the snapshot whole, and removes what was left of the one before.
func TestR4DrillFails(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprintf("stays %v", stays), func(t *testing.T) {
			for _, other := range []bool{false, true} { // each operation fails in each way
				t.Run(fmt.Sprintf("other %v", other), func(t *testing.T) {
					t.Parallel()
					w := newTroubled(newWorld(t, teststore.Memory(t)))
					w.other = other
					w.eachDrill(t, stays, 1, 1)
				})
			}
			teststore.EachParallel(t, func(t *testing.T, s store.Store) {
				pace := 13
				if os.Getenv("SOAK") != "" {
					pace = 1
				}
				w := newTroubled(newWorld(t, s))
				w.other = rand.IntN(2) == 1
				w.eachDrill(t, stays, 1+rand.IntN(pace), pace)
			})
		})
	}
}

// eachDrill rehearses a snapshot again and again, with another failure each time.
func (w *troubled) eachDrill(t *testing.T, stays bool, first, pace int) {
	t.Helper()
	w.fillWith(6, 30)
	info := w.create("daily")
	w.change()
	before, exports := w.state(), w.exports(info)
	whole, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil)
	if err != nil || whole.Problems != 0 || whole.Records == 0 || whole.Files == 0 {
		t.Fatalf("%+v, %v", whole, err)
	}
	failed, damaged := 0, 0
	for at := first; ; at += pace {
		w.begin(at, stays)
		w.clock.Pass(time.Second)
		result, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil)
		reached := w.fails.n >= at
		switch {
		case err != nil:
			failed++
		case result.Problems > 0: // what can't be read counts as damaged, and is named
			if damaged++; len(result.Found) == 0 {
				t.Errorf("operation %d: %+v", at, result)
			}
		case result.Records != whole.Records || result.Bytes != whole.Bytes || result.Files != whole.Files:
			t.Errorf("operation %d: %+v, want %+v", at, result, whole)
		}
		if err := w.reachesLive(); err != nil {
			t.Errorf("operation %d: the records can't be reached: %v", at, err)
		}
		if stays { // the process was ended by that; another one comes
			w.begin(0, false)
		} else {
			w.fails.heal()
		}
		next, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil)
		if err != nil || next.Problems != 0 || next.Records != whole.Records {
			t.Errorf("the drill behind operation %d: %+v, %v", at, next, err)
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Errorf("operation %d changes what is live: %s", at, diff)
		}
		if diff := cmp.Diff(exports, w.exports(info)); diff != "" {
			t.Errorf("operation %d changes the snapshot: %s", at, diff)
		}
		if now, err := w.snaps.Look(t.Context(), w.p, info.ID); err != nil || now.Damaged() || now.State.Damaged {
			t.Errorf("operation %d leaves a snapshot that counts as damaged: %+v, %v", at, now.State, err)
		}
		w.noScratch(t)
		w.leaves(t)
		if t.Failed() {
			t.Fatalf("operation %d", at)
		}
		if !reached {
			t.Logf("%d drills failed, %d found damage", failed, damaged)
			if (failed+damaged)*pace < 30 || pace == 1 && (failed == 0 || damaged == 0 && !stays) {
				t.Error("that is few")
			}
			return
		}
	}
}

// reachesLive says that requests reach the records, also while what the process does fails.
func (w *troubled) reachesLive() error {
	_, err := w.records("items").Count(w.Context(), nil, 1)
	return err
}

// noScratch wants nothing to be left of the databases of drills.
func (w *troubled) noScratch(t *testing.T) {
	t.Helper()
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	for database := range w.f.shadows {
		if !snapshot.IsScratch(database) {
			continue
		}
		names, err := w.store.Database(database).CollectionNames(t.Context())
		if err != nil || len(names) > 0 {
			t.Errorf("%s is left, with %v, %v", database, names, err)
		}
		delete(w.f.shadows, database) // there are many
	}
}
