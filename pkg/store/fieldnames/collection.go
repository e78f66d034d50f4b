package fieldnames

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// collection is a collection of records. Of the store's own it has Stats.
type collection struct {
	store.Collection
	reader reader
	writer writer
	names  *document.Names
}

func (c *collection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	return c.reader.Get(ctx, id)
}

func (c *collection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	return c.reader.Find(ctx, q, fn)
}

func (c *collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	return c.reader.Count(ctx, filter, limit)
}

func (c *collection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	return c.reader.Distinct(ctx, path, filter)
}

func (c *collection) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	return c.reader.Explain(ctx, q)
}

func (c *collection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	return c.reader.Aggregate(ctx, p, o, fn)
}

func (c *collection) ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions) (store.AggregateExplanation, error) {
	return c.reader.ExplainAggregate(ctx, p, o)
}

func (c *collection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	return c.writer.Write(ctx, ops, atomic)
}

func (c *collection) Indexes(ctx context.Context) ([]store.Index, error) {
	all, err := c.Collection.Indexes(ctx)
	for i := range all {
		all[i] = named(all[i], c.names.Inverse())
	}
	return all, err
}

func (c *collection) CreateIndex(ctx context.Context, index store.Index) error {
	return c.Collection.CreateIndex(ctx, named(index, c.names))
}

// named is an index of fields by other names.
func named(index store.Index, names *document.Names) store.Index {
	if names == nil {
		return index
	}
	index.Keys = slices.Clone(index.Keys)
	for i := range index.Keys {
		index.Keys[i].Path = names.Path(index.Keys[i].Path)
	}
	index.Partial = index.Partial.Stored(names)
	return index
}

// reader reads documents of one collection.
type reader struct {
	from  store.Reader
	names *document.Names
	set   set
}

func (r reader) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	doc, err := r.from.Get(ctx, id)
	return r.names.Inverse().Document(doc), err
}

func (r reader) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if r.names == nil {
		return r.from.Find(ctx, q, fn)
	}
	var read []byte
	return r.from.Find(ctx, r.query(q), func(doc bson.Raw) error {
		read = r.names.Inverse().AppendDocument(read[:0], doc)
		return fn(read)
	})
}

func (r reader) query(q store.Query) store.Query {
	if len(q.After) == len(q.Sort) { // else the store refuses it
		q.After = slices.Clone(q.After)
		for i, f := range q.Sort {
			q.After[i] = r.names.At(f.Path).Value(q.After[i])
		}
	}
	q.Filter, q.Sort, q.Project = q.Filter.Stored(r.names), q.Sort.Stored(r.names), q.Project.Stored(r.names)
	return q
}

func (r reader) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	return r.from.Count(ctx, filter.Stored(r.names), limit)
}

func (r reader) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	values, err := r.from.Distinct(ctx, r.names.Path(path), filter.Stored(r.names))
	if back := r.names.At(path).Inverse(); back != nil {
		for i := range values {
			values[i] = back.Value(values[i])
		}
		slices.SortFunc(values, document.Compare)
	}
	return values, err
}

func (r reader) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	return r.from.Explain(ctx, r.query(q))
}

func (r reader) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	stored, err := p.Stored(r.names, r.set.of)
	if err != nil {
		return err
	}
	return r.from.Aggregate(ctx, stored, o, fn)
}

func (r reader) ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions) (store.AggregateExplanation, error) {
	stored, err := p.Stored(r.names, r.set.of)
	if err != nil {
		return store.AggregateExplanation{}, err
	}
	return r.from.ExplainAggregate(ctx, stored, o)
}

// writer writes documents of one collection.
type writer struct {
	to    store.Writer
	names *document.Names
}

func (w writer) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if w.names == nil {
		return w.to.Write(ctx, ops, atomic)
	}
	stored := slices.Clone(ops)
	for i := range stored {
		if err := w.op(&stored[i]); err != nil {
			return nil, err
		}
	}
	results, err := w.to.Write(ctx, stored, atomic)
	for i := range results {
		results[i].Doc = w.names.Inverse().Document(results[i].Doc)
		w.name(results[i].Err)
	}
	w.name(err)
	return results, err
}

func (w writer) op(op *store.Op) (err error) {
	op.Doc = w.names.Document(op.Doc)
	op.If, op.Filter, op.Sort, op.Project = op.If.Stored(w.names), op.Filter.Stored(w.names), op.Sort.Stored(w.names), op.Project.Stored(w.names)
	op.Update, err = op.Update.Stored(w.names)
	return err
}

// name has an error name fields as records do. It is changed itself: a transaction gives it once more.
func (w writer) name(err error) {
	var duplicate *store.DuplicateKeyError
	if !errors.As(err, &duplicate) {
		return
	}
	duplicate.Paths = slices.Clone(duplicate.Paths)
	for i, path := range duplicate.Paths {
		duplicate.Paths[i] = w.names.Inverse().Path(path)
	}
}
