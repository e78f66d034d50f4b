package operation

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// keep writes what the record lacks, shows that the run is alive, and looks for the wish to cancel it.
func (l *Live) keep(ctx context.Context) {
	silence := l.runs.silence()
	ticks := time.NewTicker(min(flushEvery, l.runs.opts.Beat/2))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		l.mu.Lock()
		now := time.Now()
		if now.Sub(l.told) >= progressEvery {
			l.tellProgress()
		}
		due := l.dirty || now.Sub(l.renewed) >= l.runs.opts.Beat
		silent := !l.runs.opts.Alone && now.Sub(l.renewed) >= silence && now.After(l.spanBusy.Add(silence))
		l.mu.Unlock()
		if silent { // others may have given it up
			l.stop(ErrLost)
		}
		wish, err := l.look(ctx, due)
		switch {
		case isLost(err):
			l.stop(ErrLost)
			return
		case err != nil && ctx.Err() == nil:
			l.runs.log.WarnContext(ctx, "the record of a run can't be written; it is tried again", "run", l.run.ID, "error", err)
		case wish:
			l.mu.Lock()
			l.run.CancelRequested = true
			l.mu.Unlock()
			l.stop(ErrCancelled)
		}
	}
}

// look reads whether somebody wants the run cancelled, and writes the record before if that is due.
func (l *Live) look(ctx context.Context, due bool) (cancel bool, err error) {
	attempt, done := context.WithTimeout(ctx, l.runs.silence())
	defer done()
	if !due {
		return cancelWanted(attempt, l.coll, l.run.ID, l.token)
	}
	l.mu.Lock()
	values, at := bson.D(nil), time.Now()
	if l.dirty {
		values = state(&l.run)
	}
	l.dirty = false
	l.mu.Unlock()
	op := l.update(values)
	op.Return, op.Project = store.ReturnAfter, cancelOnly()
	results, err := l.coll.Write(attempt, []store.Op{op}, false)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		l.mu.Lock()
		l.dirty = l.dirty || values != nil
		l.mu.Unlock()
		return false, err
	}
	l.mu.Lock()
	l.renewed = at
	l.mu.Unlock()
	return wanted(results[0].Doc), nil
}
