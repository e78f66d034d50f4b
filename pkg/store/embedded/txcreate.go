package embedded

import (
	"context"
	"slices"

	"github.com/svcctl/svc/pkg/store"
)

var _ store.TxCreator = (*txCollection)(nil)

// firstNewIndex numbers the indexes that a transaction makes until its commit, which gives them numbers of their own.
const firstNewIndex = 1 << 31

// Create has the collection come into being with the commit.
func (c *txCollection) Create(ctx context.Context) error {
	switch err := c.enter(ctx); {
	case err != nil:
		return err
	case c.st.coll != nil || c.made || len(c.docs) > 0:
		return store.ErrCollectionExists
	}
	if err := c.t.s.disk.check(); err != nil {
		return err
	}
	c.made, c.t.makes = true, true
	return nil
}

// CreateIndex has an index come into being with the commit, in a collection that does so, too.
func (c *txCollection) CreateIndex(ctx context.Context, def store.Index) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if err := def.Check(); err != nil {
		return err
	}
	there := c.st.indexes.find(def.Name)
	switch {
	case there != nil && !there.def.Equal(def):
		return store.ErrIndexExists
	case there != nil && (c.made || slices.Contains(c.st.indexes.ready, there)):
		return nil
	case c.st.coll != nil || len(c.docs) > 0:
		return store.ErrCollectionExists
	case len(c.st.indexes.all) >= store.MaxIndexes:
		return errIndexes
	}
	if !c.made {
		if err := c.Create(ctx); err != nil {
			return err
		}
	}
	x := newIndex(firstNewIndex+uint32(len(c.st.indexes.all)), def) //nolint:gosec // at most MaxIndexes
	c.st.indexes = c.st.indexes.with(x, false)
	return nil
}

// create adds a collection that a transaction has made. Its indexes are complete: they have had no documents but those of the
// transaction.
func (w *writer) create(made *indexSet) error {
	coll, err := w.s.cat.create(w.batch, w.name)
	if err != nil {
		return err
	}
	for _, x := range made.all { // in their order, which edits go by
		if x.id, err = w.s.cat.newID(w.batch); err != nil {
			return internal(err, "number an index")
		}
	}
	set := newIndexSet(slices.Clone(made.all), slices.Clone(made.all))
	coll.indexes.Store(set)
	w.coll, w.created, w.indexes, w.multikey = coll, true, set, make([]uint32, len(set.all))
	return internal(coll.put(w.batch, set), "stage a collection")
}
