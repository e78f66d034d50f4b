package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A manager that is never started leaves nothing running, nor does one that takes no controller.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	metrics := prometheus.NewRegistry()
	var managers []*controller.Manager
	for i, reg := range []prometheus.Registerer{metrics, prometheus.WrapRegistererWithPrefix("other_", metrics)} {
		m, err := controller.New(controller.Options{Logger: slog.New(slog.DiscardHandler), Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		managers = append(managers, m)
		if i > 0 {
			metrics.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "other_svc_reconcile_queue_depth", Help: "Keys that wait for a worker.", ConstLabels: prometheus.Labels{"controller": "c"},
			}))
		}
		err = m.Add(controller.Controller{Name: "c", Reconciler: record(succeed)})
		if (err != nil) != (i > 0) {
			t.Errorf("Add: %v", err)
		}
	}
	m := managers[0]
	for range 2 {
		if err := m.Trigger("c", "a"); err != nil {
			t.Error(err)
		}
		managers[0].Close()
		managers[1].Close()
	}
	if err := m.Start(t.Context()); err == nil {
		t.Error("started after its end")
	}
	if err := m.ReconcileNow(t.Context(), "c", "a"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("ReconcileNow: %v", err)
	}
}

var errTest = errors.New("store is down")

// run is one call of a Reconciler.
type run struct {
	Key string
	At  time.Duration // since the start
}

// recorder is a Reconciler that notes its runs and does as told.
type recorder struct {
	start time.Time
	do    func(ctx context.Context, key string, n int) (controller.Result, error) // n counts the runs of a key from 1

	mu   sync.Mutex
	runs []run
	n    map[string]int
}

func record(do func(ctx context.Context, key string, n int) (controller.Result, error)) *recorder {
	return &recorder{start: time.Now(), do: do, n: map[string]int{}}
}

func succeed(context.Context, string, int) (controller.Result, error) {
	return controller.Result{}, nil
}

func (r *recorder) Reconcile(ctx context.Context, key string) (controller.Result, error) {
	r.mu.Lock()
	r.runs = append(r.runs, run{key, time.Since(r.start)})
	r.n[key]++
	n := r.n[key]
	r.mu.Unlock()
	return r.do(ctx, key, n)
}

func (r *recorder) all() []run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]run(nil), r.runs...)
}

// started runs a manager with one controller named "c" until stop is called. reg may be nil.
func started(t *testing.T, c controller.Controller, reg *prometheus.Registry) (m *controller.Manager, stop func()) {
	t.Helper()
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m, err := controller.New(controller.Options{
		Logger: slog.New(slog.DiscardHandler), Registerer: reg, BackoffMin: time.Second, BackoffMax: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "c"
	if err := m.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	return m, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start = %v", err)
		}
	}
}

func trigger(t *testing.T, m *controller.Manager, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if err := m.Trigger("c", k); err != nil {
			t.Fatal(err)
		}
	}
}

// TestR9Backoff is row R9 of the fault list, as far as it is about failures: what fails comes back after a time that grows to a bound,
// begins anew after a success, and differs from key to key, so that those that failed together don't come back together.
func TestR9Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(_ context.Context, _ string, n int) (controller.Result, error) {
			if n <= 9 {
				return controller.Result{}, errTest
			}
			return controller.Result{}, nil
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, nil)
		defer stop()
		trigger(t, m, "k")
		time.Sleep(time.Hour)

		runs := r.all()
		if len(runs) != 10 {
			t.Fatalf("%d runs, want 10", len(runs))
		}
		for i := 1; i < len(runs); i++ {
			want := min(time.Second<<(i-1), time.Minute)
			if got := runs[i].At - runs[i-1].At; got < want*3/4 || got > want*5/4 {
				t.Errorf("delay %d is %s, want %s ± 25 %%", i, got, want)
			}
		}

		// A success ended the count: the next failure starts at the shortest delay.
		r.mu.Lock()
		r.n["k"] = 8
		r.mu.Unlock()
		trigger(t, m, "k")
		time.Sleep(time.Hour)
		runs = r.all()[10:]
		if len(runs) != 2 || runs[1].At-runs[0].At > 2*time.Second {
			t.Errorf("after a success: %v, want two runs about a second apart", runs)
		}
	})
}

// TestR9Jitter has many keys fail together.
func TestR9Jitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(_ context.Context, _ string, n int) (controller.Result, error) {
			if n == 1 {
				return controller.Result{}, errTest
			}
			return controller.Result{}, nil
		})
		m, stop := started(t, controller.Controller{Reconciler: r, Workers: 100}, nil)
		defer stop()
		const keys = 100
		for n := range keys {
			trigger(t, m, strconv.Itoa(n))
		}
		time.Sleep(time.Hour)
		var first, last time.Duration
		again := map[time.Duration]bool{}
		for i, run := range r.all() {
			switch {
			case i < keys: // all that failed
				last = max(last, run.At)
			default:
				if first == 0 {
					first = run.At
				}
				again[run.At] = true
				if d := run.At - last; d < 750*time.Millisecond || d > 1250*time.Millisecond {
					t.Errorf("%s comes back after %s", run.Key, d)
				}
			}
		}
		if len(r.all()) != 2*keys || len(again) < keys/2 {
			t.Errorf("%d runs; %d keys came back at %d times", len(r.all()), keys, len(again))
		}
	})
}

func TestRequeueAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(_ context.Context, _ string, n int) (controller.Result, error) {
			if n <= 2 {
				return controller.Result{RequeueAfter: 10 * time.Second}, nil
			}
			return controller.Result{}, nil
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, nil)
		defer stop()
		trigger(t, m, "k")
		time.Sleep(time.Hour)
		want := []run{{"k", 0}, {"k", 10 * time.Second}, {"k", 20 * time.Second}}
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

func TestTerminalErrorsWaitForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(context.Context, string, int) (controller.Result, error) {
			return controller.Result{RequeueAfter: time.Second}, controller.TerminalError(errTest)
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, nil)
		defer stop()
		trigger(t, m, "k")
		time.Sleep(time.Hour)
		trigger(t, m, "k")
		time.Sleep(time.Hour)
		want := []run{{"k", 0}, {"k", time.Hour}}
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		if err := m.ReconcileNow(t.Context(), "c", "k"); !errors.Is(err, errTest) {
			t.Errorf("ReconcileNow = %v, want the error inside", err)
		}
	})
	if controller.TerminalError(nil) != nil {
		t.Error("TerminalError(nil) is an error")
	}
}

func TestPanicsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		r := record(func(_ context.Context, _ string, n int) (controller.Result, error) {
			if n == 1 {
				panic("boom")
			}
			return controller.Result{}, nil
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, reg)
		defer stop()
		if err := m.ReconcileNow(t.Context(), "c", "k"); err == nil || errs.From(err).Message != "internal error" {
			t.Errorf("ReconcileNow = %v, want an internal error", err)
		}
		time.Sleep(time.Minute)
		if n := len(r.all()); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
		if got := counts(t, reg); got["panic"] != 1 || got["success"] != 1 {
			t.Errorf("counts = %v", got)
		}
	})
}

// counts gives svc_reconcile_total by result.
func counts(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "svc_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" {
					got[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return got
}

func TestMetricsExistFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		_, stop := started(t, controller.Controller{Reconciler: record(succeed)}, reg)
		defer stop()
		want := map[string]float64{"success": 0, "requeue_after": 0, "error": 0, "terminal_error": 0, "panic": 0}
		if diff := cmp.Diff(want, counts(t, reg)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range families {
			names = append(names, f.GetName())
		}
		if diff := cmp.Diff([]string{"svc_reconcile_duration_seconds", "svc_reconcile_queue_depth", "svc_reconcile_total"}, names); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

func TestOneKeyNeverRunsTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running := map[string]int{}
		most := 0
		r := record(func(_ context.Context, key string, _ int) (controller.Result, error) {
			mu.Lock()
			running[key]++
			if running[key] > 1 {
				t.Errorf("%s runs twice at once", key)
			}
			total := 0
			for _, n := range running {
				total += n
			}
			most = max(most, total)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running[key]--
			mu.Unlock()
			return controller.Result{}, nil
		})
		m, stop := started(t, controller.Controller{Reconciler: r, Workers: 3}, nil)
		defer stop()
		for range 20 {
			trigger(t, m, "a", "b", "c", "d")
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 3 {
			t.Errorf("%d keys at once, want 3", most)
		}
		last := map[string]time.Duration{}
		for _, r := range r.all() {
			last[r.Key] = r.At
		}
		for key, at := range last {
			if at < 5700*time.Millisecond {
				t.Errorf("%s: the last trigger, at 5.7s, was lost: last run at %s", key, at)
			}
		}
	})
}

func TestReconcileNowWaitsForARunThatStartedAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(_ context.Context, _ string, n int) (controller.Result, error) {
			time.Sleep(10 * time.Second)
			if n == 1 {
				return controller.Result{}, nil
			}
			return controller.Result{}, errTest
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, nil)
		defer stop()
		trigger(t, m, "k")
		time.Sleep(5 * time.Second) // the first run is under way

		if err := m.ReconcileNow(t.Context(), "c", "k"); !errors.Is(err, errTest) {
			t.Errorf("ReconcileNow = %v, want the result of the second run", err)
		}
		if at := time.Since(r.start); at != 20*time.Second {
			t.Errorf("answered after %s, want 20s", at)
		}
		// The failure left the key in backoff; a call does not wait for that.
		began := time.Now()
		if err := m.ReconcileNow(t.Context(), "c", "k"); !errors.Is(err, errTest) {
			t.Errorf("ReconcileNow = %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("answered after %s, want 10s", took)
		}
	})
}

func TestReconcileNowEndsWithItsContextAndWithTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(func(ctx context.Context, _ string, _ int) (controller.Result, error) {
			<-ctx.Done()
			return controller.Result{}, ctx.Err()
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 { // the second finds the key running, so that its run never starts
			if err := m.ReconcileNow(ctx, "c", "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ReconcileNow = %v, want the deadline", err)
			}
		}
		if n := m.Waiters("c"); n != 0 {
			t.Errorf("%d calls that have ended are still waited for", n)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- m.ReconcileNow(t.Context(), "c", "k") }()
		synctest.Wait()
		stop()
		if err := <-waiting; errs.KindOf(err) != errs.Unavailable {
			t.Errorf("ReconcileNow = %v, want Unavailable", err)
		}
		if err := m.ReconcileNow(t.Context(), "c", "k"); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("ReconcileNow after the stop = %v, want Unavailable", err)
		}
	})
}

func TestListIsEnqueuedAtStartAndResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		r := record(succeed)
		_, stop := started(t, controller.Controller{
			Reconciler: r,
			Resync:     time.Hour,
			List: func(context.Context) ([]string, error) {
				if calls++; calls == 2 {
					return nil, errTest // it is asked again after a short while, not after an hour
				}
				return []string{"a", "b"}, nil
			},
		}, nil)
		defer stop()
		time.Sleep(80 * time.Minute) // an hour ± 25 % has passed once, and can't have twice
		runs := r.all()
		if len(runs) != 4 || runs[1].At != 0 || runs[2].At < 45*time.Minute || runs[3].At > 76*time.Minute {
			t.Errorf("runs = %v, want two at once and two about an hour later", runs)
		}
		if calls != 3 {
			t.Errorf("List was called %d times, want 3", calls)
		}
	})
}

func TestSourcesAreStartedAgainWhenTheyFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		source := controller.SourceFunc(func(ctx context.Context, enqueue func(string)) error {
			switch calls++; calls {
			case 1:
				return errTest
			case 2:
				panic("boom")
			}
			enqueue("k")
			<-ctx.Done()
			return nil
		})
		var ended int
		once := controller.SourceFunc(func(context.Context, func(string)) error {
			ended++
			return nil
		})
		r := record(succeed)
		_, stop := started(t, controller.Controller{Reconciler: r, Sources: []controller.Source{source, once}}, nil)
		time.Sleep(time.Hour)
		stop()
		if n := len(r.all()); n != 1 || calls != 3 || ended != 1 {
			t.Errorf("%d runs, %d and %d starts; want 1, 3 and 1", n, calls, ended)
		}
	})
}

func TestStopCutsOffAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		r := record(func(ctx context.Context, _ string, _ int) (controller.Result, error) {
			<-ctx.Done()
			return controller.Result{}, ctx.Err()
		})
		m, stop := started(t, controller.Controller{Reconciler: r}, reg)
		trigger(t, m, "a", "b", "c")
		synctest.Wait()
		stop()
		if n := len(r.all()); n != 1 {
			t.Errorf("%d runs, want only the one under way", n)
		}
		if got := counts(t, reg)["error"]; got != 0 {
			t.Errorf("the stop counts as %v errors", got)
		}
	})
}

func TestAddRefuses(t *testing.T) {
	ok := record(succeed)
	list := func(context.Context) ([]string, error) { return nil, nil }
	m, err := controller.New(controller.Options{Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(controller.Controller{Name: "c", Reconciler: ok, List: list, Resync: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]controller.Controller{
		"without a name":      {Reconciler: ok},
		"no reconciler":       {Name: "x"},
		"Resync but no List":  {Name: "x", Reconciler: ok, Resync: time.Hour},
		"negative":            {Name: "x", Reconciler: ok, Workers: -1},
		"two controllers are": {Name: "c", Reconciler: ok},
	} {
		if err := m.Add(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Add(%+v) = %v, want %q", c, err, want)
		}
	}
	if err := m.Trigger("x", "k"); err == nil {
		t.Error("Trigger of an unknown controller succeeded")
	}
	if err := m.ReconcileNow(t.Context(), "x", "k"); err == nil {
		t.Error("ReconcileNow of an unknown controller succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(ctx); err != nil {
		t.Error(err)
	}
	if err := m.Start(ctx); err == nil {
		t.Error("a second Start succeeded")
	}
	if err := m.Add(controller.Controller{Name: "late", Reconciler: ok}); err == nil {
		t.Error("Add after Start succeeded")
	}
	if _, err := controller.New(controller.Options{}); err == nil {
		t.Error("New without a logger succeeded")
	}
}
