package operation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// insertFenced writes a document in a transaction of the run.
func insertFenced(ctx context.Context, s store.Store, database, id string, r *operation.Live) error {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return err
	}
	return s.Database(database).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := r.Fence(ctx, tx); err != nil {
			return err
		}
		results, err := tx.Collection("work").Write(ctx, []store.Op{{Kind: store.Insert, Doc: doc}}, true)
		if err != nil {
			return err
		}
		return results[0].Err
	})
}

func (i *instance) patrol() {
	i.w.Helper()
	if err := i.Patrol(i.w.Context(), i.w.database); err != nil {
		i.w.Error(err)
	}
}

// TestAPausedInstanceIsFencedOff pauses an instance in a run for 30 s. Another one gives the run up; what the run writes
// after the pause fails, and so does its own report.
func TestAPausedInstanceIsFencedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		paused, other := w.instance(operation.Options{Instance: "paused"}), w.instance(operation.Options{})
		var late error
		ref := paused.start(spec(w), func(ctx context.Context, r *operation.Live) (operation.Outcome, error) {
			if err := insertFenced(ctx, paused.link, w.database, "before", r); err != nil {
				t.Error(err)
			}
			paused.link.Pause()
			time.Sleep(30 * time.Second)
			paused.link.Resume()
			late = insertFenced(context.WithoutCancel(ctx), paused.link, w.database, "after", r)
			return operation.Outcome{Result: "done"}, nil
		})
		watched, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			other.Run(watched, func(context.Context) ([]string, error) { return []string{w.database}, nil })
		}()
		run, events := other.wait(ref)
		if run.Status != operation.Lost || run.Error.Code != "run_lost" || events[len(events)-1].Kind != operation.EventError {
			t.Errorf("the run is %s, %v; its last event %s", run.Status, run.Error, events[len(events)-1].Kind)
		}
		time.Sleep(time.Minute)
		stop()
		<-over
		if !errors.Is(late, operation.ErrLost) {
			t.Errorf("the write after the pause: %v", late)
		}
		if run := paused.get(ref); run.Status != operation.Lost || run.Result.Type != 0 {
			t.Errorf("the record says %s", run.Status)
		}
		n, err := w.store.Database(w.database).Collection("work").Count(t.Context(), nil, 0)
		if err != nil || n != 1 {
			t.Errorf("%d documents, %v", n, err)
		}
	})
}

// TestADeadInstancesRunsAreLost kills an instance for good, on both stores.
func TestADeadInstancesRunsAreLost(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		const beat = 100 * time.Millisecond
		dead, other := w.instance(operation.Options{Beat: beat}), w.instance(operation.Options{Beat: beat})
		ref := dead.start(spec(w), untilEnd)
		dead.link.Kill()
		w.until("the run is given up", func() bool {
			other.patrol()
			return other.get(ref).Status == operation.Lost
		})
		other.wait(ref)
		if got := count(t, other.registry, "svc_runs_total", "action", "lost"); got != 1 {
			t.Errorf("%v counted", got)
		}
	})
}

// TestWhoIsAloneNeedNotWait is a restart on the embedded store: what the process before has left behind is lost.
func TestWhoIsAloneNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		before := w.instance(operation.Options{})
		ref := before.start(spec(w), untilEnd)
		before.link.Kill()
		now := w.instance(operation.Options{Alone: true})
		own := now.start(spec(w), untilEnd)
		now.patrol()
		if run := now.get(ref); run.Status != operation.Lost {
			t.Errorf("the run of the process before is %s", run.Status)
		}
		if run := now.get(own); run.Status != operation.Running {
			t.Errorf("the own run is %s", run.Status)
		}
	})
}

// TestALivingRunIsNotGivenUp has a run that says nothing for an hour, and one that is in a transaction for long.
func TestALivingRunIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		here, other := w.instance(operation.Options{}), w.instance(operation.Options{})
		quiet := here.start(spec(w), untilEnd)
		for range 720 {
			time.Sleep(5 * time.Second)
			other.patrol()
		}
		if run := other.get(quiet); run.Status != operation.Running {
			t.Errorf("the quiet run is %s", run.Status)
		}
	})
}

func TestAFencedTransactionKeepsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		here, other := w.instance(operation.Options{}), w.instance(operation.Options{})
		ref := here.start(spec(w), func(ctx context.Context, r *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{}, here.link.Database(w.database).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				if err := r.Fence(ctx, tx); err != nil {
					return err
				}
				time.Sleep(40 * time.Second) // nobody can write the record meanwhile
				return ctx.Err()
			})
		})
		for range 10 {
			time.Sleep(5 * time.Second)
			other.patrol()
		}
		if run, _ := here.wait(ref); run.Status != operation.Succeeded {
			t.Errorf("the run is %s, %v", run.Status, run.Error)
		}
	})
}

// TestAnOutageOfTheStore has the store gone for a while: a run survives a short one, and ends with a long one.
func TestAnOutageOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		i := w.instance(operation.Options{})
		ref := i.start(spec(w), untilEnd)
		i.link.Pause()
		time.Sleep(10 * time.Second)
		i.link.Resume()
		time.Sleep(10 * time.Second)
		if run := i.get(ref); run.Status != operation.Running {
			t.Fatalf("after 10 s without the store the run is %s", run.Status)
		}
		i.link.Pause()
		began := time.Now()
		var last operation.Event
		err := i.Follow(t.Context(), w.database, ref, 0, func(e operation.Event) error { last = e; return nil })
		if err != nil || last.Kind != operation.EventError || last.Data.Lookup("code").StringValue() != "run_lost" {
			t.Errorf("Follow = %v, last %s", err, last.Data)
		}
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("the run went on for %s", took)
		}
		i.link.Resume()
	})
}

// TestAnOutageIsNobodysSilence has a store gone for all: nobody could show that a run is alive, so its time begins anew.
func TestAnOutageIsNobodysSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		here, other := w.instance(operation.Options{}), w.instance(operation.Options{})
		ref := here.start(spec(w), untilEnd)
		other.patrol()
		here.link.Pause()
		other.link.Pause()
		outage, over := context.WithTimeout(t.Context(), 11*time.Second)
		defer over()
		if err := other.Patrol(outage, w.database); err == nil {
			t.Error("there was no outage")
		}
		other.link.Resume()
		for _, want := range []operation.Status{operation.Running, operation.Running, operation.Lost} {
			time.Sleep(7 * time.Second)
			other.patrol()
			if run := other.get(ref); run.Status != want {
				t.Errorf("the run is %s, want %s", run.Status, want)
			}
		}
		here.link.Resume()
	})
}
