package jobs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schedule"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// world is a project with a job "hourly", due at each full hour, and "manual" without a schedule. The runs of hourly wait
// to be let go.
type world struct {
	*testing.T
	store   store.Store
	clock   *clock
	project *project.Project
	started atomic.Int64
	proceed chan error
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{T: t, store: s, clock: &clock{}, project: aProject(t, map[string]string{"hourly": "0 * * * *", "manual": ""}), proceed: make(chan error, 100)}
	w.clock.set("2026-05-01T00:30:00Z")
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), project.DatabaseName(w.project.Namespace)); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) RunJob(ctx context.Context, _ jobs.Call, _ *operation.Live) (any, error) {
	w.started.Add(1)
	select {
	case err := <-w.proceed:
		return "result", err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) instance() *instance {
	w.Helper()
	return newInstance(w.T, w.store, w.clock, w)
}

// state gives how the job hourly stands, once its last run has ended if ended is set.
func (w *world) state(i *instance, ended bool) jobs.State {
	w.Helper()
	for {
		s, err := i.Get(w.Context(), w.project, "hourly")
		if err != nil {
			w.Fatal(err)
		}
		if !ended || s.Last == nil || !s.Last.Status.Active() {
			return s
		}
		time.Sleep(time.Millisecond)
	}
}

func TestASlotIsRunOnceByWhomeverComesFirst(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		var instances []*instance
		for range 4 {
			instances = append(instances, w.instance())
		}
		for _, i := range instances {
			if report := pass(t, i, w.project); report.Scheduled != 1 || report.Next.Format(time.RFC3339) != "2026-05-01T01:00:00Z" {
				t.Errorf("report = %+v", report)
			}
		}
		if n := w.started.Load(); n != 0 {
			t.Fatalf("%d runs of a new job", n)
		}
		for hour := range int64(5) {
			w.clock.jump(time.Hour)
			var all sync.WaitGroup
			for _, i := range instances {
				all.Go(func() {
					if _, err := i.Pass(t.Context(), w.project); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			w.proceed <- nil
			state := w.state(instances[0], true)
			if n := w.started.Load(); n != hour+1 || state.Claimed != hour+1 || state.Last.Status != operation.Succeeded {
				t.Fatalf("hour %d: %d runs, %d claimed, the last %s", hour, n, state.Claimed, state.Last.Status)
			}
		}
		page, err := instances[1].History(t.Context(), w.project, "hourly", operation.Query{})
		if err != nil || len(page.Items) != 5 {
			t.Fatalf("history: %d, %v", len(page.Items), err)
		}
		run, err := instances[2].Run(t.Context(), w.project, "hourly", page.Items[0].ID)
		if err != nil || run.Trigger != operation.Schedule || run.Slot.Format(time.RFC3339) != "2026-05-01T05:00:00Z" || run.Result.StringValue() != "result" || len(run.Events) != 1 {
			t.Errorf("run = %+v, %v", run, err)
		}
	})
}

func TestRunsOfAJobDontOverlap(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		a, b := w.instance(), w.instance()
		pass(t, a, w.project)
		run, err := b.RunNow(t.Context(), w.project, "hourly", operation.Actor{Kind: "user", ID: "7"})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.jump(time.Hour)
		pass(t, a, w.project)
		for _, i := range []*instance{a, b} {
			if _, err := i.RunNow(t.Context(), w.project, "hourly", operation.Actor{}); !errors.Is(err, jobs.ErrRunning) {
				t.Errorf("RunNow = %v", err)
			}
		}
		w.proceed <- nil
		if s := w.state(a, true); s.Last.ID != run.ID || s.Skipped != 1 || s.Claimed != 0 || w.started.Load() != 1 {
			t.Errorf("last run %s, %d skipped, %d claimed, %d runs", s.Last.ID, s.Skipped, s.Claimed, w.started.Load())
		}
		pass(t, a, w.project) // the slot was skipped, and does not come late
		if n := w.started.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
		w.clock.jump(time.Hour)
		pass(t, a, w.project)
		w.proceed <- nil
		if s := w.state(a, true); s.Claimed != 1 || s.Last.Trigger != operation.Schedule {
			t.Errorf("%d claimed, last %s", s.Claimed, s.Last.Trigger)
		}
		if got := value(t, a.registry, "svc_job_slots_skipped_total", "hourly", "overlap"); got != 1 {
			t.Errorf("%v skipped slots counted", got)
		}
	})
}

func TestSuspend(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		i := w.instance()
		pass(t, i, w.project)
		for range 2 { // a second one changes nothing
			if err := i.Suspend(t.Context(), w.project, "hourly", operation.Actor{Kind: "user", Name: "ada"}); err != nil {
				t.Fatal(err)
			}
		}
		i = w.instance() // it survives a restart
		w.clock.jump(3 * time.Hour)
		if report := pass(t, i, w.project); report.Suspended != 1 || !report.Next.IsZero() {
			t.Errorf("report = %+v", report)
		}
		if s := w.state(i, false); !s.Suspended || s.SuspendedBy.Name != "ada" || s.SuspendedAt.IsZero() || !s.Next.IsZero() || s.Last != nil {
			t.Errorf("state = %+v", s)
		}
		next, err := i.Next(t.Context(), w.project, "hourly", 2)
		if err != nil || len(next) != 2 || next[0].Hour() != 4 {
			t.Errorf("Next = %v, %v", next, err)
		}
		if _, err := i.RunNow(t.Context(), w.project, "hourly", operation.Actor{}); err != nil {
			t.Errorf("run by hand: %v", err)
		}
		w.proceed <- nil
		w.state(i, true)
		if err := i.Resume(t.Context(), w.project, "hourly"); err != nil {
			t.Fatal(err)
		}
		if report := pass(t, i, w.project); report.Suspended != 0 || report.Next.Hour() != 4 {
			t.Errorf("report = %+v", report)
		}
		if n := w.started.Load(); n != 1 {
			t.Errorf("%d runs: a slot of the time between came late", n)
		}
		w.clock.jump(time.Hour)
		pass(t, i, w.project)
		w.proceed <- nil
		if s := w.state(i, true); s.Claimed != 1 || s.Missed != 0 {
			t.Errorf("%d claimed, %d missed", s.Claimed, s.Missed)
		}
	})
}

func TestAnotherScheduleBeginsAnew(t *testing.T) {
	w := newWorld(t, teststore.Memory(t))
	i := w.instance()
	pass(t, i, w.project)
	w.clock.jump(15 * time.Minute) // 00:45
	other, err := schedule.Parse("40 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range w.project.Jobs {
		if job.Name == "hourly" {
			job.Schedule = other
		}
	}
	for range 2 {
		if report := pass(t, i, w.project); report.Next.Format(time.RFC3339) != "2026-05-01T01:40:00Z" {
			t.Errorf("next %s", report.Next)
		}
	}
	if n := w.started.Load(); n != 0 {
		t.Errorf("%d runs: 00:40 was no slot at 00:40", n)
	}
}

func TestHowARunEnds(t *testing.T) {
	w := newWorld(t, teststore.Memory(t))
	i := w.instance()
	for _, tt := range []struct {
		name   string
		do     func(run *operation.Run)
		status operation.Status
		code   string
	}{
		{"fails", func(*operation.Run) { w.proceed <- errors.New("no") }, operation.Failed, "internal"},
		{"is cancelled", func(run *operation.Run) {
			if err := i.Cancel(t.Context(), w.project, "manual", run.ID); err != nil {
				t.Error(err)
			}
		}, operation.Cancelled, "run_cancelled"},
		{"succeeds", func(*operation.Run) { w.proceed <- nil }, operation.Succeeded, ""},
	} {
		run, err := i.RunNow(t.Context(), w.project, "manual", operation.Actor{Kind: "user", ID: "7"})
		if err != nil {
			t.Fatal(err)
		}
		tt.do(run)
		err = i.Follow(t.Context(), w.project, "manual", run.ID, 0, func(operation.Event) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		run, err = i.Run(t.Context(), w.project, "manual", run.ID)
		if err != nil || run.Status != tt.status || run.Trigger != operation.Manual || run.By.ID != "7" {
			t.Errorf("%s: %+v, %v", tt.name, run, err)
		}
		code := ""
		if run.Error != nil {
			code = run.Error.Code
		}
		if code != tt.code {
			t.Errorf("%s: code %q", tt.name, code)
		}
		if got := value(t, i.registry, "svc_job_runs_total", "manual", string(tt.status)); got != 1 {
			t.Errorf("%s: %v runs counted", tt.name, got)
		}
	}
	if got := value(t, i.registry, "svc_job_last_success_timestamp_seconds", "manual"); got < float64(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Unix()) {
		t.Errorf("last success at %v", got)
	}
	again := w.instance()
	pass(t, again, w.project)
	if got := value(t, again.registry, "svc_job_last_success_timestamp_seconds", "manual"); got == 0 {
		t.Error("the last success is not known after a restart")
	}
	again.Forget(w.project.Namespace, func(job string) bool { return job == "hourly" })
	if got := value(t, again.registry, "svc_job_last_success_timestamp_seconds", "manual"); got != -1 {
		t.Errorf("a job that is gone has the metric %v", got)
	}
}

// TestS57APanickingRunner is row S57 of the fault list for jobs: the run fails, it is counted, and the next one comes.
func TestS57APanickingRunner(t *testing.T) {
	s, c, p := teststore.Memory(t), &clock{}, aProject(t, map[string]string{"job": ""})
	i := newInstance(t, s, c, runnerFunc(func(context.Context, jobs.Call, *operation.Live) (any, error) { panic("boom") }))
	for n := range 2 {
		run, err := i.RunNow(t.Context(), p, "job", operation.Actor{})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Follow(t.Context(), p, "job", run.ID, 0, func(operation.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		run, err = i.Run(t.Context(), p, "job", run.ID)
		if err != nil || run.Status != operation.Failed || run.Error.Message != "internal error" {
			t.Errorf("run = %+v, %v", run, err)
		}
		if got := value(t, i.registry, "svc_run_panics_total", "job"); got != float64(n+1) {
			t.Errorf("%v panics counted", got)
		}
	}
}

func TestAJobThatIsNotThere(t *testing.T) {
	w := newWorld(t, teststore.Memory(t))
	i, ctx := w.instance(), t.Context()
	for name, err := range map[string]error{
		"Get":     second(i.Get(ctx, w.project, "no")),
		"Next":    second(i.Next(ctx, w.project, "no", 5)),
		"RunNow":  second(i.RunNow(ctx, w.project, "no", operation.Actor{})),
		"History": second(i.History(ctx, w.project, "no", operation.Query{})),
		"Run":     second(i.Run(ctx, w.project, "no", "x")),
		"Cancel":  i.Cancel(ctx, w.project, "no", "x"),
		"Suspend": i.Suspend(ctx, w.project, "no", operation.Actor{}),
		"Resume":  i.Resume(ctx, w.project, "no"),
		"Follow":  i.Follow(ctx, w.project, "no", "x", 0, nil),
	} {
		if !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("%s = %v", name, err)
		}
	}
	list, err := i.List(ctx, w.project)
	if err != nil || len(list) != 2 || list[0].Job.Name != "hourly" || !list[1].Next.IsZero() {
		t.Errorf("List = %+v, %v", list, err)
	}
	if next, err := i.Next(ctx, w.project, "manual", 5); err != nil || len(next) != 0 {
		t.Errorf("Next without a schedule = %v, %v", next, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNext(t *testing.T) {
	w := newWorld(t, teststore.Memory(t))
	next, err := w.instance().Next(t.Context(), w.project, "hourly", 5)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, at := range next {
		got = append(got, at.Hour())
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5}, got); diff != "" {
		t.Errorf("hours (-want +got):\n%s", diff)
	}
}

// value gives a metric whose labels end so; -1 if there is none.
func value(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "namespace" {
					values = append(values, l.GetValue())
				}
			}
			if f.GetName() == name && cmp.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return -1
}
