package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// Start records a run and does it in a goroutine of its own, which Close waits for. ctx is for recording it; the run has
// its values, and does not end with it. Where too many wait it fails with ErrTooMany, and with ErrExists where there is
// a run of the same id.
func (rs *Runs) Start(ctx context.Context, spec Spec, do Func) (*Run, error) {
	if err := rs.prepare(ctx, spec.Database); err != nil {
		return nil, err
	}
	if spec.ID == "" {
		spec.ID = bson.NewObjectIDFromTimestamp(rs.now()).Hex()
	}
	run := Run{
		ID: spec.ID, Kind: spec.Kind, Name: spec.Name, Subject: spec.Subject, Status: Queued, Trigger: spec.Trigger, Slot: spec.Slot.UTC(), By: spec.By,
		Instance: rs.opts.Instance, Cancellable: spec.Cancellable, CreatedAt: rs.now(),
	}
	if spec.Slot.IsZero() {
		run.Slot = time.Time{}
	}
	var err error
	if run.Input, err = packable(spec.Input, maxInput); err != nil && !errors.Is(err, errTooLarge) {
		return nil, err
	}
	l := &Live{
		runs: rs, database: spec.Database, coll: rs.runsOf(spec.Database), token: rand.Text(), timeout: spec.Timeout, notify: spec.Ended,
		run: run, changed: make(chan struct{}), stopped: make(chan struct{}), place: make(chan struct{}), began: time.Now(),
	}
	l.renewed = l.began
	if err := rs.enter(l); err != nil {
		return nil, err
	}
	if err := rs.insert(ctx, spec, l); err != nil {
		rs.leave(l)
		return nil, err
	}
	started := l.snapshot()
	go func() { // enter has counted it, and leave counts it off
		defer rs.leave(l)
		l.perform(context.WithoutCancel(ctx), do)
	}()
	return started, nil
}

// enter takes in a run that is about to be started. It runs at once if there is room, and otherwise waits.
func (rs *Runs) enter(l *Live) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return ErrStopping
	}
	if rs.live[liveKey{l.database, l.run.ID}] != nil {
		return ErrExists
	}
	p := rs.places[l.run.Kind]
	if p == nil {
		p = newPool(rs.opts.Places, rs.opts.Parallel)
		rs.places[l.run.Kind] = p
	}
	if err := p.enter(l); err != nil {
		return err
	}
	if l.placed {
		l.run.Status, l.run.StartedAt = Running, l.run.CreatedAt
	} else {
		l.tell(EventProgress, "waits for its turn: as many runs go as may at once")
	}
	rs.live[liveKey{l.database, l.run.ID}] = l
	rs.work.Add(1)
	rs.metrics.active.WithLabelValues(string(l.run.Kind)).Inc()
	return nil
}

// leave takes back what enter and the run itself took.
func (rs *Runs) leave(l *Live) {
	rs.mu.Lock()
	rs.places[l.run.Kind].leave(l)
	delete(rs.live, liveKey{l.database, l.run.ID})
	rs.mu.Unlock()
	rs.metrics.active.WithLabelValues(string(l.run.Kind)).Dec()
	rs.work.Done()
}

func (rs *Runs) insert(ctx context.Context, spec Spec, l *Live) error {
	doc, err := encode(&l.run, l.token)
	if err != nil {
		return err
	}
	op := store.Op{Kind: store.Insert, Doc: doc}
	if spec.Claim == nil {
		err = write(ctx, l.coll, op)
	} else {
		err = rs.opts.Store.Database(spec.Database).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			if err := spec.Claim(ctx, tx); err != nil {
				return err
			}
			return write(ctx, tx.Collection(collectionName), op)
		})
	}
	if _, taken := errors.AsType[*store.DuplicateKeyError](err); taken {
		return ErrExists
	}
	return err
}
