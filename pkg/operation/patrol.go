package operation

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Run looks after the runs of databases until ctx ends: it gives up those whose instance is gone, and lets go of old
// ones.
func (rs *Runs) Run(ctx context.Context, databases func(ctx context.Context) ([]string, error)) {
	defer rs.heirWork.Wait()
	for {
		names, err := databases(ctx)
		for _, name := range names {
			err = errors.Join(err, rs.Patrol(ctx, name))
		}
		if err != nil && ctx.Err() == nil {
			rs.log.WarnContext(ctx, "runs can't be looked after now; it is tried again", "error", err)
		}
		pause := time.NewTimer(rs.pause())
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// pause is how long there is nothing to look after. What others do is looked at often, and what they begin is seen soon.
func (rs *Runs) pause() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rs.opts.Alone:
		return rs.opts.Beat
	case len(rs.seen) > 0:
		return rs.opts.Beat / looksABeat
	default:
		return rs.opts.Beat / 2
	}
}

// Patrol looks once at a database. A run of another instance is given up by a Patrol that finds its record as it was three
// beats before.
func (rs *Runs) Patrol(ctx context.Context, database string) error {
	var silent []*record
	found := map[liveKey]bool{}
	q := store.Query{Filter: active(), Project: mql.MustCompileProjection(bson.D{{Key: "events", Value: int64(0)}, {Key: "input", Value: int64(0)}})}
	asked := time.Now()
	err := rs.runsOf(database).Find(ctx, q, func(doc bson.Raw) error {
		r, err := decode(bytes.Clone(doc))
		if err != nil {
			return err
		}
		key := liveKey{database, r.ID}
		found[key] = true
		if rs.isSilent(key, r, asked) {
			silent = append(silent, r)
		}
		return nil
	})
	if err != nil {
		rs.forget(database, nil) // nor could others show that they are alive: their time begins anew
		return err
	}
	rs.forget(database, found)
	for _, r := range silent {
		rs.ask(ctx, database, r)
	}
	patience, done := context.WithTimeout(ctx, rs.silence())
	defer done()
	for _, r := range silent {
		err = errors.Join(err, rs.giveUp(ctx, patience, database, r))
	}
	return errors.Join(err, rs.dropOld(ctx, database))
}

// isSilent says that a run of another instance has not been heard of for too long. Its age is taken from when its state
// was here to when it was asked for again: too young rather than too old.
func (rs *Runs) isSilent(key liveKey, r *record, asked time.Time) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if l := rs.live[key]; l != nil && l.token == r.Token {
		return false
	}
	if rs.opts.Alone {
		return true
	}
	before, ok := rs.seen[key]
	if !ok || before.beat != r.Beat || before.token != r.Token {
		rs.seen[key] = sighting{beat: r.Beat, token: r.Token, since: time.Now()}
		return false
	}
	return asked.Sub(before.since) >= rs.silence()
}

// forget lets go of sightings of runs that have ended.
func (rs *Runs) forget(database string, found map[liveKey]bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	gone := func(key liveKey) bool { return key.database == database && !found[key] }
	maps.DeleteFunc(rs.seen, func(key liveKey, _ sighting) bool { return gone(key) })
	if found != nil { // else the database could not be asked
		maps.DeleteFunc(rs.left, func(key liveKey, _ time.Time) bool { return gone(key) })
		maps.DeleteFunc(rs.asked, func(key liveKey, _ *asking) bool { return gone(key) })
	}
}

// giveUp says in the record of a run that it is lost, unless the run has been heard of meanwhile, has come to its end before its instance was gone, or has left
// what others end.
func (rs *Runs) giveUp(ctx, patience context.Context, database string, r *record) error {
	how, failed := decided{}, error(nil)
	if r.Decided != nil {
		how = *r.Decided
	} else {
		wait, as := rs.waits(ctx, patience, database, r)
		if wait {
			return nil
		}
		failed = as
	}
	run, err := rs.settle(ctx, database, r.ID, r, how, failed)
	if err != nil || run == nil || run.Status != Lost {
		if isLost(err) { // it lives, or another instance was first
			return nil
		}
		return err
	}
	rs.mu.Lock()
	tell := rs.onLost
	rs.mu.Unlock()
	if tell != nil {
		tell(ctx, database, run)
	}
	return nil
}

// keepNewest lets go of the oldest runs of an action or job.
func (rs *Runs) keepNewest(ctx context.Context, database string, kind Kind, name string) error {
	q := store.Query{
		Filter: mql.MustCompile(bson.D{{Key: "kind", Value: string(kind)}, {Key: "name", Value: name}}),
		Sort:   mql.Sort{{Path: "createdAt", Desc: true}, {Path: "_id", Desc: true}}, Skip: keepRuns,
	}
	return rs.drop(ctx, database, q)
}

// dropOld lets go of runs that are too old, once in a while.
func (rs *Runs) dropOld(ctx context.Context, database string) error {
	rs.mu.Lock()
	last, ok := rs.pruned[database]
	due := !ok || time.Since(last) >= pruneEvery
	rs.mu.Unlock()
	if !due {
		return nil
	}
	old := bson.D{{Key: "createdAt", Value: bson.D{{Key: "$lt", Value: bson.NewDateTimeFromTime(rs.now().Add(-keepAge))}}}}
	if err := rs.drop(ctx, database, store.Query{Filter: mql.MustCompile(old)}); err != nil {
		return err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.pruned[database] = time.Now()
	return nil
}

// drop deletes what a query finds and has ended.
func (rs *Runs) drop(ctx context.Context, database string, q store.Query) error {
	var ops []store.Op
	q.Project = mql.MustCompileProjection(bson.D{{Key: "status", Value: int64(1)}})
	err := rs.runsOf(database).Find(ctx, q, func(doc bson.Raw) error {
		if status, _ := doc.Lookup("status").StringValueOK(); Status(status).Active() {
			return nil
		}
		id, _ := doc.Lookup("_id").StringValueOK()
		ops = append(ops, store.Op{Kind: store.Delete, ID: stringID(id)})
		return nil
	})
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = rs.runsOf(database).Write(ctx, ops, false)
	return err
}
