package differ

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const collectionName = "things"

// local runs cases on a store.
type local struct {
	db   store.Database
	coll store.Collection
}

func newLocal(s store.Store, database string) *local {
	db := s.Database(database)
	return &local{db: db, coll: db.Collection(collectionName)}
}

// load makes the collection anew.
func (l *local) load(ctx context.Context, c *Case) error {
	if err := l.db.DropCollection(ctx, collectionName); err != nil {
		return err
	}
	for i, x := range c.Indexes {
		index := store.Index{Name: indexName(i), Unique: x.Unique, Sparse: x.Sparse}
		for _, e := range x.Keys {
			index.Keys = append(index.Keys, store.IndexKey{Path: e.Key, Desc: isDesc(e.Value)})
		}
		if x.Partial != nil {
			f, err := mql.Compile(x.Partial)
			if err != nil {
				return err
			}
			index.Partial = f
		}
		if err := l.coll.CreateIndex(ctx, index); err != nil {
			return err
		}
	}
	ops := make([]store.Op, len(c.Docs))
	for i, d := range c.Docs {
		raw, err := document.Marshal(d)
		if err != nil {
			return err
		}
		ops[i] = store.Op{Kind: store.Insert, Doc: raw}
	}
	_, err := l.coll.Write(ctx, ops, false) // that documents are refused shows in what the collection holds then
	return err
}

func indexName(i int) string { return fmt.Sprintf("i%d", i) }

// isDesc reads the direction of a sort or index field.
func isDesc(v any) bool {
	switch v := v.(type) {
	case int32:
		return v < 0
	case int64:
		return v < 0
	case int:
		return v < 0
	default:
		return false
	}
}

// dump is all documents, by _id.
func (l *local) dump(ctx context.Context) ([]bson.Raw, error) {
	return l.find(ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}})
}

func (l *local) find(ctx context.Context, q store.Query) ([]bson.Raw, error) {
	var docs []bson.Raw
	err := l.coll.Find(ctx, q, func(d bson.Raw) error {
		docs = append(docs, slices.Clone(d))
		return nil
	})
	return docs, err
}

// run does one op. A panic is an answer, too.
func (l *local) run(ctx context.Context, op *Op) (a *Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = &Answer{Refused: broken, Detail: fmt.Sprint("panic: ", p)}
		}
	}()
	a, err := l.answer(ctx, op)
	if err != nil {
		return refusal(err)
	}
	return a
}

func refusal(err error) *Answer {
	var taken *store.DuplicateKeyError
	switch kind := errs.KindOf(err); {
	case errors.As(err, &taken):
		return &Answer{Refused: duplicate, Detail: err.Error()}
	case errors.Is(err, store.ErrStale):
		return &Answer{Refused: stale, Detail: err.Error()}
	case errors.Is(err, errs.ErrNotFound):
		return &Answer{Refused: notFound, Detail: err.Error()}
	case kind == errs.Invalid || kind == errs.TooLarge || kind == errs.Limit:
		return &Answer{Refused: refused, Detail: err.Error()}
	default:
		return &Answer{Refused: broken, Detail: err.Error()}
	}
}

func (l *local) answer(ctx context.Context, op *Op) (*Answer, error) {
	if op.Kind == Batch || op.Kind == Each {
		return l.batch(ctx, op)
	}
	if op.writes() {
		return l.write(ctx, op)
	}
	filter, err := mql.Compile(op.Filter)
	if err != nil {
		return nil, err
	}
	switch op.Kind {
	case Find:
		return l.query(ctx, op, filter)
	case Count:
		n, err := l.coll.Count(ctx, filter, op.Limit)
		return &Answer{Count: n}, err
	default:
		values, err := l.coll.Distinct(ctx, op.Path, filter)
		return &Answer{Values: values}, err
	}
}

func sortOf(d bson.D) mql.Sort {
	var s mql.Sort
	for _, e := range d {
		s = append(s, mql.SortField{Path: e.Key, Desc: isDesc(e.Value)})
	}
	return s
}

func projectionOf(d bson.D) (*mql.Projection, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // none is none
	}
	return mql.CompileProjection(d)
}

func (l *local) query(ctx context.Context, op *Op, filter *mql.Filter) (*Answer, error) {
	project, err := projectionOf(op.Project)
	if err != nil {
		return nil, err
	}
	q := store.Query{Filter: filter, Sort: sortOf(op.Sort), Skip: op.Skip, Limit: op.Limit, Project: project}
	if op.After != nil {
		id, err := document.MarshalValue(op.After)
		if err != nil {
			return nil, err
		}
		last, err := l.coll.Get(ctx, id)
		if errors.Is(err, errs.ErrNotFound) {
			return &Answer{}, nil
		}
		if err != nil {
			return nil, err
		}
		q.After = q.Sort.Key(last)
	}
	docs, err := l.find(ctx, q)
	if len(op.Sort) == 0 {
		slices.SortFunc(docs, func(a, b bson.Raw) int { return bytes.Compare(a, b) })
	}
	return &Answer{Docs: docs}, err
}

func (l *local) write(ctx context.Context, op *Op) (*Answer, error) {
	w, err := writeOp(op)
	if err != nil {
		return nil, err
	}
	results, err := l.coll.Write(ctx, []store.Op{w}, false)
	if err != nil {
		return nil, err
	}
	return outcomeOf(op, &results[0])
}

func outcomeOf(op *Op, r *store.Result) (*Answer, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	a := &Answer{Count: r.Matched, Modified: r.Modified, Upserted: clone(r.Upserted), Doc: slices.Clone(r.Doc)}
	if op.Kind == Insert || op.Return != "" { // a server does not tell
		a.Modified = 0
	}
	return a, nil
}

// batch does several writes.
func (l *local) batch(ctx context.Context, op *Op) (*Answer, error) {
	ops := make([]store.Op, len(op.Batch))
	for i := range op.Batch {
		var err error
		if ops[i], err = writeOp(&op.Batch[i]); err != nil {
			a := refusal(err)
			a.Failed = i
			return a, nil
		}
	}
	results, err := l.coll.Write(ctx, ops, op.Kind == Batch)
	if err != nil {
		return nil, err
	}
	all := &Answer{}
	for i := range results {
		part, err := outcomeOf(&op.Batch[i], &results[i])
		switch {
		case op.Kind == Batch && errors.Is(err, store.ErrAborted):
			continue
		case err != nil:
			part = refusal(err)
		}
		if err != nil && op.Kind == Batch {
			part.Failed = i
			return part, nil
		}
		all.Parts = append(all.Parts, part)
	}
	if len(all.Parts) != len(results) {
		return nil, fmt.Errorf("a batch was done in part: %d of %d", len(all.Parts), len(results))
	}
	return all, nil
}

func writeOp(op *Op) (w store.Op, err error) {
	w = store.Op{Sort: sortOf(op.Sort), Many: op.Many, Upsert: op.Upsert}
	if w.Project, err = projectionOf(op.Project); err != nil {
		return w, err
	}
	switch op.Return {
	case "before":
		w.Return = store.ReturnBefore
	case "after":
		w.Return = store.ReturnAfter
	}
	if err := choose(op, &w); err != nil {
		return w, err
	}
	switch op.Kind {
	case Insert:
		w.Kind = store.Insert
		w.Doc, err = document.Marshal(op.Doc)
	case Replace:
		w.Kind = store.Replace
		w.Doc, err = document.Marshal(op.Doc)
	case Delete:
		w.Kind = store.Delete
	default:
		w.Kind = store.Update
		w.Update, err = mql.CompileUpdate(op.Update, op.ArrayFilters)
	}
	return w, err
}

// choose says which document is meant.
func choose(op *Op, w *store.Op) (err error) {
	switch {
	case op.Kind == Insert:
		return nil
	case op.ID == nil:
		w.Filter, err = mql.Compile(op.Filter)
		return err
	case op.Kind != Replace:
		if w.ID, err = document.MarshalValue(op.ID); err != nil {
			return err
		}
	}
	if op.If != nil {
		w.If, err = mql.Compile(op.If)
	}
	return err
}
