package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// tooManyPause is when a slot is tried again whose run has no room.
const tooManyPause = time.Second

// Report is what a Pass has found.
type Report struct {
	Scheduled int       // jobs that have a schedule
	Suspended int       // of them
	Next      time.Time // when the next slot is due; zero: there is none
}

// Pass starts every run of a project that is due, and says when to call again. It can be called at any time, by any
// number of instances: a second call finds nothing to do. It goes on behind a job that fails.
func (j *Jobs) Pass(ctx context.Context, p *project.Project) (Report, error) {
	var report Report
	states, err := load(ctx, j.database(p))
	if err != nil {
		return report, err
	}
	var failures []error
	for _, job := range p.Jobs {
		j.seed(ctx, p, job)
		if job.Schedule == nil {
			continue
		}
		report.Scheduled++
		s, ok := states[job.Name]
		if !ok {
			s.Name = job.Name
		}
		if s.Suspended {
			report.Suspended++
			continue
		}
		next, err := j.advance(ctx, p, job, s)
		if err != nil {
			failures = append(failures, fmt.Errorf("job %s: %w", job.Name, err))
		}
		if !next.IsZero() && (report.Next.IsZero() || next.Before(report.Next)) {
			report.Next = next
		}
	}
	return report, errors.Join(failures...)
}

// advance runs the slot of a job that is due, and gives the next one.
func (j *Jobs) advance(ctx context.Context, p *project.Project, job *project.Job, s state) (next time.Time, err error) {
	now := j.now()
	if _, known := s.Done.Base(now); !known || s.Schedule != job.Schedule.String() && !j.follows(p, job) {
		// What it would have run before, or by another schedule, is no loss.
		s.Schedule, s.Done = job.Schedule.String(), s.Done.Through(now)
		switch err := s.write(ctx, j.database(p).Collection(collectionName)); {
		case err == nil:
			j.follow(p, job)
		case !errors.Is(err, store.ErrStale):
			return time.Time{}, err
		}
		return s.Done.Next(job.Schedule, now), nil
	}
	j.follow(p, job)
	slot, missed := s.Done.Due(job.Schedule, now)
	if slot.IsZero() {
		return s.Done.Next(job.Schedule, now), nil
	}
	_, err = j.begin(ctx, p, job, Call{Trigger: operation.Schedule, Slot: slot}, operation.Actor{})
	switch {
	case errors.Is(err, operation.ErrTooMany):
		j.log.WarnContext(ctx, "a job waits for a place among the runs", "namespace", p.Namespace, "job", job.Name, "slot", slot)
		return now.Add(tooManyPause), nil
	case errors.Is(err, ErrRunning), errors.Is(err, operation.ErrExists):
		err = j.passOver(ctx, p, job, slot)
	case errors.Is(err, errDone), errors.Is(err, store.ErrStale):
		err = nil // another instance was first
	case err == nil && missed > 0:
		j.log.WarnContext(ctx, "slots of a job were missed; the newest is run", "namespace", p.Namespace, "job", job.Name, "missed", missed, "slot", slot)
	}
	if err != nil {
		return time.Time{}, err
	}
	return s.Done.Add(slot, missed, now).Next(job.Schedule, now), nil
}

// follow notes that this instance has begun with the schedule that a job has, and follows says so. Another instance may
// serve an older config, or a newer one, for as long as it likes, and write its own schedule to the state: neither begins
// anew then, or none of them would ever come to run a slot.
func (j *Jobs) follow(p *project.Project, job *project.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.followed[jobKey{p.Namespace, job.Name}] = job.Schedule.String()
}

func (j *Jobs) follows(p *project.Project, job *project.Job) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.followed[jobKey{p.Namespace, job.Name}] == job.Schedule.String()
}

// RunNow starts a run of a job, whether or not it is suspended or has a schedule. It fails with ErrRunning while one is
// active.
func (j *Jobs) RunNow(ctx context.Context, p *project.Project, name string, by operation.Actor) (*operation.Run, error) {
	job, err := find(p, name)
	if err != nil {
		return nil, err
	}
	for {
		run, err := j.begin(ctx, p, job, Call{Trigger: operation.Manual}, by)
		if !errors.Is(err, store.ErrStale) { // else somebody else was the first to write the job's state
			return run, err
		}
	}
}

// begin claims and starts a run.
func (j *Jobs) begin(ctx context.Context, p *project.Project, job *project.Job, call Call, by operation.Actor) (*operation.Run, error) {
	call.Project, call.Job = p, job
	missed := 0
	spec := operation.Spec{
		Database: j.databaseName(p), Kind: operation.Job, Name: job.Name, Trigger: call.Trigger, Slot: call.Slot, By: by,
		Cancellable: true, Timeout: job.Timeout,
		Claim: func(ctx context.Context, tx store.Tx) (err error) {
			missed, err = j.claim(ctx, tx, job, call)
			return err
		},
		Ended: func(run *operation.Run) { j.ended(p, run) },
	}
	if call.Trigger == operation.Schedule {
		spec.ID = job.Name + "-" + strconv.FormatInt(call.Slot.Unix(), 10)
	}
	run, err := j.opts.Runs.Start(ctx, spec, func(ctx context.Context, live *operation.Live) (operation.Outcome, error) {
		result, err := j.opts.Runner.RunJob(ctx, call, live)
		if err != nil {
			return operation.Outcome{}, err
		}
		return operation.Outcome{Result: result}, nil
	})
	if err == nil {
		j.metrics.passed(p.Namespace, job.Name, reasonMissed, missed)
		j.log.InfoContext(ctx, "job started", "namespace", p.Namespace, "job", job.Name, "run", run.ID, "trigger", call.Trigger)
	}
	return run, err
}

// claim takes a slot off a job's state, or notes a run by hand in it. It fails with errDone if the slot has been taken,
// and with ErrRunning if a run is active.
func (j *Jobs) claim(ctx context.Context, tx store.Tx, job *project.Job, call Call) (missed int, err error) {
	states := tx.Collection(collectionName)
	s, err := read(ctx, states, job.Name)
	if err != nil {
		return 0, err
	}
	if call.Trigger == operation.Schedule {
		if missed, err = s.take(job, call.Slot); err != nil {
			return 0, err
		}
		s.Claimed++
	}
	active, err := operation.ActiveIn(ctx, tx, operation.Query{Kind: operation.Job, Name: job.Name})
	if err != nil {
		return 0, err
	}
	if active {
		return 0, ErrRunning
	}
	s.LastRun = j.now()
	return missed, s.write(ctx, states)
}

// take takes a slot off the state, and the ones missed before it.
func (s *state) take(job *project.Job, slot time.Time) (missed int, err error) {
	due, missed := s.Done.Due(job.Schedule, slot)
	if !due.Equal(slot) || s.Suspended {
		return 0, errDone
	}
	s.Schedule = job.Schedule.String()
	s.Done = s.Done.Add(slot, missed, slot)
	s.Missed += int64(missed)
	return missed, nil
}

// passOver takes a slot off a job's state without a run, because one is active.
func (j *Jobs) passOver(ctx context.Context, p *project.Project, job *project.Job, slot time.Time) error {
	missed, taken := 0, false
	err := j.change(ctx, p, job.Name, func(s *state) bool {
		var err error
		missed, err = s.take(job, slot)
		s.Skipped++
		taken = err == nil
		return taken
	})
	if err == nil && taken {
		j.metrics.passed(p.Namespace, job.Name, reasonMissed, missed)
		j.metrics.passed(p.Namespace, job.Name, reasonOverlap, 1)
		j.log.LogAttrs(ctx, slog.LevelWarn, "a slot of a job was skipped: a run is active",
			slog.String("namespace", p.Namespace), slog.String("job", job.Name), slog.Time("slot", slot))
	}
	return err
}
