package mongo

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// upsertTries is how often an upsert looks again for a document that somebody else inserted meanwhile.
const upsertTries = 10

// findAndWrite changes the first document in op's order, and gives it back if op asks for it.
//
// The server tells the document before or after the change, and not whether there was one. It is asked for the one
// before, of which package mql makes the other as the server does. An upsert looks first and then inserts: only so is
// it known which of both it did.
func (c *collection) findAndWrite(ctx context.Context, op store.Op) (r store.Result, err error) {
	if op.Project.Positional() && !mongo.SessionFromContext(ctx).TransactionRunning() {
		// The projection may fail, and then nothing may have been written.
		_, err = c.database.inTransaction(ctx, func(ctx context.Context) (bool, error) {
			r, err = c.findAndWrite(ctx, op)
			return err == nil, err
		})
		return r, err
	}
	for try := 1; ; try++ {
		if r, err = c.changeFirst(ctx, op); err != nil || r.Matched > 0 || !op.Upsert {
			return r, err
		}
		doc, err := newDocument(op)
		if err != nil {
			return r, err
		}
		_, err = c.coll.InsertOne(ctx, doc)
		if dup, _ := duplicateKey(err); dup != nil && try < upsertTries && !mongo.SessionFromContext(ctx).TransactionRunning() {
			continue
		}
		if err == nil && op.Return == store.ReturnAfter {
			r.Doc, err = show(doc, op)
		}
		r.Upserted = doc.Lookup("_id")
		return r, err
	}
}

// changeFirst is findAndWrite without Upsert.
func (c *collection) changeFirst(ctx context.Context, op store.Op) (r store.Result, err error) {
	if c.database.store.sharded && op.Filter != nil {
		return c.changeByID(ctx, op)
	}
	filter, hint := selector(op)
	// What a $currentDate sets is known to the server only. It always changes the document.
	after := op.Kind == store.Update && op.Return == store.ReturnAfter && op.Update.Raw().Lookup("$currentDate").Type != 0
	found, err := c.findOneAnd(ctx, op, filter, hint, after)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Matched, r.Modified = 1, 1
	if after {
		r.Doc, err = show(found, op)
		return r, err
	}
	changed, err := change(op, found)
	if err != nil {
		return r, err
	}
	if op.Kind != store.Delete && bytes.Equal(found, changed) {
		r.Modified = 0
	}
	switch op.Return {
	case store.ReturnBefore:
		r.Doc, err = show(found, op)
	case store.ReturnAfter:
		r.Doc, err = show(changed, op)
	case store.ReturnNone:
	}
	return r, err
}

// changeByID is changeFirst where documents are spread over shards: routers take such a change only with the _id.
func (c *collection) changeByID(ctx context.Context, op store.Op) (store.Result, error) {
	for {
		opts := options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})
		if len(op.Sort) > 0 {
			opts.SetSort(sortDocument(op.Sort))
		}
		found, err := c.local.FindOne(ctx, rawFilter(op.Filter), opts).Raw()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return store.Result{}, nil
		}
		if err != nil {
			return store.Result{}, err
		}
		chosen, err := byID(op, found.Lookup("_id"))
		if err != nil {
			return store.Result{}, err
		}
		write := c.changeFirst
		if chosen.Return == store.ReturnNone {
			write = c.writeOne
		}
		if r, err := write(ctx, chosen); err != nil || r.Matched > 0 {
			return r, err
		} // else somebody else was faster
	}
}

// byID gives op for the one document with id, which has to match the filter still.
func byID(op store.Op, id bson.RawValue) (store.Op, error) {
	op.ID, op.If = id, op.Filter
	op.Filter, op.Sort, op.Upsert = nil, nil, false
	if op.Kind != store.Replace {
		return op, nil
	}
	switch own := op.Doc.Lookup("_id"); {
	case own.Type == 0:
		op.Doc = document.WithID(op.Doc, id)
		return op, nil
	case document.Compare(own, id) != 0:
		return op, store.ErrOtherID
	default:
		return op, nil
	}
}

func (c *collection) findOneAnd(ctx context.Context, op store.Op, filter, hint any, after bool) (bson.Raw, error) {
	which := options.Before
	if after {
		which = options.After
	}
	switch op.Kind {
	case store.Delete:
		opts := options.FindOneAndDelete()
		if len(op.Sort) > 0 {
			opts.SetSort(sortDocument(op.Sort))
		}
		return c.coll.FindOneAndDelete(ctx, filter, opts).Raw()
	case store.Replace:
		opts := options.FindOneAndReplace().SetReturnDocument(which)
		if len(op.Sort) > 0 {
			opts.SetSort(sortDocument(op.Sort))
		}
		return c.coll.FindOneAndReplace(ctx, filter, op.Doc, opts).Raw()
	default:
		opts := options.FindOneAndUpdate().SetReturnDocument(which).SetArrayFilters(arrayFilters(op.Update))
		if len(op.Sort) > 0 {
			opts.SetSort(sortDocument(op.Sort))
		}
		if hint != nil {
			opts.SetHint(hint)
		}
		return c.coll.FindOneAndUpdate(ctx, filter, rawUpdate(op.Update), opts).Raw()
	}
}

// change gives what op makes of a document; of a deleted one nothing.
func change(op store.Op, doc bson.Raw) (bson.Raw, error) {
	switch op.Kind {
	case store.Replace:
		if op.Doc.Lookup("_id").Type != 0 {
			return document.IDFirst(op.Doc), nil
		}
		return document.WithID(op.Doc, doc.Lookup("_id")), nil
	case store.Update:
		return op.Update.Apply(doc, mql.Applying{Filter: chosenBy(op), Now: time.Now()})
	default:
		return nil, nil
	}
}

// newDocument gives what an upsert inserts.
func newDocument(op store.Op) (doc bson.Raw, err error) {
	base, err := upsertBase(op)
	if err != nil {
		return nil, err
	}
	if op.Kind == store.Update {
		if doc, err = op.Update.Apply(base, mql.Applying{Filter: op.Filter, Now: time.Now(), Insert: true}); err != nil {
			return nil, err
		}
	} else {
		doc = op.Doc
	}
	id, asked := doc.Lookup("_id"), base.Lookup("_id")
	if id.Type != 0 && asked.Type != 0 && document.Compare(id, asked) != 0 {
		return nil, store.ErrOtherID
	}
	if id.Type == 0 {
		id = asked
	}
	if id.Type == 0 {
		if id, err = idValue(bson.NewObjectID()); err != nil {
			return nil, err
		}
	}
	return document.WithID(doc, id), nil
}

func upsertBase(op store.Op) (bson.Raw, error) {
	switch {
	case op.Filter != nil && op.Kind == store.Update:
		return mql.UpsertBase(op.Filter)
	case op.Filter != nil: // a replacement takes nothing else from the filter
		id, err := mql.UpsertID(op.Filter)
		if err != nil || id.Type == 0 {
			return nil, err
		}
		return bson.Marshal(bson.D{{Key: "_id", Value: id}})
	}
	return bson.Marshal(bson.D{{Key: "_id", Value: op.TargetID()}})
}

// chosenBy is the filter that op's document matched.
func chosenBy(op store.Op) *mql.Filter {
	if op.Filter != nil {
		return op.Filter
	}
	return op.If
}

// show gives the parts of doc that op wants back.
func show(doc bson.Raw, op store.Op) (bson.Raw, error) {
	if op.Project == nil {
		return doc, nil
	}
	return op.Project.Apply(nil, doc, chosenBy(op))
}
