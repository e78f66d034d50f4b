package operation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var (
	errBack = errs.New(errs.Conflict, "taken_back", "all is as before")
	came    = operation.Outcome{Result: "restored", Subject: "snap"}
)

// ended is what a run, read by an instance, has come to: its status, error, result and subject, and those of its events that end it.
func ended(t *testing.T, i *instance, ref operation.Ref) []string {
	t.Helper()
	run := i.get(ref)
	out := []string{string(run.Status), "", run.Result.String(), run.Subject}
	if run.Error != nil {
		out[1] = run.Error.Code
	}
	for _, e := range run.Events {
		if e.Kind == operation.EventDone || e.Kind == operation.EventError {
			status, _ := e.Data.Lookup("status").StringValueOK()
			out = append(out, string(e.Kind)+" "+status)
		}
	}
	if len(run.Events) > 0 && run.Events[len(run.Events)-1].ID != run.LastEvent {
		t.Errorf("the last event is %d, and noted is %d", run.Events[len(run.Events)-1].ID, run.LastEvent)
	}
	return out
}

func wantEnd(t *testing.T, what string, i *instance, ref operation.Ref, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, ended(t, i, ref)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (i *instance) settle(ref operation.Ref, out operation.Outcome, failed error) {
	i.w.Helper()
	if err := i.Settle(i.w.Context(), i.w.database, ref.ID, out, failed); err != nil {
		i.w.Errorf("settle %s: %v", ref.ID, err)
	}
}

// TestSettle gives runs of an instance that is gone the end that their work has come to, once: before they were given up, and behind it.
func TestSettle(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		const beat = 100 * time.Millisecond
		dead, other := w.instance(operation.Options{Beat: beat}), w.instance(operation.Options{Beat: beat})
		forward, back, lost := dead.start(spec(w), untilEnd), dead.start(spec(w), untilEnd), dead.start(spec(w), untilEnd)
		dead.link.Kill()
		followed := make(chan operation.EventKind, 1)
		go func() {
			var last operation.EventKind
			_ = other.Follow(t.Context(), w.database, forward, 0, func(e operation.Event) error { last = e.Kind; return nil }) // it has told of its end, or fails
			followed <- last
		}()
		other.settle(forward, came, nil)
		if last := <-followed; last != operation.EventDone {
			t.Errorf("who follows it is told %q at last", last)
		}
		other.settle(back, operation.Outcome{}, errBack)
		for range 2 { // and again: the second time changes nothing
			wantEnd(t, "forward", other, forward, "succeeded", "", `"restored"`, "snap", "done succeeded")
			wantEnd(t, "back", other, back, "failed", "taken_back", "", "", "error failed")
			other.settle(forward, operation.Outcome{}, errBack)
			other.settle(back, came, nil)
		}
		w.until("the third one is given up", func() bool { other.patrol(); return other.get(lost).Status == operation.Lost })
		wantEnd(t, "given up", other, lost, "lost", "run_lost", "", "", "error lost")
		before := other.get(lost).LastEvent
		other.settle(lost, came, nil)
		wantEnd(t, "given up, and settled", other, lost, "succeeded", "", `"restored"`, "snap", "done succeeded")
		if now := other.get(lost).LastEvent; now <= before {
			t.Errorf("the id of its last event is %d, behind %d: who has followed it so far learns nothing", now, before)
		}
		other.settle(operation.Ref{ID: "gone"}, came, nil)
		if got := count(t, other.registry, "svc_runs_total", "action", "succeeded"); got != 2 {
			t.Errorf("%v counted", got)
		}
	})
}

// TestSettleOfOwn notes an outcome that is certain before the run has ended: it counts if the instance dies then, and not if the run fails.
func TestSettleOfOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		first := w.instance(operation.Options{})
		noted := make(chan struct{}, 2)
		note := func(last error) operation.Func {
			return func(ctx context.Context, r *operation.Live) (operation.Outcome, error) {
				first.settle(operation.Ref{ID: r.Run().ID}, operation.Outcome{}, errBack) // what fails says so itself
				first.settle(operation.Ref{ID: r.Run().ID}, came, nil)
				noted <- struct{}{}
				if last == nil {
					<-ctx.Done()
				}
				return operation.Outcome{}, last
			}
		}
		fails, dies := first.start(spec(w), note(errBack)), first.start(spec(w), note(nil))
		<-noted
		<-noted
		first.wait(fails)
		wantEnd(t, "it fails", first, fails, "failed", "taken_back", "", "", "error failed")
		if run := first.get(dies); run.Status != operation.Running || run.Result.Type != 0 {
			t.Errorf("it goes on, and is %s", run.Status)
		}
		first.link.Kill()
		next := w.instance(operation.Options{Alone: true})
		next.patrol()
		wantEnd(t, "it dies", next, dies, "succeeded", "", `"restored"`, "snap", "done succeeded")
	})
}

// TestSettleOfPaused settles a run whose instance has only stood still: there, too, its followers learn how it has ended.
func TestSettleOfPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		paused, other := w.instance(operation.Options{}), w.instance(operation.Options{})
		ref := paused.start(spec(w), func(context.Context, *operation.Live) (operation.Outcome, error) {
			paused.link.Pause()
			time.Sleep(30 * time.Second)
			paused.link.Resume()
			return operation.Outcome{}, errors.New("somebody else has taken it over")
		})
		time.Sleep(20 * time.Second)
		other.settle(ref, came, nil)
		run, events := paused.wait(ref)
		if last := events[len(events)-1]; run.Status != operation.Succeeded || run.Error != nil || last.Kind != operation.EventDone {
			t.Errorf("%s, %v, %s", run.Status, run.Error, last.Kind)
		}
		wantEnd(t, "behind it", paused, ref, "succeeded", "", `"restored"`, "snap", "done succeeded")
	})
}

// TestSettleOfSilent has a run whose instance has stood still, and knows what its work has come to, end as that: also where others have given it up meanwhile.
func TestSettleOfSilent(t *testing.T) {
	for name, givenUp := range map[string]bool{"nobody has given it up": false, "another one has": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newMemory(t)
				paused, other := w.instance(operation.Options{}), w.instance(operation.Options{})
				var ref operation.Ref
				ref = paused.start(spec(w), func(ctx context.Context, r *operation.Live) (operation.Outcome, error) {
					paused.link.Pause()
					time.Sleep(30 * time.Second)
					paused.link.Resume()
					paused.settle(operation.Ref{ID: r.Run().ID}, operation.Outcome{}, errBack)
					<-ctx.Done()
					return operation.Outcome{}, context.Cause(ctx)
				})
				if givenUp {
					other.patrol()
					time.Sleep(20 * time.Second)
					other.patrol()
					wantEnd(t, "before", other, ref, "lost", "run_lost", "", "", "error lost")
				}
				run, events := paused.wait(ref)
				if last := events[len(events)-1]; run.Status != operation.Failed || run.Error.Code != errBack.Code || last.Kind != operation.EventError {
					t.Errorf("%s, %v, %s", run.Status, run.Error, last.Kind)
				}
				wantEnd(t, "behind it", other, ref, "failed", "taken_back", "", "", "error failed")
			})
		})
	}
}

// TestInherit does not give up a run while what it has left is being ended, but not for ever; who ends it then settles it all the same.
func TestInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		dead := w.instance(operation.Options{})
		late, soon, none := dead.start(spec(w), untilEnd), dead.start(spec(w), untilEnd), dead.start(spec(w), untilEnd)
		dead.link.Kill()
		now := w.instance(operation.Options{Alone: true})
		broken := true
		now.Inherit(operation.Action, func(_ context.Context, database string, run *operation.Run) (bool, error) {
			if database != w.database || run.Status != operation.Running {
				t.Errorf("%s: %s", database, run.Status)
			}
			switch {
			case run.ID == none.ID:
				return false, nil
			case run.ID == soon.ID && broken:
				return false, errors.New("the store can't be reached")
			case run.ID == soon.ID:
				now.settle(soon, came, nil)
				return false, nil
			}
			return true, nil
		})
		now.patrol()
		broken = false
		wantEnd(t, "nothing is left", now, none, "lost", "run_lost", "", "", "error lost")
		for _, ref := range []operation.Ref{late, soon} {
			if run := now.get(ref); run.Status != operation.Running {
				t.Errorf("it is %s while something is left", run.Status)
			}
		}
		now.patrol()
		wantEnd(t, "it is ended by its heir", now, soon, "succeeded", "", `"restored"`, "snap", "done succeeded")
		time.Sleep(time.Minute)
		now.patrol()
		if run := now.get(late); run.Status != operation.Running {
			t.Errorf("after a minute it is %s", run.Status)
		}
		time.Sleep(2 * time.Minute)
		now.patrol()
		wantEnd(t, "nobody ends it", now, late, "lost", "run_left", "", "", "error lost")
		now.settle(late, came, nil)
		wantEnd(t, "somebody ends it", now, late, "succeeded", "", `"restored"`, "snap", "done succeeded")
	})
}

// TestGivenUpAsSeen: a run that is heard of, or that somebody else gives up, while its heir looks at what it has left is not given up then, and not told of as lost.
func TestGivenUpAsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		does, other, now := w.instance(operation.Options{}), w.instance(operation.Options{Alone: true}), w.instance(operation.Options{Alone: true})
		lives, dies := does.start(spec(w), untilEnd), does.start(spec(w), untilEnd)
		told := 0
		now.OnLost(func(context.Context, string, *operation.Run) { told++ })
		during := func() { time.Sleep(5 * time.Second) } // its instance writes the record meanwhile
		now.Inherit(operation.Action, func(context.Context, string, *operation.Run) (bool, error) {
			during()
			return false, nil
		})
		now.patrol()
		for _, ref := range []operation.Ref{lives, dies} {
			if run := now.get(ref); run.Status != operation.Running {
				t.Errorf("it lives, and is %s", run.Status)
			}
		}
		does.link.Kill()
		during = other.patrol
		now.patrol()
		wantEnd(t, "given up by another one", now, dies, "lost", "run_lost", "", "", "error lost")
		if told > 0 {
			t.Errorf("what others have given up is told %d times", told)
		}
	})
}

// TestHeirsApart: an heir that gets no answer keeps nobody else from being ended, neither in the same look nor in later ones, and its own run for no longer than what it has left may.
func TestHeirsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		dead := w.instance(operation.Options{})
		stuck, more := dead.start(spec(w), untilEnd), dead.start(spec(w), untilEnd)
		dead.link.Kill()
		now := w.instance(operation.Options{Alone: true})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		asked := map[string]int{}
		var mu sync.Mutex
		now.Inherit(operation.Action, func(ctx context.Context, _ string, run *operation.Run) (bool, error) {
			mu.Lock()
			asked[run.ID]++
			mu.Unlock()
			if run.ID == stuck.ID {
				<-ctx.Done()
				return true, context.Cause(ctx)
			}
			now.settle(more, came, nil)
			return false, nil
		})
		patrol := func() (took time.Duration) {
			began := time.Now()
			if err := now.Patrol(ctx, w.database); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		if took := patrol(); took > 12*time.Second {
			t.Errorf("the first look takes %s", took)
		}
		wantEnd(t, "the other one", now, more, "succeeded", "", `"restored"`, "snap", "done succeeded")
		took := patrol()
		mu.Lock()
		n := asked[stuck.ID]
		mu.Unlock()
		if took > 0 || n != 1 {
			t.Errorf("the next one takes %s, and %d heirs look at once", took, n)
		}
		if run := now.get(stuck); run.Status != operation.Running {
			t.Errorf("it is %s while something is left", run.Status)
		}
		time.Sleep(3 * time.Minute)
		patrol()
		wantEnd(t, "nobody ends it", now, stuck, "lost", "run_left", "", "", "error lost")
		stop()
		synctest.Wait()
	})
}
