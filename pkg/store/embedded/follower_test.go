package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// The follower is a consumer of the feed, as a search index is: it keeps the version of every document of the workload in
// a collection of its own, and saves its position in the transaction that holds the effects of the events up to it. So
// after any crash it can go on, and ends up with what the store has.
const (
	mirror        = "mirror"
	followerName  = "follower"
	followerBatch = 8 // events in one transaction
)

// follower is one run of the consumer.
type follower struct {
	db      store.Database
	ops     []store.Op // of the events since the last save
	last    store.Position
	resyncs int
}

func mirrorID(coll string, id bson.RawValue) string { return fmt.Sprint(coll, "/", id.AsInt64()) }

// follow takes in events until ctx ends, or if once is set until there are none left.
func (f *follower) follow(ctx context.Context, once bool) error {
	after, err := store.LoadPosition(ctx, f.db, followerName)
	if err != nil {
		return err
	}
	if after == nil {
		if err := f.resync(ctx); err != nil {
			return err
		}
		return f.follow(ctx, once)
	}
	caughtUp := errors.New("caught up")
	err = f.db.Watch(ctx, store.Watch{
		After: after, Documents: true,
		OnIdle: func(p store.Position) error {
			f.last = p
			if err := f.save(ctx); err != nil || !once {
				return err
			}
			return caughtUp
		},
	}, func(e store.Event) error { return f.take(ctx, e) })
	switch {
	case errors.Is(err, caughtUp):
		return nil
	case errors.Is(err, store.ErrHistoryLost):
		f.ops = nil
		if err := f.resync(ctx); err != nil {
			return err
		}
		return f.follow(ctx, once)
	default:
		return err
	}
}

// take notes what an event changes.
func (f *follower) take(ctx context.Context, e store.Event) error {
	f.last = e.Position
	if !isOurs(e.Collection) {
		return nil
	}
	switch e.Kind {
	case store.Inserted, store.Updated, store.Deleted:
		f.ops = append(f.ops, mirrorOp(e.Collection, e.ID, e.Doc))
	case store.Dropped:
		f.ops = append(f.ops, forget(e.Collection))
	case store.Renamed:
		// The documents of events before this one could not be had by the old name any more.
		f.ops = append(f.ops, forget(e.Collection), forget(e.To))
		err := f.db.Collection(e.To).Find(ctx, store.Query{}, func(doc bson.Raw) error {
			f.ops = append(f.ops, mirrorOp(e.To, doc.Lookup("_id"), doc))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(f.ops) < followerBatch {
		return nil
	}
	return f.save(ctx)
}

func mirrorOp(coll string, id bson.RawValue, doc bson.Raw) store.Op {
	name := mirrorID(coll, id)
	filter := mql.MustCompile(bson.D{{Key: "_id", Value: name}})
	if doc == nil {
		return store.Op{Kind: store.Delete, Filter: filter}
	}
	entry, err := bson.Marshal(bson.D{{Key: "_id", Value: name}, {Key: "coll", Value: coll}, {Key: "v", Value: doc.Lookup("v")}})
	if err != nil {
		panic(err)
	}
	return store.Op{Kind: store.Replace, Filter: filter, Doc: entry, Upsert: true}
}

func forget(coll string) store.Op {
	return store.Op{Kind: store.Delete, Many: true, Filter: mql.MustCompile(bson.D{{Key: "coll", Value: coll}})}
}

// save writes the effects of the events so far, and the position behind them.
func (f *follower) save(ctx context.Context) error {
	err := f.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		results, err := tx.Collection(mirror).Write(ctx, f.ops, false)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
		return store.SavePosition(ctx, tx, followerName, f.last)
	})
	f.ops = nil
	return err
}

// resync reads everything anew.
func (f *follower) resync(ctx context.Context) error {
	f.resyncs++
	view, err := f.db.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	f.ops = []store.Op{{Kind: store.Delete, Many: true, Filter: mql.MustCompile(bson.D{})}}
	names, err := view.CollectionNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isOurs(name) {
			continue
		}
		err := view.Collection(name).Find(ctx, store.Query{}, func(doc bson.Raw) error {
			f.ops = append(f.ops, mirrorOp(name, doc.Lookup("_id"), doc))
			return nil
		})
		if err != nil {
			return err
		}
	}
	f.last = view.Position()
	return f.save(ctx)
}

// wantFollowed lets the follower catch up, and checks that it has what the store has.
func wantFollowed(t *testing.T, db store.Database, have state) {
	t.Helper()
	f := follower{db: db}
	if err := f.follow(t.Context(), true); err != nil {
		t.Errorf("follow: %v", err)
	}
	want, found := map[string]int64{}, map[string]int64{}
	for k, v := range have {
		want[fmt.Sprint(k.coll, "/", k.id)] = max(v, -v)
	}
	err := db.Collection(mirror).Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		found[doc.Lookup("_id").StringValue()] = doc.Lookup("v").AsInt64()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if !maps.Equal(want, found) {
		missing, extra := maps.Clone(want), maps.Clone(found)
		maps.DeleteFunc(missing, func(k string, v int64) bool { return found[k] == v })
		maps.DeleteFunc(extra, func(k string, v int64) bool { return want[k] == v })
		t.Errorf("the follower lacks %v, and has %v instead", missing, extra)
	}
}
