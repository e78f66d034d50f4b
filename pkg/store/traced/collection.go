package traced

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/tracing"
)

// collection has spans for what reads and writes documents, and none for its indexes and figures.
type collection struct {
	readerWriter
	store.Indexer
	own store.Collection
}

func (c *collection) Stats(ctx context.Context) (store.Stats, error) { return c.own.Stats(ctx) }

// keeping is a collection that is a store.ImageKeeper, too.
type keeping struct {
	*collection
	store.ImageKeeper
}

type readerWriter struct {
	reader
	to store.Writer
}

func (c *readerWriter) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if !tracing.Records(ctx) {
		return c.to.Write(ctx, ops, atomic)
	}
	ctx, span := c.begin(ctx, nameOf(ops), tracing.Count(len(ops)))
	results, err := c.to.Write(ctx, ops, atomic)
	failed := err
	for i := 0; failed == nil && i < len(results); i++ {
		failed = results[i].Err
	}
	span.End(failed)
	return results, err
}

// nameOf is the word for a write: that of its ops, if they are of one kind.
func nameOf(ops []store.Op) string {
	for i := range ops {
		if ops[i].Kind != ops[0].Kind {
			return "write"
		}
	}
	if len(ops) > 0 {
		switch ops[0].Kind {
		case store.Insert:
			return "insert"
		case store.Replace:
			return "replace"
		case store.Delete:
			return "delete"
		case store.Update:
			return "update"
		}
	}
	return "write"
}

type reader struct {
	from store.Reader
	scope
}

func (r *reader) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	ctx, span := r.begin(ctx, "get")
	doc, err := r.from.Get(ctx, id)
	span.End(err)
	return doc, err
}

func (r *reader) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	ctx, span, fn, calls := r.calling(ctx, "find", fn)
	err := r.from.Find(ctx, q, fn)
	calls.end(span, err)
	return err
}

func (r *reader) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	ctx, span := r.begin(ctx, "count")
	n, err := r.from.Count(ctx, filter, limit)
	span.End(err)
	return n, err
}

func (r *reader) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	ctx, span := r.begin(ctx, "distinct")
	values, err := r.from.Distinct(ctx, path, filter)
	span.End(err)
	return values, err
}

func (r *reader) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	ctx, span := r.begin(ctx, "explain")
	how, err := r.from.Explain(ctx, q)
	span.End(err)
	return how, err
}

func (r *reader) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	ctx, span, fn, calls := r.calling(ctx, "aggregate", fn)
	err := r.from.Aggregate(ctx, p, o, fn)
	calls.end(span, err)
	return err
}

func (r *reader) ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions) (store.AggregateExplanation, error) {
	ctx, span := r.begin(ctx, "explain")
	how, err := r.from.ExplainAggregate(ctx, p, o)
	span.End(err)
	return how, err
}

// calls are those of the function that a read gives its documents to.
type calls struct {
	n   int64
	err error // with which the function stopped the read
}

// calling begins the span of a read that calls fn for each document, and has fn's calls be counted; they are nil where there is no span.
func (r *reader) calling(ctx context.Context, operation string, fn func(doc bson.Raw) error) (context.Context, tracing.Span, func(doc bson.Raw) error, *calls) {
	if !tracing.Records(ctx) {
		return ctx, tracing.Span{}, fn, nil
	}
	ctx, span := r.begin(ctx, operation)
	c := new(calls)
	return ctx, span, func(doc bson.Raw) error {
		c.n++
		c.err = fn(doc)
		return c.err
	}, c
}

// end ends the span of a read.
func (c *calls) end(span tracing.Span, err error) {
	if c == nil {
		return
	}
	span.Set(tracing.Returned(c.n))
	span.End(unless(err, c.err))
}

// unless is err, but for the one that the store was given by its caller, such as of one who has read enough, or who takes a trial back: that is no
// failure of the operation.
func unless(err, callers error) error {
	if callers != nil && errors.Is(err, callers) {
		return nil
	}
	return err
}
