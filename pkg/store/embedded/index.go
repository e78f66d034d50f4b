package embedded

import (
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// Indexes lists the indexes that are ready, by name.
func (c *Collection) Indexes(ctx context.Context) ([]store.Index, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out := []store.Index{}
	for _, x := range c.currentIndexes().ready {
		def := x.def
		def.Keys = slices.Clone(def.Keys)
		out = append(out, def)
	}
	return out, nil
}

// CreateIndex builds an index while reads and writes go on, or joins a build of the same one. If ctx ends and nobody
// else waits for the build, it is removed. An end of the process lets it go on when the store is opened again.
func (c *Collection) CreateIndex(ctx context.Context, def store.Index) error {
	done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := def.Check(); err != nil {
		return err
	}
	b, err := c.joinBuild(def, c.s.disk.check())
	if err != nil || b == nil {
		return err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return b.leave(ctx)
	}
}

// joinBuild adds the caller to those who wait for the build of an index, which it marks and starts if there is none. It
// gives nil if an equal index is ready. full is why nothing new can be written, if that is so.
func (c *Collection) joinBuild(def store.Index, full error) (*build, error) {
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll := c.s.cat.get(c.name)
	if coll != nil {
		if old := coll.indexes.Load().find(def.Name); old != nil {
			if !old.def.Equal(def) {
				return nil, store.ErrIndexExists
			}
			if old.build != nil {
				old.build.waiters++
			}
			return old.build, nil
		}
		if len(coll.indexes.Load().all) >= store.MaxIndexes {
			return nil, errIndexes
		}
	}
	if full != nil {
		return nil, full
	}
	coll, x, err := c.s.markIndex(c.name, coll, def)
	if err != nil {
		return nil, err
	}
	b := newBuild(c.s, coll, x)
	b.waiters = 1
	b.start()
	return b, nil
}

// markIndex adds an index that is not ready, and the collection if there is none: from then on, writers keep the index
// up to date and, if it is unique, to it. The caller holds the commit mutex.
func (s *Store) markIndex(name collectionName, coll *collection, def store.Index) (*collection, *index, error) {
	var x *index
	var set *indexSet
	err := s.write(func(b *pebble.Batch) (err error) {
		if coll == nil {
			if coll, err = s.cat.create(b, name); err != nil {
				return err
			}
		}
		id, err := s.cat.newID(b)
		if err != nil {
			return internal(err, "number an index")
		}
		x = newIndex(id, def)
		set = coll.indexes.Load().with(x, false)
		return coll.put(b, set)
	})
	if err != nil {
		return nil, nil, err
	}
	s.cat.setIndexes(coll, set)
	return coll, x, nil
}

// DropIndex removes an index, be it ready or not.
func (c *Collection) DropIndex(ctx context.Context, name string) error {
	done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	c.s.expiring.Lock() // so that nothing expires any more when this returns
	defer c.s.expiring.Unlock()
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll := c.s.cat.get(c.name)
	if coll == nil {
		return nil
	}
	x := coll.indexes.Load().find(name)
	if x == nil {
		return nil
	}
	return c.s.removeIndex(coll, x)
}

// removeIndex takes an index away, ready or not. The caller holds the commit mutex.
func (s *Store) removeIndex(coll *collection, x *index) error {
	set := coll.indexes.Load().without(x)
	s.cat.setIndexes(coll, set) // before the entries go: see collection.indexes
	if x.build != nil {
		x.build.cancel()
	}
	return s.write(func(b *pebble.Batch) error {
		prefix := indexPrefix(coll.id, x.id)
		return errors.Join(
			b.DeleteRange(prefix, document.KeyAfter(prefix), nil),
			b.Delete(buildKey(coll.id, x.id), nil),
			coll.put(b, set),
		)
	})
}

// has says whether an index exists. The caller holds the commit mutex.
func (s *Store) has(coll *collection, x *index) bool {
	return s.cat.get(coll.name) == coll && slices.Contains(coll.indexes.Load().all, x)
}
