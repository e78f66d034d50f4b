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

// Limits of what is sent together in a Write that is not atomic.
const (
	maxChunkOps   = 256
	maxChunkBytes = 16 << 20
	fewOps        = 3 // as many are written one by one as fast as together
)

// Write applies ops in order.
//
// A bulk write tells how many documents it matched and changed, not which. It therefore runs in a transaction that
// commits only if its sums leave no doubt about any op. If they do, an atomic Write starts over op by op, and any
// other halves the ops until those with another outcome stand alone. Inserts need none of this: each has its own error.
func (c *collection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	err := c.run(ctx, func(ctx context.Context) error {
		switch {
		case c.tx != nil:
			return c.writeWithin(ctx, ops, results, atomic)
		case atomic && (len(ops) > 1 || len(ops) == 1 && ops[0].Many):
			return c.writeAtomic(ctx, ops, results)
		default:
			return c.writeChunks(ctx, ops, results)
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// writeChunks writes ops of which each stands by itself, together where that is possible.
func (c *collection) writeChunks(ctx context.Context, ops []store.Op, results []store.Result) error {
	for start := 0; start < len(ops); {
		end := start + chunk(ops[start:])
		write := c.writeEach
		if ops[start].Kind == store.Insert {
			write = c.insertEach
		}
		if err := write(ctx, ops[start:end], results[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// chunk gives how many of ops, which are not none, are sent together: inserts, other plain ones, or one that is neither.
func chunk(ops []store.Op) int {
	insert := ops[0].Kind == store.Insert
	size := 0
	for i, op := range ops {
		size += sizeOf(op)
		full := i == maxChunkOps || size > maxChunkBytes
		if i > 0 && (full || !plain(op) || !plain(ops[0]) || insert != (op.Kind == store.Insert)) {
			return i
		}
	}
	return len(ops)
}

// plain says whether an op can be part of a bulk write.
func plain(op store.Op) bool {
	return op.Check() == nil && !op.Many && len(op.Sort) == 0 && op.Return == store.ReturnNone
}

func sizeOf(op store.Op) int {
	if op.Update != nil {
		return len(op.Doc) + len(op.Update.Raw())
	}
	return len(op.Doc)
}

// insertEach inserts documents of which each has its own outcome.
func (c *collection) insertEach(ctx context.Context, ops []store.Op, results []store.Result) error {
	if len(ops) == 1 {
		return c.oneByOne(ctx, ops, results)
	}
	docs := make([]bson.Raw, len(ops))
	for i, op := range ops {
		docs[i] = op.Doc
	}
	err := c.database.store.withSlot(ctx, func() error {
		return c.database.store.again(ctx, func() error {
			_, err := c.coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
			return err
		}, isUnsent)
	})
	var bulk mongo.BulkWriteException
	if !errors.As(err, &bulk) || bulk.WriteConcernError != nil || len(bulk.WriteErrors) == 0 {
		return err
	}
	for _, e := range bulk.WriteErrors {
		var err error
		if results[e.Index].Err, err = c.opError(ctx, ops[e.Index], mongo.WriteException{WriteErrors: []mongo.WriteError{e.WriteError}}); err != nil {
			return err
		}
	}
	return nil
}

// writeEach writes ops of which each stands by itself.
func (c *collection) writeEach(ctx context.Context, ops []store.Op, results []store.Result) error {
	if len(ops) <= fewOps {
		return c.oneByOne(ctx, ops, results)
	}
	done, err := c.database.inTransaction(ctx, func(ctx context.Context) (bool, error) { return c.bulk(ctx, ops, results) })
	if done || err != nil {
		return err
	}
	half := len(ops) / 2
	if err := c.writeEach(ctx, ops[:half], results[:half]); err != nil {
		return err
	}
	return c.writeEach(ctx, ops[half:], results[half:])
}

func (c *collection) oneByOne(ctx context.Context, ops []store.Op, results []store.Result) (err error) {
	for i, op := range ops {
		if results[i], err = c.apply(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// writeAtomic writes all ops or none.
func (c *collection) writeAtomic(ctx context.Context, ops []store.Op, results []store.Result) error {
	if allPlain(ops) {
		done, err := c.database.inTransaction(ctx, func(ctx context.Context) (bool, error) { return c.bulk(ctx, ops, results) })
		if done || err != nil {
			return err
		}
	}
	_, err := c.database.inTransaction(ctx, func(ctx context.Context) (bool, error) {
		failed, err := c.untilFailure(ctx, ops, results)
		if failed >= 0 {
			abortOthers(results, failed)
		}
		return failed < 0 && err == nil, err
	})
	return err
}

func allPlain(ops []store.Op) bool {
	for _, op := range ops {
		if !plain(op) {
			return false
		}
	}
	return true
}

// untilFailure writes ops up to the first that fails, and says which that is; -1 if none does.
func (c *collection) untilFailure(ctx context.Context, ops []store.Op, results []store.Result) (failed int, err error) {
	clear(results)
	for i, op := range ops {
		if results[i], err = c.apply(ctx, op); err != nil {
			return -1, err
		}
		if results[i].Err != nil {
			return i, nil //nolint:nilerr // it is in results
		}
	}
	return -1, nil
}

// abortOthers leaves of the results only the error of the op that failed.
func abortOthers(results []store.Result, failed int) {
	for i := range results {
		if i == failed {
			results[i] = store.Result{Err: results[i].Err}
		} else {
			results[i] = store.Result{Err: store.ErrAborted}
		}
	}
}

// bulk writes plain ops, inside a transaction, and says whether the sums tell what became of each.
func (c *collection) bulk(ctx context.Context, ops []store.Op, results []store.Result) (bool, error) {
	clear(results)
	var inserts, changes, deletes int64
	models := make([]mongo.WriteModel, len(ops))
	for i, op := range ops {
		models[i] = model(op)
		switch op.Kind {
		case store.Insert:
			inserts++
		case store.Delete:
			deletes++
		case store.Replace, store.Update:
			changes++
		}
	}
	got, err := c.coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
	if err != nil {
		failed, err := c.opError(ctx, ops[0], err)
		return failed == nil && err == nil, err
	}
	changes -= int64(len(got.UpsertedIDs))
	if got.InsertedCount != inserts || got.DeletedCount != deletes || got.MatchedCount != changes ||
		got.ModifiedCount != 0 && got.ModifiedCount != changes {
		return false, nil
	}
	for i, op := range ops {
		id, upserted := got.UpsertedIDs[int64(i)]
		switch {
		case op.Kind == store.Insert:
		case upserted:
			if results[i].Upserted, err = idValue(id); err != nil {
				return false, err
			}
		default:
			results[i].Matched, results[i].Modified = 1, 1
			if op.Kind != store.Delete && got.ModifiedCount == 0 {
				results[i].Modified = 0
			}
		}
	}
	return true, nil
}

func model(op store.Op) mongo.WriteModel {
	filter, hint := selector(op)
	switch op.Kind {
	case store.Insert:
		return &mongo.InsertOneModel{Document: op.Doc}
	case store.Replace:
		return &mongo.ReplaceOneModel{Filter: filter, Replacement: op.Doc, Upsert: &op.Upsert, Hint: hint}
	case store.Delete:
		return &mongo.DeleteOneModel{Filter: filter, Hint: hint}
	default:
		return &mongo.UpdateOneModel{
			Filter: filter, Update: rawUpdate(op.Update), ArrayFilters: arrayFilters(op.Update), Upsert: &op.Upsert, Hint: hint,
		}
	}
}

// writeWithin writes ops in a Transact. Documents that are missing or do not meet a condition leave it as it is, unless
// others are to be written with them or not at all.
func (c *collection) writeWithin(ctx context.Context, ops []store.Op, results []store.Result, atomic bool) error {
	for _, op := range ops {
		if c.tx.bytes += sizeOf(op); c.tx.bytes > transactionBytes {
			c.tx.end(store.ErrTransactionSize)
			return store.ErrTransactionSize
		}
	}
	for i, op := range ops {
		var err error
		if results[i], err = c.apply(ctx, op); err != nil {
			return err
		}
		soft := errors.Is(results[i].Err, errs.ErrNotFound) || errors.Is(results[i].Err, store.ErrStale)
		if results[i].Err == nil || soft && !atomic {
			continue
		}
		if !soft || len(ops) > 1 { // the server can't take back a part of a transaction
			c.tx.end(results[i].Err)
		}
		if atomic {
			abortOthers(results, i)
		} else {
			abortRest(results, i)
		}
		return nil
	}
	return nil
}

// abortRest says of the ops behind the failed one that they were not written.
func abortRest(results []store.Result, failed int) {
	for i := failed + 1; i < len(results); i++ {
		results[i].Err = store.ErrAborted
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
	err = c.database.store.again(ctx, func() error { return c.local.FindOne(ctx, where(id, nil), onlyID).Err() }, isPassing)
	switch {
	case err == nil:
		return store.ErrStale, nil
	case errors.Is(err, mongo.ErrNoDocuments):
		return errs.ErrNotFound, nil
	default:
		return nil, err
	}
}
