package embedded

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	expireChunk = 100 // documents that are deleted in one write
	// expireWait bounds how long a chunk waits for transactions, and with it those who want to drop its index.
	expireWait = 2 * time.Second
)

// expire deletes the documents whose time has come, in the way that all writes go. On a full disk it does nothing.
func (s *Store) expire(ctx context.Context) error {
	var failed error
	for _, coll := range s.cat.sorted() {
		for _, x := range coll.indexes.Load().ready {
			if x.def.ExpireAfter == 0 {
				continue
			}
			if s.disk.check() != nil {
				return nil //nolint:nilerr // the next sweep tries again
			}
			e := expiry{s: s, coll: coll, index: x, until: s.opts.Now().Add(-x.def.ExpireAfter)}
			if err := e.run(ctx); err != nil && !errors.Is(err, errDropped) {
				failed = errors.Join(failed, err) // a transaction that holds a document here delays nothing elsewhere
			}
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}

// expiry deletes the documents of one collection that have a date up to until.
type expiry struct {
	s     *Store
	coll  *collection
	index *index
	until time.Time
}

func (e *expiry) run(ctx context.Context) error {
	from, end := e.bounds()
	for from != nil {
		ids, next, err := e.expired(from, end)
		if err != nil {
			return err
		}
		if err := e.remove(ctx, ids); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// bounds is the keys of dates up to until: from lo to before hi.
func (e *expiry) bounds() (lo, hi []byte) {
	desc := e.index.def.Keys[0].Desc
	first, last := bson.DateTime(math.MinInt64), bson.NewDateTimeFromTime(e.until)
	if desc {
		first, last = last, first
	}
	key := func(d bson.DateTime) []byte {
		t, v, _ := bson.MarshalValue(d) // can't fail
		return document.AppendKey(indexPrefix(e.coll.id, e.index.id), bson.RawValue{Type: t, Value: v}, desc)
	}
	return key(first), document.KeyAfter(key(last))
}

// expired gives the _ids of some documents that have expired, and where to go on; nil if that is all.
func (e *expiry) expired(from, end []byte) (ids []bson.RawValue, next []byte, err error) {
	it, err := e.s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end})
	if err != nil {
		return nil, nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	for ok := it.First(); ok; ok = it.Next() {
		if len(ids) == expireChunk {
			return ids, bytes.Clone(it.Key()), nil
		}
		key, err := entryID(it.Key(), it.Value())
		if err != nil {
			return nil, nil, err
		}
		doc, err := getDoc(e.s.db, docKey(e.coll.id, key))
		if err != nil {
			return nil, nil, err
		}
		if id, found := document.Field(doc, "_id"); found { // else it has gone since
			ids = append(ids, id)
		}
	}
	return ids, nil, internal(it.Error(), "read an index")
}

// remove deletes documents that are still there and have still expired.
func (e *expiry) remove(ctx context.Context, ids []bson.RawValue) error {
	if len(ids) == 0 {
		return nil
	}
	due, err := mql.Compile(bson.D{{Key: e.index.def.Keys[0].Path, Value: bson.D{{Key: "$lte", Value: bson.NewDateTimeFromTime(e.until)}}}})
	if err != nil {
		return internal(err, "look for expired documents")
	}
	ops := make([]store.Op, len(ids))
	for i, id := range ids {
		ops[i] = store.Op{Kind: store.Delete, ID: id, If: mql.And(due, e.index.def.Partial)}
	}
	// Index and collection can't go, nor the name to another collection, while this is held.
	e.s.expiring.Lock()
	defer e.s.expiring.Unlock()
	if e.s.cat.get(e.coll.name) != e.coll || !slices.Contains(e.coll.indexes.Load().ready, e.index) {
		return errDropped
	}
	ctx, cancel := context.WithTimeout(ctx, expireWait)
	defer cancel()
	c := &Collection{s: e.s, name: e.coll.name}
	results, err := c.Write(ctx, ops, false)
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, store.ErrStale) && !errors.Is(r.Err, errs.ErrNotFound) {
			err = errors.Join(err, r.Err)
		}
	}
	return err
}
