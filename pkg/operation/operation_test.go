package operation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestRunFromStartToEnd(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		here, there := w.instance(operation.Options{Instance: "a"}), w.instance(operation.Options{Instance: "b"})
		sp := spec(w)
		sp.Input = bson.D{{Key: "$odd.name", Value: int64(1)}}
		sp.By = operation.Actor{Kind: "user", ID: "7", Name: "ada"}
		proceed := make(chan struct{})
		ref := here.start(sp, func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			r.Progress(operation.Progress{Phase: "read", Done: 1, Total: 4, Message: "first"})
			r.Progress(operation.Progress{Phase: "read", Done: 1, Total: 4, Message: "first"}) // which is no event
			r.Log(slog.LevelWarn, "half of it is empty")
			<-proceed
			return operation.Outcome{Result: bson.D{{Key: "$rows", Value: int64(3)}, {Key: "a.b", Value: nil}}, Output: "3 rows"}, nil
		})
		w.until("the other instance sees the log", func() bool {
			run := there.get(ref)
			return run.Status == operation.Running && len(run.Events) == 2
		})
		close(proceed)
		for name, i := range map[string]*instance{"here": here, "there": there} {
			run, events := i.wait(ref)
			var kinds []string
			for n, e := range events {
				if e.ID != int64(n+1) {
					t.Errorf("%s: event %d has id %d", name, n, e.ID)
				}
				kinds = append(kinds, string(e.Kind))
			}
			if diff := cmp.Diff([]string{"progress", "log", "done"}, kinds); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", name, diff)
			}
			got := []any{run.Status, run.Instance, run.By.Name, run.Input.String(), run.Result.String(), run.Output.String(), run.LastEvent, run.Error == nil, run.CreatedAt.IsZero(), run.StartedAt.IsZero(), run.FinishedAt.IsZero()}
			want := []any{
				operation.Succeeded, "a", "ada", `{"$odd.name": {"$numberLong":"1"}}`, `{"$rows": {"$numberLong":"3"},"a.b": null}`, `"3 rows"`,
				int64(3), true, false, false, false,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: run (-want +got):\n%s", name, diff)
			}
			data := events[0].Data
			if data.Lookup("operation").StringValue() != "action" || data.Lookup("id").StringValue() != ref.ID ||
				data.Lookup("total").Int64() != 4 || data.Lookup("message").StringValue() != "first" {
				t.Errorf("%s: progress = %s", name, data)
			}
			if level := events[1].Data.Lookup("level").StringValue(); level != "warn" {
				t.Errorf("%s: level %s", name, level)
			}
			if status := events[2].Data.Lookup("status").StringValue(); status != "succeeded" {
				t.Errorf("%s: last event says %s", name, status)
			}
		}
		page, err := there.List(t.Context(), w.database, operation.Query{Kind: operation.Action, Name: "export", Status: operation.Succeeded, By: "7"})
		if err != nil || len(page.Items) != 1 || page.Items[0].Events != nil || page.Items[0].LastEvent != 3 {
			t.Errorf("List = %+v, %v", page, err)
		}
		if got := count(t, here.registry, "svc_runs_total", "action", "succeeded"); got != 1 {
			t.Errorf("%v runs counted", got)
		}
		w.until("no run is active", func() bool { return count(t, here.registry, "svc_runs_active", "action") == 0 })
	})
}

func TestARunIsFoundUnderItsOwnNameOnly(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		here, there := w.instance(operation.Options{}), w.instance(operation.Options{})
		ref := here.start(spec(w), untilEnd)
		for _, other := range []operation.Ref{
			{Kind: operation.Job, Name: ref.Name, ID: ref.ID}, {Kind: ref.Kind, Name: "other", ID: ref.ID}, {Kind: ref.Kind, Name: ref.Name, ID: "x"},
		} {
			for _, i := range []*instance{here, there} {
				if _, err := i.Get(t.Context(), w.database, other); !errors.Is(err, operation.ErrNotFound) {
					t.Errorf("Get(%v) = %v", other, err)
				}
				if err := i.Cancel(t.Context(), w.database, other); !errors.Is(err, operation.ErrNotFound) {
					t.Errorf("Cancel(%v) = %v", other, err)
				}
				err := i.Follow(t.Context(), w.database, other, 0, func(operation.Event) error { return nil })
				if !errors.Is(err, operation.ErrNotFound) {
					t.Errorf("Follow(%v) = %v", other, err)
				}
			}
		}
	})
}

// TestS57APanicInARunIsItsError is row S57 of the fault list for runs: the process lives, and the panic is counted.
func TestS57APanicInARunIsItsError(t *testing.T) {
	w := newMemory(t)
	i := w.instance(operation.Options{})
	ref := i.start(spec(w), func(context.Context, *operation.Live) (operation.Outcome, error) { panic("secret") })
	run, events := i.wait(ref)
	want := &operation.Failure{Code: "internal", Message: "internal error"}
	if diff := cmp.Diff(want, run.Error); diff != "" || run.Status != operation.Failed {
		t.Errorf("%s, error (-want +got):\n%s", run.Status, diff)
	}
	if strings.Contains(events[0].Data.String(), "secret") || events[0].Kind != operation.EventError {
		t.Errorf("event %s", events[0].Data)
	}
	if got := count(t, i.registry, "svc_run_panics_total", "action"); got != 1 {
		t.Errorf("%v panics counted", got)
	}
}

func newMemory(t *testing.T) *world {
	t.Helper()
	return newWorld(t, teststore.Memory(t))
}

func TestHowRunsFail(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		do      operation.Func
		status  operation.Status
		want    operation.Failure
	}{
		{"with what it found", 0, func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{Result: "three", Subject: "it"}, errs.New(errs.Conflict, "bad", "three things are wrong")
		}, operation.Failed, operation.Failure{Code: "bad", Message: "three things are wrong"}},
		{"with too much", 0, func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{Result: strings.Repeat("x", 5<<20)}, errs.New(errs.Conflict, "bad", "all is wrong")
		}, operation.Failed, operation.Failure{Code: "bad", Message: "all is wrong"}},
		{"refused", 0, func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{}, errs.Validation([]errs.FieldError{{Path: "a", Rule: "min", Message: "is too small"}})
		}, operation.Failed, operation.Failure{
			Code: "validation_failed", Message: "a: is too small", Fields: []errs.FieldError{{Path: "a", Rule: "min", Message: "is too small"}},
		}},
		{"internal", 0, func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{}, errors.New("password is x")
		}, operation.Failed, operation.Failure{Code: "internal", Message: "internal error"}},
		{"timeout", time.Minute, untilEnd, operation.Failed, operation.Failure{Code: "run_timeout", Message: operation.ErrTimeout.Message}},
		{"too large", 0, func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{Result: strings.Repeat("x", 5<<20)}, nil
		}, operation.Failed, operation.Failure{Code: "result_too_large", Message: "the result of the run is larger than 4 MiB, which is the limit: have it give less, or write it to records or files"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newMemory(t)
				i := w.instance(operation.Options{})
				sp := spec(w)
				sp.Timeout = tt.timeout
				began := time.Now()
				run, _ := i.wait(i.start(sp, tt.do))
				if diff := cmp.Diff(&tt.want, run.Error); diff != "" || run.Status != tt.status {
					t.Errorf("%s, error (-want +got):\n%s", run.Status, diff)
				}
				if found, _ := run.Result.StringValueOK(); (tt.name == "with what it found") != (found == "three" && run.Subject == "it") || len(found) > 5 {
					t.Errorf("result %.9q of %q", found, run.Subject)
				}
				if took := time.Since(began); took != tt.timeout {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		here, there := w.instance(operation.Options{Parallel: 1}), w.instance(operation.Options{})
		running := here.start(spec(w), untilEnd)
		waiting := here.start(spec(w), untilEnd)
		if run := there.get(waiting); run.Status != operation.Queued || !run.StartedAt.IsZero() {
			t.Errorf("the second run is %s", run.Status)
		}
		if err := here.Cancel(t.Context(), w.database, waiting); err != nil {
			t.Error(err)
		}
		if err := there.Cancel(t.Context(), w.database, running); err != nil {
			t.Error(err)
		}
		for _, ref := range []operation.Ref{running, waiting} {
			here.wait(ref)
			run := there.get(ref)
			if run.Status != operation.Cancelled || run.Error.Code != "run_cancelled" || !run.CancelRequested {
				t.Errorf("%s: %v, cancel %v", run.Status, run.Error, run.CancelRequested)
			}
			for _, i := range []*instance{here, there} {
				if err := i.Cancel(t.Context(), w.database, ref); !errors.Is(err, operation.ErrEnded) {
					t.Errorf("Cancel of what has ended = %v", err)
				}
			}
		}
		sp := spec(w)
		sp.Cancellable = false
		ref := here.start(sp, untilEnd)
		for _, i := range []*instance{here, there} {
			if err := i.Cancel(t.Context(), w.database, ref); !errors.Is(err, operation.ErrNotCancellable) {
				t.Errorf("Cancel = %v", err)
			}
		}
	})
}

func TestARunThatIsCancelledTooLateHasSucceeded(t *testing.T) {
	w := newMemory(t)
	i := w.instance(operation.Options{})
	run, _ := i.wait(i.start(spec(w), func(ctx context.Context, r *operation.Live) (operation.Outcome, error) {
		if err := i.Cancel(ctx, w.database, refOf(r.Run())); err != nil {
			return operation.Outcome{}, err
		}
		<-ctx.Done()
		return operation.Outcome{Result: "all done"}, nil
	}))
	if run.Status != operation.Succeeded || run.Result.StringValue() != "all done" {
		t.Errorf("%s %s", run.Status, run.Result)
	}
}

// TestFollowGoesOn checks that a follower that comes back gets what came behind the event that it had last.
func TestFollowGoesOn(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		here, there := w.instance(operation.Options{}), w.instance(operation.Options{})
		proceed := make(chan struct{})
		ref := here.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			for _, line := range []string{"one", "two", "three"} {
				r.Log(slog.LevelInfo, line)
			}
			<-proceed
			r.Log(slog.LevelInfo, "four")
			return operation.Outcome{}, nil
		})
		enough := errors.New("enough")
		for _, i := range []*instance{here, there} {
			err := i.Follow(t.Context(), w.database, ref, 0, func(e operation.Event) error {
				if e.ID == 2 {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) {
				t.Errorf("Follow = %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			err = i.Follow(ctx, w.database, ref, 2, func(e operation.Event) error {
				cancel()
				if e.ID != 3 {
					t.Errorf("event %d behind 2", e.ID)
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Follow = %v, want the end of its context", err)
			}
		}
		close(proceed)
		for _, i := range []*instance{here, there} {
			var got []string
			for range 2 { // also when it has ended
				err := i.Follow(t.Context(), w.database, ref, 3, func(e operation.Event) error {
					got = append(got, e.Data.Lookup("message").StringValue())
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff([]string{"four", "", "four", ""}, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		i := w.instance(operation.Options{})
		run, _ := i.wait(i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			for range 1000 {
				r.Log(slog.LevelInfo, "line")
			}
			return operation.Outcome{}, nil
		}))
		if len(run.Events) != 501 || run.LastEvent != 1001 || run.Events[0].ID != 501 {
			t.Errorf("%d events, first %d, last %d", len(run.Events), run.Events[0].ID, run.LastEvent)
		}
		run, _ = i.wait(i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			for range 100 {
				r.Log(slog.LevelInfo, strings.Repeat("x", 1<<20))
			}
			return operation.Outcome{}, nil
		}))
		size := 0
		for _, e := range run.Events {
			size += len(e.Data)
		}
		if size > 256<<10+1<<10 || len(run.Events) < 20 {
			t.Errorf("%d events of %d bytes", len(run.Events), size)
		}
		// A script that tells of each of a million steps makes four events a second.
		run, events := i.wait(i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			for n := range int64(100_000) {
				r.Progress(operation.Progress{Done: n + 1, Total: 100_000})
				if n%1000 == 0 {
					time.Sleep(50 * time.Millisecond)
				}
			}
			return operation.Outcome{}, nil
		}))
		if n := len(events); n < 15 || n > 30 {
			t.Errorf("%d events of progress in 5 s", n)
		}
		if run.Progress.Done != 100_000 || events[len(events)-2].Data.Lookup("done").Int64() != 100_000 {
			t.Errorf("progress ends at %d, its last event at %s", run.Progress.Done, events[len(events)-2].Data)
		}
		if eta := events[len(events)/2].Data.Lookup("etaSeconds").Double(); eta < 1 || eta > 4 {
			t.Errorf("half-way, %v seconds are left", eta)
		}
	})
}

func TestTooManyRuns(t *testing.T) {
	w := newMemory(t)
	i := w.instance(operation.Options{Parallel: 2})
	for range 102 {
		i.start(spec(w), untilEnd)
	}
	if _, err := i.Start(t.Context(), spec(w), untilEnd); !errors.Is(err, operation.ErrTooMany) {
		t.Errorf("Start = %v", err)
	}
	sp := spec(w)
	sp.Kind = operation.Job // has places of its own
	i.start(sp, untilEnd)
	page, err := i.List(t.Context(), w.database, operation.Query{Kind: operation.Action, Status: operation.Running})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d run, %v", len(page.Items), err)
	}
	page, err = i.List(t.Context(), w.database, operation.Query{Kind: operation.Action, Active: true, Limit: 100, Offset: 1})
	if err != nil || len(page.Items) != 100 || !page.HasMore {
		t.Errorf("%d active, more %v, %v", len(page.Items), page.HasMore, err)
	}
}

func TestClaim(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		a, b := w.instance(operation.Options{}), w.instance(operation.Options{})
		sp := spec(w)
		sp.ID = "once"
		refused := errors.New("refused")
		sp.Claim = func(context.Context, store.Tx) error { return refused }
		never := func(context.Context, *operation.Live) (operation.Outcome, error) {
			t.Error("a run that was not recorded goes")
			return operation.Outcome{}, nil
		}
		if _, err := a.Start(t.Context(), sp, never); !errors.Is(err, refused) {
			t.Errorf("Start = %v", err)
		}
		claim := mustMarshal(t, bson.D{{Key: "_id", Value: "claim"}})
		sp.Claim = func(ctx context.Context, tx store.Tx) error {
			results, err := tx.Collection("claims").Write(ctx, []store.Op{{Kind: store.Insert, Doc: claim}}, true)
			if err != nil {
				return err
			}
			return results[0].Err
		}
		a.start(sp, untilEnd)
		sp.Claim = nil
		for _, i := range []*instance{a, b} {
			if _, err := i.Start(t.Context(), sp, never); !errors.Is(err, operation.ErrExists) {
				t.Errorf("Start = %v", err)
			}
		}
		n, err := w.store.Database(w.database).Collection("claims").Count(t.Context(), nil, 0)
		if err != nil || n != 1 {
			t.Errorf("%d claims, %v", n, err)
		}
	})
}

func mustMarshal(t *testing.T, doc bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestCloseWaitsThenCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		i := w.instance(operation.Options{})
		short := i.start(spec(w), func(context.Context, *operation.Live) (operation.Outcome, error) {
			time.Sleep(10 * time.Second)
			return operation.Outcome{}, nil
		})
		long := i.start(spec(w), untilEnd)
		grace, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		i.Close(grace)
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("closed after %s", took)
		}
		if run := i.get(short); run.Status != operation.Succeeded {
			t.Errorf("the short run is %s", run.Status)
		}
		if run := i.get(long); run.Status != operation.Cancelled || run.Error.Code != "stopping" {
			t.Errorf("the long run is %s, %v", run.Status, run.Error)
		}
		if _, err := i.Start(t.Context(), spec(w), untilEnd); !errors.Is(err, operation.ErrStopping) {
			t.Errorf("Start = %v", err)
		}
	})
}

func TestHistoryIsPruned(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		i := w.instance(operation.Options{})
		quick := func(context.Context, *operation.Live) (operation.Outcome, error) { return operation.Outcome{}, nil }
		first := i.start(spec(w), untilEnd) // has not ended, and stays
		second := i.start(spec(w), quick)
		i.wait(second)
		for range 110 {
			w.clock.Pass(time.Second)
			i.wait(i.start(spec(w), quick))
		}
		// The last one prunes behind its end.
		all := func() []*operation.Run {
			page, err := i.List(t.Context(), w.database, operation.Query{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return page.Items
		}
		w.until("100 and the active one are left", func() bool { return len(all()) == 101 })
		if run := i.get(first); run.Status != operation.Running {
			t.Errorf("the active run is %s", run.Status)
		}
		if _, err := i.Get(t.Context(), w.database, second); !errors.Is(err, operation.ErrNotFound) {
			t.Errorf("the oldest: %v", err)
		}
		w.clock.Pass(31 * 24 * time.Hour)
		if err := i.Patrol(t.Context(), w.database); err != nil {
			t.Error(err)
		}
		if n := len(all()); n != 1 {
			t.Errorf("%d runs a month later", n)
		}
	})
}

// TestTurns has two projects want all places: the one that came first gets half of them, others one each, and who waits
// is seen to wait. No place is lost, whether a run ends, is cancelled while it waits, or can't be recorded.
func TestTurns(t *testing.T) {
	w := newMemory(t)
	i := w.instance(operation.Options{Parallel: 3, Places: 4})
	var stop [4][]chan struct{}
	start := func(project int) operation.Ref {
		t.Helper()
		over := make(chan struct{})
		stop[project] = append(stop[project], over)
		sp := spec(w)
		sp.Database += strings.Repeat("x", project)
		return i.start(sp, func(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
			select {
			case <-over:
				return operation.Outcome{}, nil
			case <-ctx.Done():
				return operation.Outcome{}, ctx.Err()
			}
		})
	}
	status := func(project int, refs []operation.Ref) string {
		t.Helper()
		var out []string
		for _, ref := range refs {
			run, err := i.Get(t.Context(), w.database+strings.Repeat("x", project), ref)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(run.Status))
		}
		return strings.Join(out, " ")
	}
	var refs [4][]operation.Ref
	for range 4 {
		refs[0] = append(refs[0], start(0))
	}
	for project := 1; project < 4; project++ {
		refs[project] = append(refs[project], start(project), start(project))
	}
	for project, want := range []string{"running running queued queued", "running queued", "running queued", "queued queued"} {
		if got := status(project, refs[project]); got != want {
			t.Errorf("project %d: %s, want %s", project, got, want)
		}
	}
	waiting, err := i.Get(t.Context(), w.database, refs[0][2])
	if err != nil || len(waiting.Events) != 1 || !strings.Contains(waiting.Events[0].Data.Lookup("message").StringValue(), "waits for its turn") {
		t.Errorf("%+v, %v", waiting, err)
	}
	if err := i.Cancel(t.Context(), w.database, refs[0][2]); err != nil {
		t.Error(err)
	}
	wait := func(project int, want string) {
		t.Helper()
		for giveUp := time.Now().Add(time.Minute); status(project, refs[project]) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(giveUp) {
				t.Fatalf("project %d: %s, want %s", project, status(project, refs[project]), want)
			}
		}
	}
	wait(0, "running running cancelled queued")
	close(stop[0][0]) // the place goes to who has none
	wait(3, "running queued")
	wait(0, "succeeded running cancelled queued")
	for project := 1; project < 4; project++ {
		close(stop[project][0])
		close(stop[project][1])
	}
	wait(0, "succeeded running cancelled running")
	for project := 1; project < 4; project++ {
		wait(project, "succeeded succeeded")
	}
	close(stop[0][1])
	close(stop[0][3])
	wait(0, "succeeded succeeded cancelled succeeded")
	for range 3 { // all are free again
		refs[1] = append(refs[1], start(1))
	}
	wait(1, "succeeded succeeded running running queued")
}

// Each phase is told of from its beginning to its end, however short it is, and how fast it goes in it; the run keeps them.
func TestPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		i := w.instance(operation.Options{})
		run, events := i.wait(i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			time.Sleep(10 * time.Second)
			for n := range int64(3) {
				r.Progress(operation.Progress{Phase: "read", Done: n, Total: 2, BytesDone: n * 100, Counters: operation.Counters{Linked: n}})
			}
			r.Progress(operation.Progress{Phase: "write", Total: 4})
			time.Sleep(2 * time.Second)
			r.Progress(operation.Progress{Phase: "write", Done: 1, Total: 4, BytesDone: 50, Counters: operation.Counters{Linked: 2, Warnings: 1}})
			time.Sleep(time.Second)
			return operation.Outcome{Subject: "it"}, nil
		}))
		var told []string
		for _, e := range events {
			told = append(told, fmt.Sprint(e.Data.Lookup("phase").StringValue(), lookup(e, "done"), lookup(e, "linked"), lookup(e, "etaSeconds"), lookup(e, "perSecond"), lookup(e, "bytesPerSecond")))
		}
		want := []string{"read - - - - -", "read 2 2 0 - -", "write - - - - -", "write 1 2 6 0.5 25", "write 1 2 - - -"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
		phases := []operation.Phase{
			{Name: "read", Done: 2, Total: 2, BytesDone: 200},
			{Name: "write", Done: 1, Total: 4, BytesDone: 50, Took: 3 * time.Second},
		}
		if diff := cmp.Diff(phases, run.Phases); diff != "" || run.Subject != "it" {
			t.Error(run.Subject, diff)
		}
		run, _ = i.wait(i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
			for n := range 10_000 { // a script may say anything
				r.Progress(operation.Progress{Phase: strconv.Itoa(n)})
			}
			return operation.Outcome{}, nil
		}))
		if len(run.Phases) != 32 || run.Phases[31].Name != "9999" || run.LastEvent > 70 {
			t.Errorf("%d phases, %d events", len(run.Phases), run.LastEvent)
		}
	})
}

// lookup shows a number of an event.
func lookup(e operation.Event, name string) string {
	v, err := e.Data.LookupErr(name)
	if err != nil {
		return " -"
	}
	if n, ok := v.AsInt64OK(); ok && v.Type != bson.TypeDouble {
		return fmt.Sprint(" ", n)
	}
	return fmt.Sprint(" ", v.Double())
}

// A run is found by its id alone, and by what it is about.
func TestFindRuns(t *testing.T) {
	w := newMemory(t)
	i := w.instance(operation.Options{})
	sp := spec(w)
	sp.Kind, sp.Name, sp.Subject = operation.Verify, "daily", "one"
	run, _ := i.wait(i.start(sp, untilNothing))
	got, err := i.Find(t.Context(), w.database, run.ID, operation.Snapshot, operation.Verify)
	if err != nil || got.ID != run.ID || got.Subject != "one" || got.Name != "daily" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{run.ID, "none"} {
		if _, err := i.Find(t.Context(), w.database, id, operation.Snapshot); !errors.Is(err, operation.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	verify, other := []operation.Kind{operation.Verify}, []operation.Kind{operation.Snapshot}
	for _, tt := range []struct {
		q    operation.Query
		want int
	}{
		{operation.Query{Kinds: append(other, verify...), Subject: "one"}, 1},
		{operation.Query{Subject: "two"}, 0},
		{operation.Query{Any: []operation.Of{{Kinds: other, Names: []string{"x"}}, {Kinds: verify, Names: []string{"daily", "x"}}}}, 1},
		{operation.Query{Any: []operation.Of{{Kinds: other, Names: []string{"daily"}}, {Kinds: verify, Names: []string{"x"}}}}, 0},
	} {
		page, err := i.List(t.Context(), w.database, tt.q)
		if err != nil || len(page.Items) != tt.want {
			t.Errorf("%+v: %d, %v", tt.q, len(page.Items), err)
		}
	}
}

func untilNothing(context.Context, *operation.Live) (operation.Outcome, error) {
	return operation.Outcome{}, nil
}
