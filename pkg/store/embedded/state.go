package embedded

import (
	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// state is one collection at one moment: all that a read looks at.
type state struct {
	s       *Store
	coll    *collection // nil: it does not exist
	indexes *indexSet   // those that are complete in snap
	snap    *pebble.Snapshot
	seen    seen // what is read here; only set if it is the collection as it is now

	sortMemory int64 // bytes that a sort may hold; 0: maxSortMemory
}

// state gives the collection as it is now. The caller closes it.
func (c *Collection) state() (*state, error) {
	st := &state{s: c.s, coll: c.s.cat.get(c.name), indexes: noIndexes}
	if st.coll == nil {
		return st, nil
	}
	for { // until the indexes are those of the snapshot
		st.indexes = st.coll.indexes.Load()
		st.seen = c.s.seen(st.coll)
		st.snap = c.s.db.NewSnapshot()
		if st.coll.indexes.Load() == st.indexes {
			return st, nil
		}
		if err := st.snap.Close(); err != nil {
			return nil, internal(err, "close a snapshot")
		}
	}
}

func (st *state) close() error {
	if st.snap == nil {
		return nil
	}
	return st.snap.Close()
}

// get gives a copy of the document whose _id is id, or errs.ErrNotFound.
func (st *state) get(id bson.RawValue) (bson.Raw, error) {
	if store.CheckID(id) != nil || st.coll == nil {
		return nil, errs.ErrNotFound
	}
	doc, err := getDoc(st.snap, docKey(st.coll.id, idKey(id)))
	if err == nil && doc == nil {
		err = errs.ErrNotFound
	}
	return doc, err
}
