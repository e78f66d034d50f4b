package mongo

import (
	"context"
	"errors"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxBatch        = 1000 // documents in one answer of the server
	snapshotRetries = 20
	snapshotBackoff = 10 * time.Millisecond
)

// Get returns the document whose _id is id.
func (c *collection) Get(ctx context.Context, id bson.RawValue) (doc bson.Raw, err error) {
	err = c.read(ctx, func(ctx context.Context) (bool, error) {
		if store.CheckID(id) != nil { // nothing can have such an _id
			return false, nil //nolint:nilerr // it is not found
		}
		doc, err = c.coll.FindOne(ctx, where(id, nil)).Raw()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil && doc == nil {
		err = errs.ErrNotFound
	}
	return doc, err
}

// Find calls fn for each match in order.
func (c *collection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if err := q.Check(); err != nil {
		return err
	}
	var projected bson.Raw
	return c.read(ctx, func(ctx context.Context) (found bool, err error) {
		cursor, err := retrySnapshot(ctx, func() (*mongo.Cursor, error) {
			return c.snapshot.Find(ctx, rawFilter(afterFilter(q)), findOptions(q))
		})
		if err != nil {
			return false, err
		}
		defer closeCursor(ctx, cursor)
		for cursor.Next(ctx) {
			found = true
			if err := ctx.Err(); err != nil { // Next does not look while it has documents left
				return found, err
			}
			doc := cursor.Current
			if projectsHere(q) {
				if projected, err = q.Project.Apply(projected[:0], doc, q.Filter); err != nil {
					return found, err
				}
				doc = projected
			}
			if err := fn(doc); err != nil {
				return found, &callbackError{err}
			}
		}
		return found, cursor.Err()
	})
}

// projectsHere says whether a projection is not left to the server: which element the position $ means depends on the
// filter, and the server's filter has more in it (After), and has it in another form (rawFilter).
func projectsHere(q store.Query) bool { return q.Project.Positional() }

// Count counts the matches up to limit.
func (c *collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (n int64, err error) {
	opts := options.Count()
	if limit > 0 {
		opts.SetLimit(limit)
	}
	err = c.read(ctx, func(ctx context.Context) (bool, error) {
		n, err = retrySnapshot(ctx, func() (int64, error) { return c.snapshot.CountDocuments(ctx, rawFilter(filter), opts) })
		return n > 0, err
	})
	return n, err
}

// read runs a read, which says whether it found anything, again if it broke before that. A view makes sure that there was
// nothing to find.
func (c *collection) read(ctx context.Context, fn func(ctx context.Context) (found bool, err error)) error {
	return c.run(ctx, func(ctx context.Context) error {
		if c.view != nil && !c.view.had(c.name) {
			return nil
		}
		found, err := c.readAgain(ctx, fn)
		if err == nil && !found && c.view != nil {
			return c.view.stillHas(ctx, c.name)
		}
		return err
	})
}

func (c *collection) readAgain(ctx context.Context, fn func(ctx context.Context) (found bool, err error)) (found bool, err error) {
	err = c.database.store.again(ctx, func() (err error) {
		found, err = fn(ctx)
		return err
	}, func(err error) bool { return !found && isPassing(err) })
	return found, err
}

// retrySnapshot repeats a read that met a collection or an index made so lately that the snapshot is older.
func retrySnapshot[T any](ctx context.Context, read func() (T, error)) (T, error) {
	for range snapshotRetries {
		result, err := read()
		if !hasCode(err, codeSnapshotUnavailable) {
			return result, err
		}
		if err := wait(ctx, snapshotBackoff); err != nil {
			return result, err
		}
	}
	return read()
}

// wait waits for d, or for the end of ctx, whose error it then returns.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func findOptions(q store.Query) *options.FindOptionsBuilder {
	opts := options.Find().SetAllowDiskUse(true).SetBatchSize(maxBatch)
	if len(q.Sort) > 0 {
		opts.SetSort(sortDocument(q.Sort))
	}
	if q.Project != nil && !projectsHere(q) {
		opts.SetProjection(q.Project.Raw())
	}
	if q.Skip > 0 {
		opts.SetSkip(q.Skip)
	}
	if q.Limit > 0 && q.Limit <= math.MaxInt64-max(q.Skip, 0) { // the server adds them up
		opts.SetLimit(q.Limit)
		if q.Limit < maxBatch {
			opts.SetBatchSize(int32(q.Limit) + 1) // the server keeps a cursor open for a batch that is just full
		}
	}
	return opts
}

func sortDocument(sort mql.Sort) bson.D {
	d := make(bson.D, len(sort))
	for i, f := range sort {
		d[i] = bson.E{Key: f.Path, Value: direction(f.Desc)}
	}
	return d
}

func direction(desc bool) int32 {
	if desc {
		return -1
	}
	return 1
}

// afterFilter is q's filter without what comes up to q.After.
func afterFilter(q store.Query) *mql.Filter {
	if len(q.After) == 0 {
		return q.Filter
	}
	return mql.And(q.Filter, q.Sort.After(q.After))
}

// where is the filter for the document with id, on a condition. $eq makes an id that looks like an operator or a
// pattern the value it is.
func where(id bson.RawValue, cond *mql.Filter) bson.D {
	byID := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
	if cond == nil {
		return byID
	}
	return bson.D{{Key: "$and", Value: bson.A{byID, rawFilter(cond)}}}
}
