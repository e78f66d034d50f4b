package tui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// giveJobs answers what is asked of jobs.
func (s *service) giveJobs(mux *http.ServeMux, give func(pattern string, fn func(r *http.Request) any)) {
	const at = " /_/{p}/_/jobs"
	give("GET"+at, func(*http.Request) any { return api.List[api.Job]{Items: s.jobs} })
	give("GET"+at+"/{j}/next", func(*http.Request) any { return api.JobTimes{Times: []api.Time{ago(-time.Hour), ago(-25 * time.Hour)}} })
	give("GET"+at+"/{j}/runs", func(*http.Request) any {
		list := api.List[api.Run]{Items: append([]api.Run(nil), s.jobRuns...)}
		for i := range list.Items {
			list.Items[i].Events = nil
		}
		return list
	})
	give("GET"+at+"/{j}/runs/{id}", func(r *http.Request) any {
		for _, run := range s.jobRuns {
			if run.ID == r.PathValue("id") {
				return run
			}
		}
		return api.Run{}
	})
	give("DELETE"+at+"/{j}/runs/{id}", func(*http.Request) any { return s.jobRuns[0] })
	give("POST"+at+"/{j}/run", func(r *http.Request) any {
		run := api.Run{ID: "cleanup-1777604499", Kind: "job", Name: r.PathValue("j"), Status: api.RunRunning, Trigger: "manual", CreatedAt: ago(0), StartedAt: ago(0), By: api.Actor{Kind: "user", Name: "ann"}}
		s.jobRuns = append([]api.Run{run}, s.jobRuns...)
		s.jobs[0].LastRun = &run
		return run
	})
	give("POST"+at+"/{j}/suspend", func(*http.Request) any { s.jobs[0].Suspended = true; return s.jobs[0] })
	give("POST"+at+"/{j}/resume", func(*http.Request) any { s.jobs[0].Suspended = false; return s.jobs[0] })
	mux.HandleFunc("GET "+api.Prefix+"/_/{p}/_/jobs/{j}/runs/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		events := s.job
		s.mu.Unlock()
		stream(w, r, events, func(e api.RunEvent) (string, any) { return e.Event, e.Data })
	})
}

func sampleJobRuns() []api.Run {
	run := func(id, status string, age time.Duration) api.Run {
		return api.Run{
			ID: id, Kind: "job", Name: "cleanup", Status: status, Trigger: "schedule", Slot: ago(age), By: api.Actor{Kind: "service"}, Instance: "host:1",
			CreatedAt: ago(age), StartedAt: ago(age), FinishedAt: ago(age - 1500*time.Millisecond),
			Events: []api.RunEvent{
				{ID: 1, Event: api.EventLog, Data: api.RunEventData{Level: "info", Message: "begun", ElapsedSeconds: 0.01}},
				{ID: 2, Event: api.EventProgress, Data: api.RunEventData{Phase: "remove", Done: 3, Total: 4, Message: "orders", ElapsedSeconds: 0.5}},
			},
		}
	}
	failed := run("cleanup-1777604400", api.RunFailed, 2*time.Minute)
	failed.Error = &api.RunError{Code: "script_error", Message: "the register could not be reached"}
	failed.Events = append(failed.Events, api.RunEvent{ID: 3, Event: api.EventLog, Data: api.RunEventData{Level: "error", Message: "no answer", ElapsedSeconds: 1.2}},
		api.RunEvent{ID: 4, Event: api.EventError, Data: api.RunEventData{Status: api.RunFailed, Message: "the register could not be reached", ElapsedSeconds: 1.5}})
	return []api.Run{failed, run("cleanup-1777518000", api.RunSucceeded, 26*time.Hour)}
}

func sampleJobs() []api.Job {
	last := sampleJobRuns()[0]
	last.Events = nil
	return []api.Job{
		{Name: "cleanup", File: "jobs/cleanup.js", Cron: "0 3 * * *", TimeoutMS: 60_000, NextRun: ago(-3 * time.Hour), LastRun: &last, Slots: api.JobSlots{Run: 12, Skipped: 1, Missed: 2}},
		{Name: "report", File: "jobs/report.js", Cron: "@weekly", Suspended: true, SuspendedBy: &api.Actor{Kind: "user", Name: "ann"}, SuspendedAt: ago(time.Hour)},
		{Name: "import", File: "jobs/import.js"},
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(140, 40)
		term.Press("5")
		term.shows(t, "Projects › blog › Jobs\n", "NEXT", "▸ cleanup", "in 3h", "2m", "failed", "1.5s", "0 3 * * *", "the register could not be reached", "report", "suspended", "never", "import", "by hand")
		term.Press("d")
		term.shows(t, "Job cleanup", "Timeout", "1m0s", "12 run, 1 skipped since a run went on, 2 missed", "Due", "in 60m", "2000-01-01T01:00:00Z")
		term.Press("y")
		term.shows(t, "name: cleanup\n")
		term.Press("esc", "s")
		term.shows(t, "Suspend cleanup? Its schedule does not run it until it is resumed; x still does. (y/n)")
		term.Press("y")
		term.shows(t, "▸ cleanup", "suspended", "cleanup is suspended", "s resume")
		term.Press("s", "y", "x")
		term.shows(t, "Run cleanup of blog now? (y/n)")
		term.Press("n", "x", "y")
		term.shows(t, "running", "cleanup runs: cleanup-1777604499", "x cancel the run")
		term.Press("x")
		term.shows(t, "Cancel the run of cleanup, cleanup-1777604499? What it has done stays.")
		term.Press("y")
		want := strings.Join([]string{
			"POST /_/blog/_/jobs/cleanup/suspend", "POST /_/blog/_/jobs/cleanup/resume", "POST /_/blog/_/jobs/cleanup/run", "DELETE /_/blog/_/jobs/cleanup/runs/cleanup-1777604499",
		}, "\n")
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
	})
}

func TestJobRuns(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 30)
		term.Press("5", "enter")
		term.shows(t, "Jobs › cleanup\n", "▸    2m  failed", "schedule", "Log of cleanup-1777604400  failed", "0.010s  info      begun", "remove 3 of 4 orders", "1.200s  error     no answer", "failed    the register")
		term.Press("down")
		term.shows(t, "▸   26h  succeeded", "Log of cleanup-1777518000  succeeded")
		term.hides(t, "no answer")
		term.Press("enter")
		term.shows(t, "Run cleanup-1777518000", "Instance  host:1", "Log", "0.010s  info      begun")
		term.Press("esc", "up", "x", "y") // which the cursor goes to, as the newest one
		term.shows(t, "▸    0s  running", "Log of cleanup-1777604499  running", "nothing yet")
		term.job <- api.RunEvent{Event: api.EventLog, Data: api.RunEventData{Level: "info", Message: "row 1", ElapsedSeconds: 0.25}}
		term.Settle()
		term.shows(t, "0.250s  info      row 1")
		close(term.job) // the stream breaks, and is opened again
		term.Settle()
		term.change(func() { term.service.job = make(chan api.RunEvent, 2) })
		term.service.job <- api.RunEvent{} // told already
		term.service.job <- api.RunEvent{Event: api.EventLog, Data: api.RunEventData{Level: "info", Message: "row 2", ElapsedSeconds: 3}}
		term.Wait(10 * time.Second)
		term.shows(t, "row 1", "row 2", "cancel the run")
		term.change(func() {
			term.jobRuns[0].Status, term.jobRuns[0].FinishedAt = api.RunSucceeded, ago(-10*time.Second)
		})
		term.service.job <- api.RunEvent{Event: api.EventDone, Data: api.RunEventData{Status: api.RunSucceeded, ElapsedSeconds: 10}}
		term.Wait(2 * time.Second)
		term.shows(t, "succeeded   10s", "Log of cleanup-1777604499  succeeded", "row 2", "10.000s  succeeded", "x run now")
	})
}

func TestJobsOfReaders(t *testing.T) {
	t.Parallel()
	s := sample()
	s.me = &api.Me{Kind: "user", Username: "ben", Scopes: []string{"project.read"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("5")
		term.hides(t, "x run", "s suspend")
		term.Press("x")
		term.shows(t, "you lack the right project.reload")
		term.Press("s")
		term.shows(t, "you lack the right project.reload")
		term.Press("?")
		term.shows(t, "run, when you have the right project.reload", "suspend, when you have the right project.reload")
		if got := term.requests(); got != "" {
			t.Errorf("it asks %s", got)
		}
	})
}
