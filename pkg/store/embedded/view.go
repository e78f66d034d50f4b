package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// moment is all collections of a database at one point in time.
type moment struct {
	s        *Store
	number   uint64 // of the last commit in it
	snap     *pebble.Snapshot
	members  *members
	position store.Position
}

// moment gives the database as it is now. The caller closes its snapshot.
func (s *Store) moment(database string) *moment {
	// Under the mutex the catalog, the feed and the documents stand still.
	s.commit.Lock()
	defer s.commit.Unlock()
	return &moment{
		s: s, number: s.applied.Load(), snap: s.db.NewSnapshot(), members: s.cat.members(database), position: s.position(database),
	}
}

// state gives a collection as it was. The caller does not close it.
func (m *moment) state(name string) *state {
	if c := m.members.get(name); c.coll != nil {
		return &state{s: m.s, coll: c.coll, indexes: c.indexes, snap: m.snap}
	}
	return &state{s: m.s, indexes: noIndexes}
}

// noteSynced notes that commits up to number are on disk: they are in the log in that order.
func (s *Store) noteSynced(number uint64) {
	for {
		old := s.synced.Load()
		if old >= number || s.synced.CompareAndSwap(old, number) {
			return
		}
	}
}

// sync returns when commits up to number are on disk.
func (s *Store) sync(number uint64) error {
	if s.synced.Load() >= number {
		return nil
	}
	if err := guarded("sync", func() error { return s.db.LogData(nil, pebble.Sync) }); err != nil {
		return s.broken(err)
	}
	if s.failed.Load() != nil {
		return errFailed.With(*s.failed.Load())
	}
	s.noteSynced(number)
	return nil
}

// View opens a read view. What it shows is on disk before it is given out: what was read from it (an export, a search
// index) is never ahead of what the store has after a crash.
func (d database) View(ctx context.Context) (store.View, error) {
	done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	m := d.s.moment(d.name)
	v := &view{s: d.s, m: m, opened: d.s.opts.Now()}
	if err := d.s.sync(m.number); err != nil {
		return nil, errors.Join(err, v.end(err))
	}
	d.s.state.Lock()
	defer d.s.state.Unlock()
	if d.s.state.closed {
		return nil, errors.Join(store.ErrClosed, v.end(store.ErrClosed))
	}
	d.s.state.views[v] = struct{}{}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.timer = time.AfterFunc(d.s.limits.view, func() {
		_ = v.end(store.ErrViewExpired) // an error of a snapshot's end has nobody to go to
		v.forget()
	})
	return v, nil
}

// view is a moment that is given out. It holds its snapshot until it is ended and nobody reads any more.
type view struct {
	s      *Store
	m      *moment
	opened time.Time

	mu      sync.Mutex
	timer   *time.Timer // nil until the view is given out
	ended   error       // why it is no longer read; nil while it is
	readers int
}

// begin registers a read; done ends it.
func (v *view) begin(ctx context.Context) (done func(), err error) {
	running, err := v.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended == nil && v.s.opts.Now().Sub(v.opened) > v.s.limits.view {
		err = store.ErrViewExpired // its timer is by another clock, and may be late
	}
	if err = errors.Join(v.ended, err); err != nil {
		running()
		return nil, err
	}
	v.readers++
	return func() {
		v.mu.Lock()
		v.readers--
		_ = v.freeLocked() // an error of a snapshot's end has nobody to go to
		v.mu.Unlock()
		running()
	}, nil
}

// end makes later reads fail with why, and frees the snapshot as soon as nobody reads.
func (v *view) end(why error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended != nil {
		return nil
	}
	v.ended = why
	if v.timer != nil {
		v.timer.Stop() // it would hold all of a closed store
	}
	return v.freeLocked()
}

func (v *view) freeLocked() error {
	if v.ended == nil || v.readers > 0 || v.m.snap == nil {
		return nil
	}
	snap := v.m.snap
	v.m.snap = nil
	return internal(snap.Close(), "close a snapshot")
}

// Close releases the view.
func (v *view) Close() error {
	v.forget()
	return v.end(store.ErrViewClosed)
}

func (v *view) forget() {
	v.s.state.Lock()
	defer v.s.state.Unlock()
	delete(v.s.state.views, v)
}

// Position is the view's place in the feed.
func (v *view) Position() store.Position { return v.m.position }

// CollectionNames lists the collections that existed.
func (v *view) CollectionNames(ctx context.Context) ([]string, error) {
	done, err := v.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return v.m.members.names(), nil
}

// Collection gives a handle on a collection as it was.
func (v *view) Collection(name string) store.Reader {
	return viewCollection{v: v, name: name, st: v.m.state(name)}
}

// viewCollection is a collection in a view.
type viewCollection struct {
	v    *view
	name string
	st   *state
}

func (c viewCollection) begin(ctx context.Context) (done func(), err error) {
	if err := store.CheckCollectionName(c.name); err != nil {
		return nil, err
	}
	return c.v.begin(ctx)
}

func (c viewCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return c.st.get(id)
}

func (c viewCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = c.st.find(ctx, q, fn)
	return err
}

func (c viewCollection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	n, _, err := c.st.count(ctx, filter, limit)
	return n, err
}

func (c viewCollection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return c.st.distinct(ctx, path, filter)
}

func (c viewCollection) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return store.Explanation{}, err
	}
	defer done()
	return c.st.find(ctx, q, func(bson.Raw) error { return nil })
}
