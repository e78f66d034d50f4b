package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Limits of one transaction of a non-atomic Write.
const (
	maxChunkOps   = 256
	maxChunkBytes = 16 << 20
	fewOps        = 3 // as many are written one by one as fast as together
)

// Write applies ops in order.
//
// A bulk write tells how many documents it matched, not which, so it can't give each op its result. It therefore runs
// in a transaction that commits only if every op did what it should. If one did not, an atomic Write starts over op
// by op to find it, and any other halves the ops until those that fail stand alone.
func (c *collection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	err := c.run(ctx, func(ctx context.Context) error {
		if atomic && len(ops) > 1 {
			return c.writeAtomic(ctx, ops, results)
		}
		for start := 0; start < len(ops); {
			end := start + chunk(ops[start:])
			if err := c.writeEach(ctx, ops[start:end], results[start:end]); err != nil {
				return err
			}
			start = end
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// chunk gives how many of ops, which are not none, go into one transaction.
func chunk(ops []store.Op) int {
	size := 0
	for i, op := range ops {
		size += len(op.Doc)
		if i > 0 && (i == maxChunkOps || size > maxChunkBytes) {
			return i
		}
	}
	return len(ops)
}

// writeEach writes ops of which each stands by itself.
func (c *collection) writeEach(ctx context.Context, ops []store.Op, results []store.Result) error {
	if len(ops) <= fewOps {
		for i, op := range ops {
			var err error
			if results[i].Err, err = c.apply(ctx, op); err != nil {
				return err
			}
		}
		return nil
	}
	done, err := c.inTransaction(ctx, func(ctx context.Context) (bool, error) { return c.bulk(ctx, ops) })
	if done || err != nil {
		return err
	}
	half := len(ops) / 2
	if err := c.writeEach(ctx, ops[:half], results[:half]); err != nil {
		return err
	}
	return c.writeEach(ctx, ops[half:], results[half:])
}

// writeAtomic writes all ops or none.
func (c *collection) writeAtomic(ctx context.Context, ops []store.Op, results []store.Result) error {
	done, err := c.inTransaction(ctx, func(ctx context.Context) (bool, error) { return c.bulk(ctx, ops) })
	if done || err != nil {
		return err
	}
	_, err = c.inTransaction(ctx, func(ctx context.Context) (bool, error) {
		clear(results)
		for i, op := range ops {
			failed, err := c.apply(ctx, op)
			if err != nil {
				return false, err
			}
			if failed != nil {
				for k := range results {
					results[k].Err = store.ErrAborted
				}
				results[i].Err = failed
				return false, nil
			}
		}
		return true, nil
	})
	return err
}

// bulk writes ops, inside a transaction, and says whether every one did what it should.
func (c *collection) bulk(ctx context.Context, ops []store.Op) (bool, error) {
	var want mongo.BulkWriteResult
	models := make([]mongo.WriteModel, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case store.Insert:
			want.InsertedCount++
			models[i] = &mongo.InsertOneModel{Document: op.Doc}
		case store.Replace:
			want.MatchedCount++
			models[i] = &mongo.ReplaceOneModel{Filter: where(op.Doc.Lookup("_id"), op.If), Replacement: op.Doc}
		case store.Delete:
			want.DeletedCount++
			models[i] = &mongo.DeleteOneModel{Filter: where(op.ID, op.If)}
		default:
			return false, errUnknownKind()
		}
	}
	got, err := c.coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
	if err != nil {
		failed, err := c.opError(ctx, err)
		return failed == nil && err == nil, err
	}
	return got.InsertedCount == want.InsertedCount && got.MatchedCount == want.MatchedCount && got.DeletedCount == want.DeletedCount, nil
}

// apply writes one op. failed is the op's own error, err one of the store.
func (c *collection) apply(ctx context.Context, op store.Op) (failed, err error) {
	switch op.Kind {
	case store.Insert:
		if _, err := c.coll.InsertOne(ctx, op.Doc); err != nil {
			return c.opError(ctx, err)
		}
		return nil, nil
	case store.Replace:
		id := op.Doc.Lookup("_id")
		result, err := c.coll.ReplaceOne(ctx, where(id, op.If), op.Doc)
		if err != nil {
			return c.opError(ctx, err)
		}
		return c.noMatch(ctx, result.MatchedCount, id, op.If)
	case store.Delete:
		result, err := c.coll.DeleteOne(ctx, where(op.ID, op.If))
		if err != nil {
			return c.opError(ctx, err)
		}
		return c.noMatch(ctx, result.DeletedCount, op.ID, op.If)
	default:
		return nil, errUnknownKind()
	}
}

// noMatch tells why a write matched no document: there is none with its id, or that does not meet the condition.
func (c *collection) noMatch(ctx context.Context, matched int64, id bson.RawValue, cond *mql.Filter) (failed, err error) {
	if matched > 0 {
		return nil, nil
	}
	if cond == nil {
		return errs.ErrNotFound, nil
	}
	onlyID := options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})
	err = c.local.FindOne(ctx, where(id, nil), onlyID).Err()
	switch {
	case err == nil:
		return store.ErrStale, nil
	case errors.Is(err, mongo.ErrNoDocuments):
		return errs.ErrNotFound, nil
	default:
		return nil, err
	}
}

// opError tells an error about one op's document (failed) from one of the store (err).
func (c *collection) opError(ctx context.Context, cause error) (failed, err error) {
	if dup, _ := duplicateKey(cause); dup != nil {
		return dup, nil
	}
	if translated := c.database.store.translate(ctx, cause); errs.KindOf(translated) == errs.Invalid || errs.KindOf(translated) == errs.TooLarge {
		return translated, nil
	}
	return nil, cause
}

func errUnknownKind() error {
	return errs.Wrap(errors.New("a write of no known kind"), "mongodb")
}
