package snapshot_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestRestoreEndedElsewhere: whether a restore that another process has ended meanwhile is done, is what that one has noted: where the answer to the write that decides it
// is lost, as little as where it was never written.
func TestRestoreEndedElsewhere(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		for _, decided := range []bool{true, false} {
			w := newTroubled(newWorld(t, s))
			w.fillWith(6, 30)
			info := w.create("daily")
			restored := w.state()
			w.change()
			want := w.state()
			if decided {
				want = restored
			}
			var told []snapshot.Ended
			other := snapshot.New(snapshot.Options{
				Store: w.store, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
				Ended: func(_ context.Context, e snapshot.Ended) error { told = append(told, e); return nil },
			})
			writes := 0
			w.f.ask = func(op, name string) (before, after error) {
				if name != "svc.restores" {
					return nil, nil
				}
				switch op {
				case "write":
					if writes++; writes != 2 { // which decides it
						return nil, nil
					}
					if decided {
						return nil, errLost
					}
					return errLost, nil
				case "get":
					if writes == 2 && len(told) == 0 {
						if err := other.Recover(t.Context(), w.p); err != nil {
							t.Error(err)
						}
					}
				}
				return nil, nil
			}
			o := replaceAll
			o.Run = snapshot.Run{Namespace: w.p.Namespace, ID: "run", Outcome: outcome}
			done, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil)
			if decided != (err == nil) || decided == (done.Safety == "") && decided {
				t.Errorf("decided %v: %v, %+v", decided, err, done)
			}
			if len(told) != 1 || told[0].Forward != decided || told[0].Run.ID != "run" {
				t.Errorf("decided %v: the other one tells %+v", decided, told)
			}
			if diff := cmp.Diff(want, w.state()); diff != "" {
				t.Errorf("decided %v: %s", decided, diff)
			}
			if err := w.reaches(); err != nil {
				t.Errorf("decided %v: %v", decided, err)
			}
			w.leaves(t)
		}
	})
}

// TestEndedWithoutRun ends what a version has left that noted no run: it is told, and of none.
func TestEndedWithoutRun(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"loading", "undoing", "decided"} {
		w := newTroubled(newWorld(t, teststore.Memory(t)))
		w.fillWith(1, 1)
		journal := w.db.Collection("svc.restores")
		doc := encode(t, bson.D{{Key: "_id", Value: "restore"}, {Key: "restore", Value: "abcdef"}, {Key: "step", Value: step}, {Key: "swaps", Value: bson.A{}}, {Key: "media", Value: false}})
		if err := store.WriteAll(t.Context(), journal, store.Op{Kind: store.Insert, Doc: doc}); err != nil {
			t.Fatal(err)
		}
		if left, err := w.snaps.HasLeft(t.Context(), project.DatabaseName(w.p.Namespace), "any"); !left || err != nil {
			t.Errorf("%s: it may be that of any run: %v, %v", step, left, err)
		}
		if err := w.snaps.Recover(t.Context(), w.p); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		for _, told := range [][]snapshot.Ended{w.told, w.left} {
			if len(told) != 1 || told[0].Forward != (step == "decided") || told[0].Run.ID != "" || told[0].Project != w.p {
				t.Errorf("%s: told is %+v", step, told)
			}
		}
		w.leaves(t)
	}
}

// TestLeftIsToldOnce: however often it takes until the run of a restore that was left has its end, and nothing is noted of that restore any more, it is told once, behind that.
func TestLeftIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newTroubled(newWorld(t, teststore.Memory(t)))
	w.fillWith(1, 1)
	doc := encode(t, bson.D{{Key: "_id", Value: "restore"}, {Key: "restore", Value: "abcdef"}, {Key: "step", Value: "decided"}, {Key: "swaps", Value: bson.A{}}, {Key: "media", Value: false}})
	if err := store.WriteAll(t.Context(), w.db.Collection("svc.restores"), store.Op{Kind: store.Insert, Doc: doc}); err != nil {
		t.Fatal(err)
	}
	told, left, broken := 0, 0, "the run"
	snaps := snapshot.New(snapshot.Options{
		Store: w.f, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
		Ended: func(context.Context, snapshot.Ended) error {
			if told++; broken == "the run" {
				return errLost
			}
			return nil
		},
		Left: func(context.Context, snapshot.Ended) { left++ },
	})
	w.f.ask = func(op, name string) (before, after error) {
		if op == "write" && name == "svc.restores" && broken == "the note" {
			return errLost, nil
		}
		return nil, nil
	}
	for i, part := range []string{"the run", "the run", "the note", "the note", "", ""} {
		broken = part
		if err := snaps.Recover(t.Context(), w.p); (err != nil) != (part != "") {
			t.Errorf("%d: %v", i, err)
		}
		if want := max(0, min(i-3, 1)); left != want {
			t.Errorf("%d: what was left is told %d times, want %d", i, left, want)
		}
	}
	if told != 5 {
		t.Errorf("the run is told %d times", told)
	}
}

// TestHasLeft knows the restore of a run by what is noted while it goes on.
func TestHasLeft(t *testing.T) {
	t.Parallel()
	w := newTroubled(newWorld(t, teststore.Memory(t)))
	w.fillWith(1, 1)
	info := w.create("daily")
	has := func(run string) bool {
		left, err := w.snaps.HasLeft(t.Context(), project.DatabaseName(w.p.Namespace), run)
		if err != nil {
			t.Error(err)
		}
		return left
	}
	during := map[string]bool{}
	o := replaceAll
	o.Run = snapshot.Run{Namespace: w.p.Namespace, ID: "run", Outcome: outcome}
	_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, func(p snapshot.Progress) {
		if p.Phase == snapshot.Safety {
			during["run"], during["another"] = has("run"), has("another")
		}
	})
	if diff := cmp.Diff(map[string]bool{"run": true, "another": false}, during); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if has("run") {
		t.Error("behind it, something is left")
	}
}
