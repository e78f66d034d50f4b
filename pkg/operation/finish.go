package operation

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// finish gives the run its last state: first in the record, then to its followers.
func (l *Live) finish(ctx context.Context, outcome Outcome, err error) {
	result, failed := packable(outcome.Result, maxResult)
	output := bson.RawValue{}
	if failed == nil {
		output, failed = packable(outcome.Output, maxResult)
	}
	if err == nil {
		err = failed
	}
	l.mu.Lock()
	err = l.orSettled(err)
	if err == nil && l.came != nil {
		result, output, outcome.Subject, failed = unpack(l.came.Result), unpack(l.came.Output), l.came.Subject, nil
	}
	l.run.Status, l.run.Error = ending(err)
	l.run.FinishedAt = l.runs.now()
	if gave := l.run.Status == Succeeded || l.run.Status == Failed; gave && failed == nil {
		l.run.Result, l.run.Output = result, output
		if outcome.Subject != "" {
			l.run.Subject = outcome.Subject
		}
	}
	l.tellProgress()
	l.clockPhase()
	l.ended = true
	last := l.last()
	final := l.run
	final.Events, final.LastEvent = append(slices.Clip(final.Events), last), last.ID
	l.mu.Unlock()

	written := l.writeLast(ctx, &final)
	var told *Run // as others have ended it
	late := false // nobody else can give the run up: what it has come to counts, and is written as soon as that can be
	switch {
	case written == nil:
	case errors.Is(written, ErrLost):
		err, told = ErrLost, l.settled(ctx)
	case l.runs.opts.Alone && !errors.Is(written, store.ErrClosed):
		late = true
	default:
		err = ErrLost
	}
	l.mu.Lock()
	switch {
	case told != nil:
		if err = nil; told.Error != nil {
			err = errs.New(errs.Conflict, told.Error.Code, "%s", told.Error.Message)
		}
		l.run.Status, l.run.Error, l.run.FinishedAt = told.Status, told.Error, told.FinishedAt
		l.run.Result, l.run.Output, l.run.Subject = told.Result, told.Output, told.Subject
		last = l.last()
	case errors.Is(err, ErrLost):
		l.run.Status, l.run.Error = ending(ErrLost)
		l.run.Error.Message = lostText(l.run.Kind, l.run.Error)
		l.run.Result, l.run.Output = bson.RawValue{}, bson.RawValue{}
		last = l.last()
	}
	status, began, ended := l.run.Status, l.run.StartedAt, l.run.FinishedAt
	l.mu.Unlock()
	if !began.IsZero() && !ended.Before(began) {
		l.runs.metrics.took.WithLabelValues(string(l.run.Kind)).Observe(ended.Sub(began).Seconds())
	}
	l.runs.metrics.total.WithLabelValues(string(l.run.Kind), string(status)).Inc()
	if l.notify != nil {
		l.notify(l.snapshot())
	}
	l.mu.Lock()
	l.run.Events, l.run.LastEvent, l.over = append(l.run.Events, last), last.ID, true
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()

	log := l.runs.log.InfoContext
	if e := errs.From(err); e != nil && (e.Kind == errs.Internal || status == Lost) {
		log = l.runs.log.ErrorContext
	}
	said := []any{"kind", l.run.Kind, "name", l.run.Name, "run", l.run.ID, "status", status}
	if err != nil {
		said = append(said, "error", err)
	}
	log(ctx, "run ended", said...)
	if late {
		written = l.writeLate(ctx, &final)
	}
	if written != nil && !errors.Is(written, ErrLost) {
		l.runs.log.ErrorContext(ctx, "the end of a run can't be recorded: it will count as lost", "run", l.run.ID, "error", written)
	}
	if err := l.runs.keepNewest(ctx, l.database, l.run.Kind, l.run.Name); err != nil {
		l.runs.log.WarnContext(ctx, "old runs stay for now", "kind", l.run.Kind, "name", l.run.Name, "error", err)
	}
}

// ending says how a run ends that has this error.
func ending(err error) (Status, *Failure) {
	if err == nil {
		return Succeeded, nil
	}
	if open, ok := errors.AsType[*openError](err); ok && !errors.Is(err, ErrLost) { // whatever it was ended for besides
		e := errs.From(open.error)
		return Failed, &Failure{Code: e.Code, Message: cut(e.Message), Fields: e.Fields, Open: true}
	}
	for _, known := range []struct {
		cause  *errs.Error
		status Status
	}{{ErrLost, Lost}, {ErrLeft, Lost}, {ErrCancelled, Cancelled}, {ErrStopping, Cancelled}, {ErrTimeout, Failed}} {
		if errors.Is(err, known.cause) {
			return known.status, &Failure{Code: known.cause.Code, Message: known.cause.Message}
		}
	}
	e := errs.From(err)
	return Failed, &Failure{Code: e.Code, Message: cut(e.Message), Fields: e.Fields}
}

// lostText is the message of a run that was lost. Those of snapshots leave nothing half, whereas an action or a job may have come anywhere.
func lostText(kind Kind, f *Failure) string {
	switch kind {
	case Snapshot, Verify, Restore, Prune, Import, Drill, Backup:
		if f.Code == ErrLost.Code {
			return "the instance of svcd that did the run is gone, or was silent for too long: the run was given up, and leaves nothing half; start it again"
		}
	case Action, Job, Search:
	}
	return f.Message
}

// last is the event that ends the run as it stands. mu is held.
func (l *Live) last() Event {
	return lastEvent(&l.run, time.Since(l.began), l.runs.now())
}

func lastEvent(run *Run, elapsed time.Duration, at time.Time) Event {
	more := []bson.E{{Key: "status", Value: string(run.Status)}}
	if run.Error == nil {
		return newEvent(run, EventDone, elapsed, at, run.Progress.Message, more...)
	}
	more = append(more, bson.E{Key: "code", Value: run.Error.Code})
	return newEvent(run, EventError, elapsed, at, run.Error.Message, more...)
}

// writeLast writes the last state of the record. It tries for as long as nobody else gives the run up.
func (l *Live) writeLast(ctx context.Context, final *Run) error {
	values, err := lastState(final)
	if err != nil {
		return err
	}
	l.mu.Lock()
	until := l.renewed.Add(l.runs.silence())
	l.mu.Unlock()
	for {
		attempt, done := context.WithDeadline(ctx, later(until, time.Now().Add(flushEvery)))
		err = write(attempt, l.coll, l.update(values))
		done()
		if isLost(err) {
			return ErrLost
		}
		full := l.runs.opts.Alone && errors.Is(err, store.ErrFull) // that takes as long as it takes
		if err == nil || full || errors.Is(err, store.ErrClosed) || time.Now().After(until) {
			return err
		}
		time.Sleep(flushEvery / 4)
	}
}

// writeLate is writeLast for as long as it takes, such as on a full disk, until Close.
func (l *Live) writeLate(ctx context.Context, final *Run) error {
	for {
		time.Sleep(flushEvery / 4)
		closing := l.runs.closing()
		if err := l.writeLast(ctx, final); err == nil || closing || errors.Is(err, ErrLost) || errors.Is(err, store.ErrClosed) {
			return err
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
