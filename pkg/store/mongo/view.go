package mongo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store"
)

// viewTries is how often View starts over because collections come and go while it opens.
const viewTries = 20

// view reads all collections at one time of the cluster.
type view struct {
	database    *database
	time        bson.Timestamp
	collections map[string]string  // those there were, with what tells each from others of its name
	life        context.Context    //nolint:containedctx // ends when the view or the store is closed
	end         context.CancelFunc // of life
}

// View opens a read view. The server keeps no list of the collections that there were at a time: it is right if it is
// the same before and behind that time.
func (d *database) View(ctx context.Context) (store.View, error) {
	v := &view{database: d}
	err := d.run(ctx, func(ctx context.Context) error {
		before, err := d.list(ctx)
		for range viewTries {
			if err != nil {
				return err
			}
			if v.time, err = d.now(ctx); err != nil {
				return err
			}
			if v.collections, err = d.list(ctx); err == nil && maps.Equal(before, v.collections) {
				return nil
			}
			before = v.collections
		}
		return store.ErrBusy
	})
	if err != nil {
		return nil, err
	}
	v.life, v.end = context.WithCancel(d.store.life)
	return v, nil
}

// now gives a time of the cluster that comes behind everything acknowledged so far: ctx's session has seen it, and a
// majority has what came before it.
func (d *database) now(ctx context.Context) (bson.Timestamp, error) {
	session := mongo.SessionFromContext(ctx)
	err := d.store.again(ctx, func() error { return d.db.Collection("svc.now").FindOne(ctx, bson.D{}).Err() }, isPassing)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return bson.Timestamp{}, err
	}
	if d.store.sharded { // other shards may be ahead of the one that answered
		if t, i, ok := session.ClusterTime().Lookup("$clusterTime", "clusterTime").TimestampOK(); ok {
			return bson.Timestamp{T: t, I: i}, nil
		}
	}
	if t := session.OperationTime(); t != nil {
		return *t, nil
	}
	return bson.Timestamp{}, unavailable(nil)
}

// Collection gives a handle on a collection as it was.
func (v *view) Collection(name string) store.Reader {
	c := v.database.collection(name, v.in)
	c.view = v
	return c
}

// CollectionNames lists the collections that existed.
func (v *view) CollectionNames(ctx context.Context) ([]string, error) {
	err := v.in(ctx, func(context.Context) error { return nil })
	if err != nil {
		return nil, err
	}
	return visible(v.collections), nil
}

// Position is the view's place in the feed.
func (v *view) Position() store.Position { return v.database.positionAt(v.time) }

// Close releases the view. Reads that run are ended.
func (v *view) Close() error {
	v.end()
	return nil
}

// in is the scope of reads of the view.
func (v *view) in(ctx context.Context, fn func(ctx context.Context) error) error {
	s := v.database.store
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	if v.life.Err() != nil {
		return store.ErrViewClosed
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.life, cancel)()
	session, err := s.client.StartSession(options.Session().SetSnapshot(true).SetSnapshotTime(v.time))
	if err != nil {
		return s.translate(ctx, err)
	}
	persistent, cancel := persistently(reading)
	defer cancel()
	err = fn(mongo.NewSessionContext(persistent, session))
	s.release(reading, session)
	switch {
	case err != nil && ctx.Err() == nil && s.life.Err() != nil:
		return store.ErrClosed
	case err != nil && ctx.Err() == nil && v.life.Err() != nil:
		return store.ErrViewClosed
	case hasCode(err, codeSnapshotTooOld), hasCode(err, codeSnapshotUnavailable):
		return store.ErrViewExpired.With(s.secret.clean(err))
	default:
		return s.translate(ctx, err)
	}
}

// had says whether a collection existed.
func (v *view) had(name string) bool {
	_, ok := v.collections[name]
	return ok
}

// lacks says whether one of the collections did not exist. The server has no snapshot of one that has come into being since.
func (v *view) lacks(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return !v.had(name) })
}

// stillHas fails if a collection is not what it was: the server gives nothing of one that was dropped or renamed.
func (v *view) stillHas(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return v.database.store.inSession(ctx, func(ctx context.Context) error {
		now, err := v.database.list(ctx)
		for _, name := range names {
			if err == nil && now[name] != v.collections[name] {
				return store.ErrViewExpired
			}
		}
		return err
	})
}
