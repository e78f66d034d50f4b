package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// Source is where documents come from: one consistent state of some collections.
type Source interface {
	// Find calls fn for each document that q wants, in order, and stops at the first error of fn, which it returns. The
	// document is valid only during the call. "" is the pipeline's own collection.
	Find(ctx context.Context, collection string, q Query, fn func(doc bson.Raw) error) error
	// Indexed says whether looking up documents by the value of a path is quick.
	Indexed(ctx context.Context, collection, path string) bool
}

// Budget is what one run may use.
type Budget struct {
	Memory      int64          // bytes that stages hold together; 0: 100 MiB
	ResultBytes int64          // of all results together; 0: no limit
	Results     int64          // number of results; 0: no limit
	Now         time.Time      // $$NOW
	Random      func() float64 // for $rand and $sample; nil: that of package math/rand/v2
	_           struct{}       // by name only
}

// DefaultMemory is how much stages may hold together where a Budget says nothing.
const DefaultMemory = 100 << 20

const (
	docsPerCheck = 128
	keptBuffer   = 1 << 20 // bytes; a larger buffer is not kept for the next document
)

// Run runs the pipeline on src and calls fn for each result, which is valid only during the call. It ends with the first
// error of fn. Too much memory is ErrMemory, and what Budget.Bound refuses its errors.
func (p *Pipeline) Run(ctx context.Context, src Source, b Budget, fn func(doc bson.Raw) error) error {
	if b.Memory <= 0 {
		b.Memory = DefaultMemory
	}
	r := &run{ctx: ctx, src: src, shared: &shared{budget: b}}
	vars, err := r.bound(p.let)
	if err != nil {
		return err
	}
	r.env = r.newEnv(vars)
	return r.pipe(p.chain, "", b.Bound(fn))
}

// Bound gives fn with the limits of results before it, for results that another engine makes, too.
func (b Budget) Bound(fn func(doc bson.Raw) error) func(doc bson.Raw) error {
	var bytes, results int64
	return func(doc bson.Raw) error {
		bytes += int64(len(doc))
		results++
		switch {
		case deeper(doc, maxResultDepth):
			return errs.New(errs.Limit, "result_too_deep", "a result of the aggregation is nested more than %d levels deep: make it flatter", maxResultDepth).
				With(codeOverflow)
		case len(doc) > document.MaxSize:
			return ErrResultSize
		case b.Results > 0 && results > b.Results:
			return errs.New(errs.Limit, "too_many_results", "the aggregation gives more than %d results: add a $limit", b.Results)
		case b.ResultBytes > 0 && bytes > b.ResultBytes:
			return errs.New(errs.Limit, "too_many_results", "the aggregation gives more than %d bytes: choose fields with $project or add a $limit",
				b.ResultBytes)
		}
		return fn(doc)
	}
}

const maxResultDepth = 200 // objects and lists in a document, as servers have it

// deeper says whether there are more levels of objects and lists in doc.
func deeper(doc []byte, levels int) bool {
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			continue
		}
		if levels == 0 || deeper(v.Value, levels-1) {
			return true
		}
	}
	return false
}

// sink is a part of a run that takes documents.
type sink interface {
	// push takes a document, which is valid only during the call. errEnough says that no more are wanted.
	push(doc bson.Raw) error
	// end says that there are no more documents.
	end() error
}

// errEnough, from a sink, ends what feeds it early. It never leaves this package.
var errEnough = errors.New("enough")

// run is one run of a pipeline, or of one that is part of a stage.
type run struct {
	ctx context.Context //nolint:containedctx // lives as long as the call that made it
	src Source
	env *expr.Env
	*shared
}

// shared is what a run has in common with those of inner pipelines.
type shared struct {
	budget Budget
	held   int64 // bytes
	docs   uint
}

func (r *run) newEnv(vars []bson.RawValue) *expr.Env {
	return &expr.Env{Vars: vars, Now: r.budget.Now, Random: r.budget.Random, Memory: int(r.budget.Memory), Ended: r.ctx.Err}
}

// with is the run of an inner pipeline that has further variables, which come before those there are.
func (r *run) with(vars []bson.RawValue) *run {
	inner := *r
	inner.env = r.newEnv(append(slices.Clip(vars), r.env.Vars...))
	return &inner
}

// pipe runs a chain on a collection.
func (r *run) pipe(c chain, collection string, fn func(doc bson.Raw) error) error {
	to := r.open(c.rest, output(fn))
	err := r.src.Find(r.ctx, collection, c.lead, func(doc bson.Raw) error { return r.give(to, doc) })
	switch {
	case errors.Is(err, mql.ErrParallelSort):
		return coded(err)
	case unlessEnough(err) != nil:
		return err
	}
	return finish(to)
}

// open connects stages.
func (r *run) open(stages []stage, to sink) sink {
	for _, s := range slices.Backward(stages) {
		to = s.open(r, to)
	}
	return to
}

// output is the sink at the end.
type output func(doc bson.Raw) error

func (o output) push(doc bson.Raw) error { return o(doc) }

func (o output) end() error { return nil }

// finish ends a sink.
func finish(to sink) error { return unlessEnough(to.end()) }

// unlessEnough is err, but nil where that only says that no more documents are wanted.
func unlessEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// giveAll passes on what one makes of each of the documents of a stage that has held them, as long as any are wanted.
func giveAll[T any](list []T, one func(T) error) error {
	for _, v := range list {
		if err := one(v); err != nil {
			return unlessEnough(err)
		}
	}
	return nil
}

// give passes a document on. Every document that is made goes through it, so that a run ends with its context.
func (r *run) give(to sink, doc bson.Raw) error {
	if r.docs++; r.docs%docsPerCheck == 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	return to.push(doc)
}

// hold counts memory that a stage keeps; release gives it back.
func (r *run) hold(bytes int) error {
	if r.held += int64(bytes); r.held > r.budget.Memory {
		return ErrMemory
	}
	return nil
}

func (r *run) release(bytes int) { r.held -= int64(bytes) }

func (r *run) random() float64 {
	if r.budget.Random != nil {
		return r.budget.Random()
	}
	return rand.Float64() //nolint:gosec // no secret comes of it
}

// reuse gives an empty buffer, b itself unless it has grown large.
func reuse(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	return b[:0]
}
