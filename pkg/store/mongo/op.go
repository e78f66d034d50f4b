package mongo

import (
	"context"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// selector is what the server chooses the document of an op by. hint is nil, or keeps it from an index (see rawFilter).
func selector(op store.Op) (filter, hint any) {
	cond := op.If
	if op.Filter != nil {
		cond = op.Filter
	}
	raw := rawFilter(cond)
	// The position $ is lost in the double negation by which rawFilter avoids indexes.
	if op.Update != nil && cond != nil && hasIndexTrap(cond.Raw()) && positional(op.Update.Raw()) {
		raw = cond.Raw()
		hint = bson.D{{Key: "$natural", Value: 1}}
		if op.Filter == nil {
			hint = primaryIndex
		}
	}
	if op.Filter != nil {
		return raw, hint
	}
	byID := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: op.TargetID()}}}}
	if cond == nil {
		return byID, nil
	}
	return bson.D{{Key: "$and", Value: bson.A{byID, raw}}}, hint
}

// positional says whether a name in an update has the position $ in it.
func positional(raw bson.Raw) bool {
	elements, _ := raw.Elements()
	for _, e := range elements {
		if name := e.Key(); strings.HasSuffix(name, ".$") || strings.Contains(name, ".$.") {
			return true
		}
		if nested, ok := e.Value().DocumentOK(); ok && positional(nested) {
			return true
		}
	}
	return false
}

// rawUpdate is what the server is sent for an update. One that does nothing must not look like an empty replacement.
func rawUpdate(u *mql.Update) any {
	if raw := u.Raw(); len(raw) > len(bson.Raw{5, 0, 0, 0, 0}) {
		return raw
	}
	return bson.D{{Key: "$set", Value: bson.D{}}}
}

func arrayFilters(u *mql.Update) []any {
	var filters []any
	for _, f := range u.ArrayFilters() {
		filters = append(filters, f)
	}
	return filters
}

// idValue encodes an _id that the driver has decoded.
func idValue(id any) (v bson.RawValue, err error) {
	v.Type, v.Value, err = bson.MarshalValue(id)
	return v, err
}

// apply writes one op. The error return is for failures of the store.
func (c *collection) apply(ctx context.Context, op store.Op) (store.Result, error) {
	if err := op.Check(); err != nil {
		return store.Result{Err: err}, nil //nolint:nilerr // it is the op's own
	}
	if op.Many && !mongo.SessionFromContext(ctx).TransactionRunning() {
		return c.writeMany(ctx, op)
	}
	var r store.Result
	err := c.database.store.withSlot(ctx, func() error {
		return c.database.store.again(ctx, func() (err error) {
			r, err = c.send(ctx, op)
			return err
		}, isUnsent)
	})
	if err != nil {
		failed, err := c.opError(ctx, op, err)
		return store.Result{Err: failed}, err
	}
	if op.Kind != store.Insert && op.Filter == nil && r.Upserted.Type == 0 {
		r.Err, err = c.noMatch(ctx, r.Matched, op.TargetID(), op.If)
	}
	return r, err
}

// send writes one op in the way that fits it.
func (c *collection) send(ctx context.Context, op store.Op) (r store.Result, err error) {
	switch {
	case op.Kind == store.Insert:
		_, err = c.coll.InsertOne(ctx, op.Doc)
		if err == nil && op.Return == store.ReturnAfter {
			r.Doc, err = show(document.IDFirst(op.Doc), op)
		}
		return r, err
	case op.Many:
		filter, hint := selector(op)
		err = c.changeMany(ctx, op, filter, hint, &r)
		return r, err
	case op.Filter != nil && (len(op.Sort) > 0 || c.database.store.sharded), op.Return != store.ReturnNone:
		return c.findAndWrite(ctx, op)
	default:
		return c.writeOne(ctx, op)
	}
}

// writeOne changes one document.
func (c *collection) writeOne(ctx context.Context, op store.Op) (r store.Result, err error) {
	filter, hint := selector(op)
	var result *mongo.UpdateResult
	switch op.Kind {
	case store.Delete:
		deleted, err := c.coll.DeleteOne(ctx, filter)
		if err != nil {
			return r, err
		}
		return store.Result{Matched: deleted.DeletedCount, Modified: deleted.DeletedCount}, nil
	case store.Replace:
		result, err = c.coll.ReplaceOne(ctx, filter, op.Doc, options.Replace().SetUpsert(op.Upsert))
	default:
		opts := options.UpdateOne().SetUpsert(op.Upsert).SetArrayFilters(arrayFilters(op.Update))
		if hint != nil {
			opts.SetHint(hint)
		}
		result, err = c.coll.UpdateOne(ctx, filter, rawUpdate(op.Update), opts)
	}
	if err != nil {
		return r, err
	}
	r = store.Result{Matched: result.MatchedCount, Modified: result.ModifiedCount}
	if result.UpsertedCount > 0 {
		r.Upserted, err = idValue(result.UpsertedID)
	}
	return r, err
}

// opError tells an error about one op's document (failed) from one of the store (err).
func (c *collection) opError(ctx context.Context, op store.Op, cause error) (failed, err error) {
	if dup, _ := duplicateKey(cause); dup != nil {
		return dup, nil
	}
	translated := c.database.store.translate(ctx, cause)
	if kind := errs.KindOf(translated); kind == errs.Invalid || kind == errs.TooLarge {
		return translated, nil
	}
	if reason := refusal(cause); reason != "" && ctx.Err() == nil {
		cause = c.database.store.secret.clean(cause)
		if op.Kind == store.Insert {
			return store.ErrBadDocument.With(cause), nil
		}
		return errs.New(errs.Invalid, "update_failed", "the change can't be applied to the document: %s", reason).With(cause), nil
	}
	return nil, cause
}

// refusal gives the reason, in words, for which the server does not apply a change to a document.
func refusal(err error) string {
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return ""
	}
	for _, known := range []struct {
		code   int
		reason string
	}{
		{14, "a value has a type that the operator does not work on"},
		{15, "it would be nested too deep"},
		{28, "a path leads through a value that is no object"},
		{40, "two parts of it change the same path"},
		{52, "a field name begins with $"},
		{53, "the _id has a type that none can have"},
		{54, "the filter says of one path twice what it equals"},
		{55, "a reference is not valid"},
		{56, "a field name is empty"},
		{57, "a field name has a dot"},
		{66, "the _id can't be changed"},
		{9, "an operator does not work on the document as it is"},
		{codeBadValue, "a value or position does not fit the document"},
		{34, "a position in a list is too large"},
	} {
		if server.HasErrorCode(known.code) {
			return known.reason
		}
	}
	return ""
}
