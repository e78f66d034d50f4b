package embedded

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// commit is one batch that is put together under the commit mutex and then applied as a whole, with what the feed and
// the counters have to know of it.
type commit struct {
	s       *Store
	batch   *pebble.Batch
	reader  pebble.Reader // sees what is in batch, if that is more than one change
	writers []*writer
	ledger  ledger
	broken  error // a failure of the store itself: nothing of the batch may be applied
}

// writer is the part of a commit that is on one collection.
type writer struct {
	*commit
	coll     *collection
	created  bool
	indexes  *indexSet
	multikey []uint32 // new bits, in the order of indexes.all
}

// newCommit starts a commit. With several changes, each sees those before it.
func (s *Store) newCommit(several bool) *commit {
	if several {
		b := s.db.NewIndexedBatch()
		return &commit{s: s, batch: b, reader: b}
	}
	return &commit{s: s, batch: s.db.NewBatch(), reader: s.db}
}

// writer adds a collection to the commit, and makes it if coll is nil.
func (c *commit) writer(name collectionName, coll *collection) (*writer, error) {
	w := &writer{commit: c, coll: coll}
	if coll == nil {
		var err error
		if w.coll, err = c.s.cat.create(c.batch, name); err != nil {
			return nil, err
		}
		w.created = true
	}
	w.indexes = w.coll.indexes.Load()
	w.multikey = make([]uint32, len(w.indexes.all))
	c.writers = append(c.writers, w)
	return w, nil
}

// tell takes up for the feed and the counters that a document became another one; nil is none.
func (w *writer) tell(before, after bson.Raw) {
	switch {
	case before == nil:
		id, _ := lookup(after, "_id")
		w.log(store.Inserted, id)
		w.count(1, int64(len(after)))
	case after == nil:
		id, _ := lookup(before, "_id")
		w.log(store.Deleted, id)
		w.count(-1, -int64(len(before)))
	default:
		id, _ := lookup(after, "_id")
		w.log(store.Updated, id)
		w.count(0, int64(len(after)-len(before)))
	}
}

// apply makes the commit visible, after what readers have to know first. The caller waits for it.
func (c *commit) apply() error {
	for _, w := range c.writers {
		if err := w.markLists(); err != nil {
			return errors.Join(err, c.discard())
		}
	}
	if err := c.seal(); err != nil {
		return errors.Join(err, c.discard())
	}
	if err := c.s.apply(c.batch); err != nil {
		return err
	}
	for _, w := range c.writers {
		if w.created {
			c.s.cat.add(w.coll)
		}
	}
	c.applied()
	return nil
}

// markLists notes in the catalog that indexes have come to hold lists.
func (w *writer) markLists() error {
	lists := false
	for i, x := range w.indexes.all {
		if old := x.multikey.Or(w.multikey[i]); old|w.multikey[i] != old {
			lists = true
		}
	}
	if !lists {
		return nil
	}
	return w.coll.put(w.batch, w.indexes)
}

// wait returns when the commit is on disk, and releases it.
func (c *commit) wait() error {
	err := c.s.wait(c.batch)
	if err == nil {
		c.durable()
	}
	return errors.Join(err, c.discard())
}

// discard releases the commit, applied or not.
func (c *commit) discard() error { return internal(c.batch.Close(), "close a batch") }
