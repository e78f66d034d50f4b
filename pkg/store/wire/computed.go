package wire

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// computedChunk is how many documents one transaction of a computed write of many changes.
const computedChunk = 200

// usesExpr says whether a filter has an expression in it.
func usesExpr(filter bson.Raw) bool {
	for it := document.NewIter(filter); len(filter) > 0 && it.Next(); {
		switch string(it.Key()) {
		case "$expr":
			return true
		case "$and", "$or", "$nor":
			if it.Value().Type != bson.TypeArray {
				continue
			}
			for inner := document.NewIter(it.Value().Value); inner.Next(); {
				if d, ok := inner.Value().DocumentOK(); ok && usesExpr(d) {
					return true
				}
			}
		}
	}
	return false
}

// plainFilter is the part of a filter without expressions, which an upsert begins with.
func plainFilter(filter bson.Raw) (*mql.Filter, error) {
	d, err := document.Unmarshal(filter)
	if err != nil {
		return nil, err
	}
	return mql.Compile(withoutExpr(d))
}

func withoutExpr(filter bson.D) bson.D {
	plain := bson.D{}
	for _, e := range filter {
		list, isList := e.Value.(bson.A)
		switch {
		case e.Key == "$expr":
		case e.Key == "$and" && isList:
			for _, v := range list {
				if inner, ok := v.(bson.D); ok {
					plain = append(plain, withoutExpr(inner)...)
				}
			}
		case (e.Key == "$or" || e.Key == "$nor") && isList:
		default:
			plain = append(plain, e)
		}
	}
	return plain
}

// computed is a write that needs expressions to find its documents or to say what they become. The port has none of these: it is
// done in a transaction, which finds the documents by a pipeline, and writes each by its _id.
type computed struct {
	k      *call
	filter bson.Raw
	let    bson.D
	sort   mql.Sort
	change *pipeline.Pipeline // what documents become; nil: op says it
	op     store.Op           // but for what it chooses
	upsert bool
	many   bool
}

// changePipeline compiles the pipeline of an update.
func changePipeline(v bson.RawValue, let bson.D) (*pipeline.Pipeline, error) {
	var stages bson.A
	for it := document.NewIter(v.Value); it.Next(); {
		raw, ok := it.Value().DocumentOK()
		if !ok {
			return nil, errStageType()
		}
		stage, err := document.Unmarshal(raw)
		if err != nil {
			return nil, err
		}
		if len(stage) != 1 {
			return nil, errStageFields()
		}
		stages = append(stages, stage)
		switch name := stage[0].Key; name {
		case "$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith":
		default:
			if _, err := compileStages(bson.A{stage}, let); err != nil {
				return nil, err
			}
			return nil, fail(codeInvalidOptions, "%s is not allowed to be used within an update", name)
		}
	}
	return compileStages(stages, let)
}

// run does the write on a collection.
func (c *computed) run(db store.Database, name string) (r store.Result, err error) {
	if c.k.tx != nil {
		return c.within(c.k.ctx, c.k.tx.collection(name), nil)
	}
	chunks := [][]bson.RawValue{nil}
	if c.many {
		ids, err := c.ids(db.Collection(name))
		if err != nil {
			return r, err
		}
		if len(ids) > 0 {
			chunks = slices.Collect(slices.Chunk(ids, computedChunk))
		}
	}
	for _, ids := range chunks {
		var part store.Result
		err := db.Transact(c.k.ctx, func(ctx context.Context, tx store.Tx) error {
			var err error
			part, err = c.within(ctx, tx.Collection(name), ids)
			return errors.Join(err, part.Err)
		})
		if part.Err == nil && err != nil {
			return r, err
		}
		r.Matched, r.Modified = r.Matched+part.Matched, r.Modified+part.Modified
		r.Upserted, r.Doc, r.Err = part.Upserted, part.Doc, part.Err
		if r.Err != nil {
			return r, nil //nolint:nilerr // r tells of it
		}
	}
	return r, nil
}

// ids are those of the documents that the filter matches now. Each is looked at once more when it is written.
func (c *computed) ids(r store.Reader) (ids []bson.RawValue, err error) {
	p, err := c.finding(nil, bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: int32(1)}}}})
	if err != nil {
		return nil, err
	}
	size := 0
	err = c.k.aggregate(c.k.ctx, r, p, func(doc bson.Raw) error {
		id, _ := document.Field(doc, "_id")
		if size += len(id.Value); size > maxBuffered {
			return fail(codeExceededMemory, "an update with expressions changes too many documents at once: narrow its filter")
		}
		ids = append(ids, bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)})
		return nil
	})
	return ids, err
}

// finding is the pipeline that finds the documents, among those with ids if there are any.
func (c *computed) finding(ids []bson.RawValue, more ...bson.D) (*pipeline.Pipeline, error) {
	filter, err := document.Unmarshal(c.filter)
	if err != nil {
		return nil, err
	}
	stages := bson.A{}
	if ids != nil {
		list := make(bson.A, len(ids))
		for i := range ids {
			list[i] = ids[i]
		}
		stages = append(stages, bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: list}}}}}})
	}
	stages = append(stages, bson.D{{Key: "$match", Value: filter}})
	if len(c.sort) > 0 {
		stages = append(stages, bson.D{{Key: "$sort", Value: sortSpec(c.sort)}})
	}
	if !c.many {
		stages = append(stages, bson.D{{Key: "$limit", Value: int64(1)}})
	}
	for _, stage := range more {
		stages = append(stages, stage)
	}
	return compileStages(stages, c.let)
}

// sortSpec is an order as stages have it.
func sortSpec(sort mql.Sort) bson.D {
	d := bson.D{}
	for _, f := range sort {
		d = append(d, bson.E{Key: f.Path, Value: direction(f.Desc)})
	}
	return d
}

// within does the write in a transaction.
func (c *computed) within(ctx context.Context, coll store.TxCollection, ids []bson.RawValue) (r store.Result, err error) {
	p, err := c.finding(ids)
	if err != nil {
		return r, err
	}
	var docs []bson.Raw
	size := 0
	err = c.k.aggregate(ctx, coll, p, func(doc bson.Raw) error {
		if size += len(doc); size > maxBuffered {
			return fail(codeExceededMemory, "a write with expressions reads 100 MiB at most: narrow its filter")
		}
		docs = append(docs, slices.Clone(doc))
		return nil
	})
	if err != nil {
		return r, err
	}
	if len(docs) == 0 && c.upsert && ids == nil {
		op, err := c.insertion()
		if err != nil {
			return r, err
		}
		r, err = writeOne(ctx, coll, op)
		if r.Err == nil && err == nil {
			r.Upserted, _ = document.Field(op.Doc, "_id")
			r.Matched, r.Modified = 0, 0
			if c.op.Return == store.ReturnAfter {
				r.Doc, err = projected(c.op.Project, op.Doc)
			}
		}
		return r, err
	}
	for _, doc := range docs {
		op, err := c.changeOf(ctx, doc)
		if err != nil {
			return r, err
		}
		one, err := writeOne(ctx, coll, op)
		if err != nil || one.Err != nil {
			one.Matched, one.Modified = r.Matched, r.Modified
			return one, err
		}
		r.Matched, r.Modified, r.Doc = r.Matched+1, r.Modified+one.Modified, one.Doc
	}
	return r, nil
}

// writeOne writes one op. What is wrong with that itself is the Result's error.
func writeOne(ctx context.Context, coll store.Writer, op store.Op) (store.Result, error) {
	results, err := coll.Write(ctx, []store.Op{op}, false)
	if err != nil {
		return store.Result{}, err
	}
	return results[0], nil
}

// changeOf is the write of one document that was found.
func (c *computed) changeOf(ctx context.Context, doc bson.Raw) (store.Op, error) {
	op := c.op
	op.ID, _ = document.Field(doc, "_id")
	switch {
	case c.change != nil:
		made, err := c.apply(ctx, doc)
		if err != nil {
			return op, err
		}
		op.Kind, op.Doc = store.Replace, made
	case op.Kind == store.Replace:
		if _, has := document.Field(op.Doc, "_id"); !has {
			op.Doc = document.WithID(op.Doc, op.ID)
		}
	}
	return op, nil
}

// apply gives what the pipeline makes of a document, whose _id stays.
func (c *computed) apply(ctx context.Context, doc bson.Raw) (made bson.Raw, err error) {
	err = c.change.Run(ctx, documents{doc}, pipeline.Budget{Now: c.k.server.opts.Now()}, func(d bson.Raw) error {
		made = slices.Clone(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	id, had := document.Field(doc, "_id")
	now, has := document.Field(made, "_id")
	switch {
	case !has && had:
		return document.WithID(made, id), nil
	case had && (id.Type != now.Type || !bytes.Equal(id.Value, now.Value)):
		return nil, fail(codeImmutableField, "After applying the update, the (immutable) field '_id' was found to have been altered")
	}
	return made, nil
}

// insertion is what an upsert inserts where nothing was found.
func (c *computed) insertion() (op store.Op, err error) {
	op = store.Op{Kind: store.Insert}
	plain, err := plainFilter(c.filter)
	if err != nil {
		return op, err
	}
	if c.op.Kind == store.Replace && c.change == nil {
		id, err := mql.UpsertID(plain)
		if err != nil {
			return op, err
		}
		op.Doc = c.op.Doc
		if _, has := document.Field(op.Doc, "_id"); !has && id.Type != 0 {
			op.Doc = document.WithID(op.Doc, id)
		}
		op.Doc = withID(op.Doc)
		return op, nil
	}
	base, err := mql.UpsertBase(plain)
	if err != nil {
		return op, err
	}
	if c.change != nil {
		op.Doc, err = c.apply(c.k.ctx, base)
	} else {
		op.Doc, err = c.op.Update.Apply(base, mql.Applying{Filter: plain, Now: c.k.server.opts.Now(), Insert: true})
	}
	if err != nil {
		return op, err
	}
	op.Doc = withID(op.Doc)
	return op, nil
}

func projected(p *mql.Projection, doc bson.Raw) (bson.Raw, error) {
	if p == nil {
		return doc, nil
	}
	return p.Apply(nil, doc, nil)
}
