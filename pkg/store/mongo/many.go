package mongo

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store"
)

// manyAtOnce is how many documents of an op with Many are written in one step.
const manyAtOnce = 500

// writeMany changes all documents that match, some at a time. It does so in transactions: a server that fails in the
// middle of an update of many documents does not say which it had changed, and the update can't be sent again.
func (c *collection) writeMany(ctx context.Context, op store.Op) (r store.Result, err error) {
	opts := options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(manyAtOnce)
	cursor, err := c.snapshot.Find(ctx, rawFilter(op.Filter), opts)
	if err != nil {
		return r, err
	}
	defer closeCursor(ctx, cursor)
	var ids []bson.RawValue
	for more := true; more && r.Err == nil; {
		if more = cursor.Next(ctx); more {
			id := cursor.Current.Lookup("_id")
			id.Value = slices.Clone(id.Value)
			ids = append(ids, id)
		}
		if len(ids) == manyAtOnce || !more && len(ids) > 0 {
			if err := c.writeThese(ctx, op, ids, &r); err != nil {
				return r, err
			}
			ids = ids[:0]
		}
	}
	return r, cursor.Err()
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
