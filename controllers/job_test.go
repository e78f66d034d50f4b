package controllers_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// withJobs is config with jobs, whose scripts are written beside it.
func (w *world) withJobs(jobs string) string {
	write(w.T, filepath.Join(w.ProjectsDir, "blog", "tick.js"), "module.exports = () => {}\n")
	return config("blog", "title", "") + "jobs: [" + jobs + "]\n"
}

const everySecond = `{type: javascript, file: tick.js, cron: "every 1s"}`

func TestJobsAreRun(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(w.withJobs(everySecond + `, {name: byhand, type: javascript, file: tick.js}`))
		w.wantConditions(id, map[string]string{status.JobsScheduled: "True Scheduled", status.Ready: "True Serving"})
		ran := func() int64 {
			state, err := w.Jobs.Get(t.Context(), p, "tick")
			if err != nil {
				t.Fatal(err)
			}
			return state.Claimed
		}
		eventually(t, func() string {
			if n := ran(); n < 2 {
				return "the job has not run twice"
			}
			return ""
		})
		page, err := w.Jobs.History(t.Context(), p, "byhand", operation.Query{})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("a job without a schedule ran %d times, %v", len(page.Items), err)
		}

		// Without jobs there is no condition, and nothing is run.
		w.serveAnew(id, config("blog", "title", ""))
		eventually(t, func() string { return w.condition(id, status.JobsScheduled) })
	})
}

// serveAnew serves another config of the project.
func (w *world) serveAnew(id, config string) {
	w.Helper()
	write(w.T, filepath.Join(w.ProjectsDir, "blog", "project.yaml"), config)
	if err := w.Reload(w.Context(), id, true); err != nil {
		w.Fatal(err)
	}
}

// TestASecondReconcileOfJobsWritesNothing is what level-triggered means: with nothing due there is nothing to do.
func TestASecondReconcileOfJobsWritesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		_, id := w.serve(w.withJobs(`{type: javascript, file: tick.js, cron: "@yearly"}`))
		w.wantConditions(id, map[string]string{status.JobsScheduled: "True Scheduled"})
		s.take()
		for range 3 {
			if err := w.reconcile("job", id); err != nil {
				t.Fatal(err)
			}
		}
		diff(t, "writes", []string(nil), s.take())
	})
}

func TestJobsOfAStoreThatFails(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.store.failOn("svc.jobs", errors.New("down"))
	_, id := w.serve(w.withJobs(everySecond))
	w.wantConditions(id, map[string]string{status.JobsScheduled: "False StoreError", status.Ready: "False StoreError"})
	w.store.failOn("svc.jobs", nil)
	w.wantConditions(id, map[string]string{status.JobsScheduled: "True Scheduled", status.Ready: "True Serving"})
}

func TestAResumedJobIsScheduledAtOnce(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	p, id := w.serve(w.withJobs(everySecond))
	if err := w.Jobs.Suspend(t.Context(), p, "tick", operation.Actor{}); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile("job", id); err != nil {
		t.Fatal(err)
	}
	if err := w.Jobs.Resume(t.Context(), p, "tick"); err != nil {
		t.Fatal(err)
	}
	before, err := w.Jobs.Get(t.Context(), p, "tick")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ScheduleJobs(id); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if now, err := w.Jobs.Get(t.Context(), p, "tick"); err != nil || now.Claimed == before.Claimed {
			return "the job does not run"
		}
		return ""
	})
}

// TestALostRunIsTold has an instance die in a run of a job, and another one find that out.
func TestALostRunIsTold(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		runs := func(alone bool) *operation.Runs {
			rs, err := operation.New(operation.Options{Store: s, Now: time.Now, Registerer: prometheus.NewRegistry(), Alone: alone})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { rs.Close(context.WithoutCancel(t.Context())) })
			return rs
		}
		dead, finder := runs(false), runs(true)
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) {
			d.Events = system.New(s, system.Options{Now: d.Now}).Events
			var err error
			d.Jobs, err = jobs.New(jobs.Options{Store: s, Runs: finder, Runner: ran{}, Now: d.Now, Registerer: prometheus.NewRegistry()})
			if err != nil {
				t.Fatal(err)
			}
		})
		_, id := w.serve(w.withJobs(`{type: javascript, file: tick.js}`))
		want := map[string]int{"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1, "Normal Scheduled x1": 1}
		w.wantTold(id, want)
		for _, kind := range []operation.Kind{operation.Action, operation.Job} {
			_, err := dead.Start(t.Context(), operation.Spec{Database: project.DatabaseName("blog"), Kind: kind, Name: "tick"},
				func(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
					<-ctx.Done()
					return operation.Outcome{}, ctx.Err()
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // what was told is not told again
			if err := finder.Patrol(t.Context(), project.DatabaseName("blog")); err != nil {
				t.Fatal(err)
			}
		}
		want["Warning JobFailed x1"] = 1
		w.wantTold(id, want)
	})
}

// TestJobsOfAProjectThatIsGone has a project be unregistered: its jobs run no more, and their metrics go.
func TestJobsOfAProjectThatIsGone(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	_, id := w.serve(w.withJobs(`{type: javascript, file: tick.js}`))
	has := func() bool {
		families, err := w.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "svc_job_slots_skipped_total" && len(f.GetMetric()) > 0 {
				return true
			}
		}
		return false
	}
	eventually(t, func() string {
		if !has() {
			return "the job has no metrics"
		}
		return ""
	})
	if err := w.Unregister(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { // nobody else has it looked at
		if has() {
			return "the metrics of a job that is gone are left"
		}
		return ""
	})
}
