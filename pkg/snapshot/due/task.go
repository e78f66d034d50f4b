package due

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
)

// Pauses before it is looked again whether a run can begin.
const (
	tooManyPause = time.Second      // as many wait as may
	busyPause    = 10 * time.Second // something else goes on with the project's snapshots, such as what somebody has asked for
)

// waits says that a run can't begin now, which is no failure, and when to look again.
func waits(err error, now time.Time) (again time.Time, ok bool) {
	switch {
	case errors.Is(err, operation.ErrTooMany):
		return now.Add(tooManyPause), true
	case errors.Is(err, snapshot.ErrBusy):
		return now.Add(busyPause), true
	}
	return time.Time{}, false
}

// step is one look at a task.
type step struct {
	d     *Due
	p     *project.Project
	task  *task
	state *state
	now   time.Time

	due     time.Time // when there is something to be begun, which may be in the past; zero: never
	slot    time.Time // that is meant; zero: that of the state's attempt, once more
	missed  int       // slots before it
	running bool
}

// look takes in how the last run has ended, and finds out what is next.
func (x *step) look(ctx context.Context) error {
	s, sched := x.state, x.task.schedule
	if s.isRunning() {
		if err := x.d.follow(ctx, x.p, s); err != nil {
			return err
		}
		x.running = s.isRunning()
	}
	text := sched.String()
	if _, known := s.Done.Base(x.now); !known || s.Schedule != text && !x.d.follows(x.p, x.task) {
		// What it would have done before, or by another schedule, is no loss.
		s.Schedule, s.Done = text, s.Done.Through(x.now)
		if err := x.write(ctx); err != nil {
			return err
		}
	}
	x.d.following(x.p, x.task)
	slot, missed := s.Done.Due(sched, x.now)
	switch {
	case !slot.IsZero() && x.running:
		s.Done = s.Done.Add(slot, missed, x.now)
		if err := x.write(ctx); err != nil {
			return err
		}
		x.d.log.WarnContext(ctx, "a slot of snapshots was passed over: the one before goes on", "namespace", x.p.Namespace, "task", s.Name, "slot", slot)
		x.due = s.Done.Next(sched, x.now)
	case !slot.IsZero():
		x.due, x.slot, x.missed = slot, slot, missed
	case s.Open != nil && !x.running && !s.Open.isFinding():
		x.due = s.Open.again(x.now)
		if next := s.Done.Next(sched, x.now); !next.IsZero() && next.Before(x.due) { // which takes its place
			x.due = next
		}
	default:
		x.due = s.Done.Next(sched, x.now)
	}
	return nil
}

// write writes the state. That another instance has written one meanwhile is no error: the next look sees it.
func (x *step) write(ctx context.Context) error {
	err := x.state.write(ctx, x.d.database(x.p).Collection(collectionName))
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// follow takes in how the run of a task stands.
func (d *Due) follow(ctx context.Context, p *project.Project, s *state) error {
	run, err := d.opts.Runs.Get(ctx, p, s.Open.Run)
	if errors.Is(err, operation.ErrNotFound) {
		run, err = nil, nil
	}
	if err != nil || !s.ended(run, d.now()) {
		return err
	}
	if run == nil || run.Status != operation.Succeeded { // it may have left something
		d.mu.Lock()
		delete(d.swept, p.Namespace)
		d.mu.Unlock()
	}
	err = s.write(ctx, d.database(p).Collection(collectionName))
	if errors.Is(err, store.ErrStale) { // another instance has seen it, too
		return nil
	}
	return err
}

// begin claims what is due and starts its run, unless another instance has been faster.
func (x *step) begin(ctx context.Context) (started bool, err error) {
	next := *x.state
	open := attempt{Slot: x.slot, Tries: 1}
	if before := next.Open; before != nil {
		if x.slot.IsZero() {
			open.Slot, open.Tries = before.Slot, before.Tries+1
		}
		open.Code, open.Why = before.Code, before.Why
	}
	if !x.slot.IsZero() {
		next.Schedule, next.Done = x.task.schedule.String(), next.Done.Add(x.slot, x.missed, x.now)
	}
	next.Open = &open
	order := runs.Start{Kind: x.task.kind, Profile: x.task.profile.Name, Slot: open.Slot}
	if check := x.task.profile.Config.Verify; x.task.kind == operation.Verify && check != nil {
		order.Newest = check.Snapshots == "newest"
		if check.Sample < 1 {
			order.Sample = check.Sample
		}
	}
	started, err = x.d.start(ctx, x.p, &next, order)
	if again, ok := waits(err, x.now); ok {
		x.due = again
		return false, nil
	}
	if err != nil || !started {
		return false, err
	}
	*x.state, x.running = next, true
	if x.missed > 0 {
		x.d.log.WarnContext(ctx, "slots of snapshots were missed; the newest is made up for",
			"namespace", x.p.Namespace, "task", next.Name, "missed", x.missed, "slot", open.Slot)
	}
	x.due = next.Done.Next(x.task.schedule, x.now)
	return true, nil
}

// start starts a run, with the state that claims it.
func (d *Due) start(ctx context.Context, p *project.Project, s *state, order runs.Start) (started bool, err error) {
	order.Trigger = operation.Schedule
	order.ID = bson.NewObjectIDFromTimestamp(d.now()).Hex()
	s.Open.Run = order.ID
	claimed := *s
	order.Claim = func(ctx context.Context, tx store.Tx) error {
		claimed = *s // it may run several times
		return claimed.write(ctx, tx.Collection(collectionName))
	}
	order.Ended = func(*operation.Run) {
		d.mu.Lock()
		tell := d.onEnded
		d.mu.Unlock()
		if tell != nil {
			tell(p.ID)
		}
	}
	run, err := d.opts.Runs.Start(ctx, p, order)
	if errors.Is(err, store.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*s = claimed
	d.log.InfoContext(ctx, "begun by schedule", "namespace", p.Namespace, "task", s.Name, "run", run.ID, "slot", order.Slot, "try", s.Open.Tries)
	return true, nil
}

// following notes that this instance has begun with the schedule that a task has, and follows says so. Another instance may serve an older
// config, or a newer one, for as long as it likes, and write its own schedule to the state: neither begins anew then, or none of them would
// ever come to a slot.
func (d *Due) following(p *project.Project, t *task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followed[taskKey{p.Namespace, t.name()}] = t.schedule.String()
}

func (d *Due) follows(p *project.Project, t *task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.followed[taskKey{p.Namespace, t.name()}] == t.schedule.String()
}

func (d *Due) unfollow(p *project.Project, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.followed, taskKey{p.Namespace, name})
}
