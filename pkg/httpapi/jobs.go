package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
)

const (
	defaultTimes = 5   // of the next slots of a job
	maxTimes     = 100 // of them
)

func (s *Server) listJobs(w http.ResponseWriter, r *request) error {
	states, err := s.cfg.Jobs.List(r.Context(), r.project)
	if err != nil {
		return err
	}
	out := api.List[api.Job]{Items: make([]api.Job, 0, len(states)), Limit: len(states)}
	for _, state := range states {
		out.Items = append(out.Items, jobOut(state))
	}
	return r.json(w, http.StatusOK, out)
}

func (s *Server) getJob(w http.ResponseWriter, r *request) error {
	state, err := s.cfg.Jobs.Get(r.Context(), r.project, r.param("job"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, jobOut(state))
}

// operateJob notes in the audit log what is about to be done with the request's job, if there is such a job: what can't be
// logged doesn't happen.
func (s *Server) operateJob(r *request, op string) error {
	job := r.param("job")
	if _, err := s.cfg.Jobs.Get(r.Context(), r.project, job); err != nil {
		return err
	}
	return s.cfg.System.Operated(r.Context(), op, r.project.Namespace, access.JobScope(job), "")
}

func (s *Server) suspendJob(w http.ResponseWriter, r *request) error {
	if err := s.operateJob(r, audit.OpSuspend); err != nil {
		return err
	}
	if err := s.cfg.Jobs.Suspend(r.Context(), r.project, r.param("job"), actorOf(r)); err != nil {
		return err
	}
	return s.getJob(w, r)
}

// resumeJob ends a suspension, also that of a job which is no longer declared, as drift tells of it. All that is left of such a job
// then is its name.
func (s *Server) resumeJob(w http.ResponseWriter, r *request) error {
	left, err := s.cfg.Jobs.Left(r.Context(), r.project)
	if err != nil {
		return err
	}
	if job := r.param("job"); slices.Contains(left, job) {
		err = s.cfg.System.Operated(r.Context(), audit.OpResume, r.project.Namespace, access.JobScope(job), "")
	} else {
		left, err = nil, s.operateJob(r, audit.OpResume)
	}
	if err != nil {
		return err
	}
	if err := s.cfg.Jobs.Resume(r.Context(), r.project, r.param("job")); err != nil {
		return err
	}
	if left != nil {
		return r.json(w, http.StatusOK, api.Job{Name: r.param("job")})
	}
	if err := s.cfg.Control.ScheduleJobs(r.project.ID); err != nil {
		return err
	}
	return s.getJob(w, r)
}

func (s *Server) nextJobTimes(w http.ResponseWriter, r *request) error {
	n := int64(defaultTimes)
	asked, err := r.integer(api.ParamLimit)
	if err != nil {
		return err
	}
	if asked != nil {
		n = *asked
	}
	if n < 0 || n > maxTimes {
		return errs.New(errs.Invalid, "query_limit", "limit is %d, the highest allowed is %d", n, maxTimes)
	}
	times, err := s.cfg.Jobs.Next(r.Context(), r.project, r.param("job"), int(n))
	if err != nil {
		return err
	}
	out := api.JobTimes{Times: make([]api.Time, 0, len(times))}
	for _, at := range times {
		out.Times = append(out.Times, api.Time{Time: at})
	}
	return r.json(w, http.StatusOK, out)
}

// runJob starts a run. It answers at once, with the run's events if the caller accepts a stream, or with wait when the run
// has ended. In any case the run goes on when the caller leaves.
func (s *Server) runJob(w http.ResponseWriter, r *request) error {
	wait, err := r.boolean(api.ParamWait)
	if err != nil {
		return err
	}
	if err := s.operateJob(r, audit.OpRun); err != nil {
		return err
	}
	run, err := s.cfg.Jobs.RunNow(r.Context(), r.project, r.param("job"), actorOf(r))
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.JobRunPath(r.project.Namespace, run.Name, run.ID))
	switch {
	case r.wantsStream():
		return s.streamJobRun(w, r, run, 0)
	case wait:
		return s.awaitJobRun(w, r, run)
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}

// awaitJobRun answers when a run has ended. A run that goes on when the service stops is answered as it is then.
func (s *Server) awaitJobRun(w http.ResponseWriter, r *request, run *operation.Run) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.ending:
			cancel()
		case <-over:
		}
	}()
	err := s.cfg.Jobs.Follow(ctx, r.project, run.Name, run.ID, run.LastEvent, func(operation.Event) error { return nil })
	if err != nil && ctx.Err() == nil {
		return err
	}
	if _, err := r.again(); err != nil { // what was revoked meanwhile is not answered
		return err
	}
	run, err = s.cfg.Jobs.Run(r.Context(), r.project, run.Name, run.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if run.Status.Active() {
		status = http.StatusAccepted
	}
	return r.json(w, status, runOut(run))
}

func (s *Server) listJobRuns(w http.ResponseWriter, r *request) error {
	query, err := r.runQuery()
	if err != nil {
		return err
	}
	page, err := s.cfg.Jobs.History(r.Context(), r.project, r.param("job"), query)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runsOut(page))
}

func (s *Server) getJobRun(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Jobs.Run(r.Context(), r.project, r.param("job"), r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runOut(run))
}

func (s *Server) cancelJobRun(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Jobs.Run(r.Context(), r.project, r.param("job"), r.param("id"))
	if err != nil {
		return err
	}
	if err := s.cfg.System.Operated(r.Context(), audit.OpCancel, r.project.Namespace, access.JobScope(run.Name), run.ID); err != nil {
		return err
	}
	if err := s.cfg.Jobs.Cancel(r.Context(), r.project, run.Name, run.ID); err != nil {
		return err
	}
	run, err = s.cfg.Jobs.Run(r.Context(), r.project, r.param("job"), r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}

func (s *Server) followJobRun(w http.ResponseWriter, r *request) error {
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	run, err := s.cfg.Jobs.Run(r.Context(), r.project, r.param("job"), r.param("id"))
	if err != nil {
		return err
	}
	return s.streamJobRun(w, r, run, after)
}

func (s *Server) streamJobRun(w http.ResponseWriter, r *request, run *operation.Run, after int64) error {
	return s.streamRun(w, r, run, after, func() error { _, err := r.again(); return err }, func(ctx context.Context, after int64, fn func(operation.Event) error) error {
		return s.cfg.Jobs.Follow(ctx, r.project, run.Name, run.ID, after, fn)
	})
}

func jobOut(s jobs.State) api.Job {
	out := api.Job{
		Name: s.Job.Name, File: s.Job.Config.File, Cron: string(s.Job.Config.Cron), TimeoutMS: s.Job.Timeout.Milliseconds(),
		Suspended: s.Suspended, SuspendedAt: api.Time{Time: s.SuspendedAt}, NextRun: api.Time{Time: s.Next},
		Slots: api.JobSlots{Run: s.Claimed, Skipped: s.Skipped, Missed: s.Missed},
	}
	if s.Suspended {
		by := actorOut(s.SuspendedBy)
		out.SuspendedBy = &by
	}
	if s.Last != nil {
		last := runOut(s.Last)
		out.LastRun = &last
	}
	if len(s.Job.Config.Meta) > 0 {
		if raw, err := document.Marshal(s.Job.Config.Meta); err == nil {
			out.Meta = document.AppendJSON(nil, raw, nil)
		}
	}
	return out
}
