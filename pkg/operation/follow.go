package operation

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Follow tells of the events of a run whose id is above after, those that are kept and those to come, until the run has
// ended or fn fails, and gives fn's error. Events that are no longer kept are left out. Whether the run goes on does
// not depend on who follows it.
func (rs *Runs) Follow(ctx context.Context, database string, ref Ref, after int64, fn func(Event) error) error {
	if l := rs.here(database, ref); l != nil {
		return l.follow(ctx, after, fn)
	}
	run, err := rs.read(ctx, database, ref)
	if err != nil {
		return err
	}
	for {
		for _, e := range run.Events {
			if e.ID <= after {
				continue
			}
			after = e.ID
			if err := fn(e); err != nil {
				return err
			}
		}
		if !run.Status.Active() {
			return nil
		}
		if err := rs.untilNew(ctx, database, run.ID, after); err != nil {
			return err
		}
		if run, err = rs.read(ctx, database, ref); err != nil {
			return err
		}
	}
}

func (l *Live) follow(ctx context.Context, after int64, fn func(Event) error) error {
	for {
		events, over, changed := l.since(after)
		for _, e := range events {
			after = e.ID
			if err := fn(e); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return store.Ended(ctx)
		}
	}
}

// since gives the events behind one, whether that is all, and what is closed when there are more.
func (l *Live) since(after int64) (events []Event, over bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.run.Events); i > 0 && l.run.Events[i-1].ID > after; i-- {
		events = l.run.Events[i-1:]
	}
	return append([]Event(nil), events...), l.over, l.changed
}

// untilNew waits for the record of another instance's run to have events behind one, or to end.
func (rs *Runs) untilNew(ctx context.Context, database, id string, after int64) error {
	news := mql.MustCompile(bson.D{{Key: "_id", Value: id}, {Key: "$or", Value: bson.A{
		bson.D{{Key: "lastEvent", Value: bson.D{{Key: "$gt", Value: after}}}},
		bson.D{{Key: "status", Value: bson.D{{Key: "$nin", Value: bson.A{string(Queued), string(Running)}}}}},
	}}})
	there := mql.MustCompile(bson.D{{Key: "_id", Value: id}})
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return store.Ended(ctx)
		case <-ticks.C:
		}
		for _, filter := range []*mql.Filter{news, there} {
			n, err := rs.runsOf(database).Count(ctx, filter, 1)
			if err != nil {
				return err
			}
			if n == 1 && filter == news {
				return nil
			}
			if n == 0 && filter == there {
				return ErrNotFound
			}
		}
	}
}
