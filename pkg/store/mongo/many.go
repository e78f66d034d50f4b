package mongo

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// manyAtOnce is how many documents of an op with Many are written in one step.
const manyAtOnce = 500

// writeMany changes all documents that match, some at a time, in the order of their ids. It does so in transactions: a server that fails in the
// middle of an update of many documents does not say which it had changed, and the update can't be sent again.
func (c *collection) writeMany(ctx context.Context, op store.Op) (r store.Result, err error) {
	m := matching{collection: c, filter: op.Filter}
	defer m.close(ctx)
	for r.Err == nil {
		ids, err := m.next(ctx)
		if err != nil || len(ids) == 0 {
			return r, err
		}
		if err := c.writeThese(ctx, op, ids, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// matching gives the ids of all documents that match, in their order: where a cursor breaks, another one goes on behind
// the ids that were given, which may belong to changed documents that match still.
type matching struct {
	collection *collection
	filter     *mql.Filter
	last       []bson.RawValue // the id given last; none at the beginning
	cursor     *mongo.Cursor   // nil: to be opened
}

// next gives the next ids; none at the end.
func (m *matching) next(ctx context.Context) (ids []bson.RawValue, err error) {
	err = m.collection.database.store.again(ctx, func() (err error) {
		ids, err = m.read(ctx)
		return err
	}, func(err error) bool {
		return isPassing(err) || hasCode(err, codeCursorNotFound) || hasCode(err, codeSnapshotTooOld)
	})
	if len(ids) > 0 {
		m.last = ids[len(ids)-1:]
	}
	return ids, err
}

func (m *matching) read(ctx context.Context) (ids []bson.RawValue, err error) {
	if m.cursor == nil {
		byID := mql.Sort{{Path: "_id"}}
		opts := options.Find().SetAllowDiskUse(true).SetSort(sortDocument(byID)).SetProjection(sortDocument(byID)).SetBatchSize(manyAtOnce)
		behind := rawFilter(afterFilter(store.Query{Filter: m.filter, Sort: byID, After: m.last}))
		m.cursor, err = retrySnapshot(ctx, func() (*mongo.Cursor, error) { return m.collection.snapshot.Find(ctx, behind, opts) })
		if err != nil {
			return nil, err
		}
	}
	for len(ids) < manyAtOnce && m.cursor.Next(ctx) {
		id := m.cursor.Current.Lookup("_id")
		id.Value = slices.Clone(id.Value)
		ids = append(ids, id)
	}
	if err := m.cursor.Err(); err != nil {
		m.close(ctx)
		return nil, err
	}
	return ids, nil
}

func (m *matching) close(ctx context.Context) {
	if m.cursor != nil {
		closeCursor(ctx, m.cursor)
		m.cursor = nil
	}
}

// writeThese changes the documents with ids that still match, up to the first that can't be, and adds them to r.
func (c *collection) writeThese(ctx context.Context, op store.Op, ids []bson.RawValue, r *store.Result) error {
	filter, hint := selector(op)
	filter = bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, filter}}}
	if hint != nil {
		hint = primaryIndex
	}
	var these store.Result
	_, err := c.database.inTransaction(ctx, func(ctx context.Context) (bool, error) {
		err := c.changeMany(ctx, op, filter, hint, &these)
		return err == nil, err
	})
	if err == nil {
		r.Matched += these.Matched
		r.Modified += these.Modified
		return nil
	}
	failed, err := c.opError(ctx, op, err)
	if err != nil {
		return err
	}
	if len(ids) == 1 {
		r.Err = failed
		return nil
	}
	half := len(ids) / 2
	if err := c.writeThese(ctx, op, ids[:half], r); err != nil || r.Err != nil {
		return err
	}
	return c.writeThese(ctx, op, ids[half:], r)
}

// changeMany changes all documents that match filter, inside a transaction.
func (c *collection) changeMany(ctx context.Context, op store.Op, filter, hint any, r *store.Result) error {
	if op.Kind == store.Delete {
		deleted, err := c.coll.DeleteMany(ctx, filter)
		if err == nil {
			r.Matched, r.Modified = deleted.DeletedCount, deleted.DeletedCount
		}
		return err
	}
	opts := options.UpdateMany().SetArrayFilters(arrayFilters(op.Update))
	if hint != nil {
		opts.SetHint(hint)
	}
	updated, err := c.coll.UpdateMany(ctx, filter, rawUpdate(op.Update), opts)
	if err == nil {
		r.Matched, r.Modified = updated.MatchedCount, updated.ModifiedCount
	}
	return err
}
