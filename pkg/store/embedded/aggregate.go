package embedded

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// Aggregate runs a pipeline on the collection.
func (c *Collection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	_, err := c.aggregate(ctx, p, o, fn)
	return err
}

// ExplainAggregate runs a pipeline and tells how.
func (c *Collection) ExplainAggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions,
) (store.AggregateExplanation, error) {
	return c.aggregate(ctx, p, o, nothing)
}

func nothing(bson.Raw) error { return nil }

func (c *Collection) aggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error,
) (_ store.AggregateExplanation, err error) {
	done, err := c.begin(ctx)
	if err != nil {
		return store.AggregateExplanation{}, err
	}
	defer done()
	run := aggregation{store: c.s, options: o}
	if len(p.Collections()) > 0 {
		m := c.s.moment(c.name.database)
		defer closeInto(&err, m.snap.Close)
		return run.run(ctx, p, m.finders(c.name.collection), fn)
	}
	st, err := c.state()
	if err != nil {
		return store.AggregateExplanation{}, err
	}
	defer closeInto(&err, st.close)
	return run.run(ctx, p, func(string) (finder, error) { return st, nil }, fn)
}

// finders gives the collections of a moment to a pipeline on the one named.
func (m *moment) finders(own string) func(collection string) (finder, error) {
	return func(collection string) (finder, error) {
		if collection == "" {
			collection = own
		}
		return m.state(collection), nil
	}
}

func (c viewCollection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	_, err := c.aggregate(ctx, p, o, fn)
	return err
}

func (c viewCollection) ExplainAggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions,
) (store.AggregateExplanation, error) {
	return c.aggregate(ctx, p, o, nothing)
}

func (c viewCollection) aggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error,
) (store.AggregateExplanation, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return store.AggregateExplanation{}, err
	}
	defer done()
	run := aggregation{store: c.v.s, options: o}
	return run.run(ctx, p, c.v.m.finders(c.name), fn)
}

// Aggregate runs a pipeline on what the transaction sees.
func (c *txCollection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	_, err := c.aggregate(ctx, p, o, fn)
	return err
}

// ExplainAggregate runs a pipeline and tells how.
func (c *txCollection) ExplainAggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions,
) (store.AggregateExplanation, error) {
	return c.aggregate(ctx, p, o, nothing)
}

func (c *txCollection) aggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error,
) (store.AggregateExplanation, error) {
	if err := c.enter(ctx); err != nil {
		return store.AggregateExplanation{}, err
	}
	run := aggregation{store: c.t.s, options: o}
	e, err := run.run(ctx, p, func(collection string) (finder, error) {
		if collection == "" {
			return c, nil
		}
		other := c.t.collection(collection)
		err := other.enter(ctx)
		return other, err
	}, fn)
	if document.ServerCodeOf(err) != 0 && !run.byCaller { // a server would have ended it
		c.t.fail(err)
	}
	return e, err
}

// aggregation is one run of a pipeline. It is the pipeline.Source.
type aggregation struct {
	store    *Store
	options  store.AggregateOptions
	find     func(collection string) (finder, error) // "" is the pipeline's own
	explain  store.AggregateExplanation
	begun    bool // the pipeline's own documents have been asked for
	byCaller bool // what ended it is an error of the caller's function
}

// finder is a collection in the state that a pipeline runs on.
type finder interface {
	query(ctx context.Context, q store.Query, sortMemory int64, fn func(doc bson.Raw) error) (store.Explanation, error)
	seeks(path string) bool
}

func (a *aggregation) run(
	ctx context.Context, p *pipeline.Pipeline, find func(collection string) (finder, error), fn func(doc bson.Raw) error,
) (store.AggregateExplanation, error) {
	if err := store.CheckPipeline(p); err != nil {
		return store.AggregateExplanation{}, err
	}
	a.find = find
	budget := a.options.Budget()
	budget.Now = a.store.opts.Now()
	err := p.Run(ctx, a, budget, func(doc bson.Raw) error {
		err := fn(doc)
		a.byCaller = err != nil
		return err
	})
	cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if cut && !a.byCaller && ctx.Err() != nil {
		err = store.Ended(ctx)
	}
	return a.explain, err
}

// Find gives the documents of a collection that a stage asks for.
func (a *aggregation) Find(ctx context.Context, collection string, q pipeline.Query, fn func(doc bson.Raw) error) error {
	from, err := a.find(collection)
	if err != nil {
		return err
	}
	e, err := from.query(ctx, store.Query{Filter: q.Filter, Sort: q.Sort, Skip: q.Skip, Limit: q.Limit}, a.options.Memory, fn)
	switch {
	case collection != "":
		a.explain.Uses(collection, e.Indexes...)
	case !a.begun:
		a.begun, a.explain.Explanation = true, e
	}
	if errors.Is(err, errSortMemory) {
		return pipeline.ErrMemory
	}
	return err
}

// Indexed says whether looking up by the value of a path is a seek.
func (a *aggregation) Indexed(_ context.Context, collection, path string) bool {
	from, err := a.find(collection)
	return err == nil && from.seeks(path)
}

func (st *state) query(
	ctx context.Context, q store.Query, sortMemory int64, fn func(doc bson.Raw) error,
) (store.Explanation, error) {
	limited := *st
	limited.sortMemory = sortMemory
	return limited.run(ctx, q, fn)
}

// seeks is true of the first key of an index that has all documents.
func (st *state) seeks(path string) bool {
	if path == "_id" {
		return true
	}
	for _, x := range st.indexes.ready {
		if x.def.Keys[0].Path == path && x.def.Partial == nil && !x.def.Sparse && !x.positional {
			return true
		}
	}
	return false
}

func (c *txCollection) query(
	ctx context.Context, q store.Query, sortMemory int64, fn func(doc bson.Raw) error,
) (store.Explanation, error) {
	limited := *c.st
	limited.sortMemory = sortMemory
	return c.merged(ctx, &limited, q, fn)
}

func (c *txCollection) seeks(path string) bool { return c.st.seeks(path) }
