package mongo

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// Aggregate lets the server run a pipeline.
func (c *collection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	if err := store.CheckPipeline(p); err != nil {
		return err
	}
	if c.tx != nil && isRunHere(p) || c.view != nil && c.view.lacks(p.Collections()) {
		return c.runHere(ctx, p, o, fn)
	}
	bounded := o.Budget().Bound(fn)
	err := c.readAll(ctx, p, func(ctx context.Context) (found bool, err error) {
		cursor, err := retrySnapshot(ctx, func() (*mongo.Cursor, error) {
			return c.existing().Aggregate(ctx, rawPipeline(p), aggregateOptions(ctx, p))
		})
		if err != nil {
			return false, err
		}
		defer closeCursor(ctx, cursor)
		for cursor.Next(ctx) {
			found = true
			if err := ctx.Err(); err != nil { // Next does not look while it has documents left
				return found, err
			}
			if err := bounded(cursor.Current); err != nil {
				return found, &callbackError{err}
			}
		}
		return found, cursor.Err()
	})
	return c.pipelineError(ctx, p, o, err)
}

// isRunHere says whether a server refuses a pipeline in a transaction.
func isRunHere(p *pipeline.Pipeline) bool {
	for _, stage := range p.Raw() {
		if bytes.Contains(stage, []byte("\x03$unionWith\x00")) { // at any depth; a constant that looks like it does no harm
			return true
		}
	}
	return false
}

// runHere runs a pipeline in this process, on what its transaction or view reads.
func (c *collection) runHere(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	byCaller := false
	budget := o.Budget()
	budget.Now = time.Now()
	err := p.Run(ctx, source{c}, budget, func(doc bson.Raw) error {
		err := fn(doc)
		byCaller = err != nil
		return err
	})
	switch {
	case err == nil || byCaller:
		return err
	case document.ServerCodeOf(err) != 0:
		if c.tx != nil {
			c.tx.end(err) // as the server would have done
		}
		return err
	case ctx.Err() != nil:
		return store.Ended(ctx)
	default:
		return err
	}
}

// readAll is read for a pipeline. A view makes sure that all collections are what they were.
func (c *collection) readAll(ctx context.Context, p *pipeline.Pipeline, fn func(ctx context.Context) (found bool, err error)) error {
	return c.run(ctx, func(ctx context.Context) error {
		if _, err := c.readAgain(ctx, fn); err != nil || c.view == nil {
			return err
		}
		names := p.Collections()
		if c.view.had(c.name) {
			names = append([]string{c.name}, names...)
		}
		return c.view.stillHas(ctx, names...)
	})
}

// existing is the collection to read from. Of one that came into being behind a view the server has no snapshot: it is
// asked for one that never is.
func (c *collection) existing() *mongo.Collection {
	if c.view != nil && !c.view.had(c.name) {
		return c.database.collection("svc.never", c.in).snapshot
	}
	return c.snapshot
}

func aggregateOptions(ctx context.Context, p *pipeline.Pipeline) *options.AggregateOptionsBuilder {
	opts := options.Aggregate().SetAllowDiskUse(false).SetBatchSize(maxBatch)
	if let := p.Let(); len(let) > 0 {
		opts.SetLet(let)
	}
	if ms := millisLeft(ctx); ms > 0 {
		// The driver leaves it out where it gives a cursor. The end of ctx kills the session, but that may not get through.
		opts.SetCustom(bson.M{"maxTimeMS": ms}) //nolint:staticcheck // there is no other way
	}
	return opts
}

// millisLeft is a little less than the time to the deadline of ctx, so that the server itself says that it is over; at
// least 1, and 0 if there is none that a server can be told.
func millisLeft(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline)
	left -= min(left/10, headStart)
	if !ok || left.Milliseconds() > math.MaxInt32 {
		return 0
	}
	return max(1, left.Milliseconds())
}

const headStart = 50 * time.Millisecond

// Codes of the server for pipelines.
const (
	codeInternalError      = 1
	codeUnknownError       = 8
	codeExceededMemory     = 146
	codeExceededNoDisk     = 292
	codeBufferTooLarge     = 13548
	codeFacetTooLarge      = 4031700
	codeLookupTooLarge     = 4568
	codeGraphLookupTooMuch = 40099
	codeRegexGaveUp        = 51156
)

// unknownParts is what a server says of a pipeline with something in it that its version lacks: a command, a stage, an
// operator, an accumulator.
var unknownParts = []int32{115, 168, 238, 15952, 31325, 40324} //nolint:gochecknoglobals // a constant

var errUnknownPart = errs.New(errs.Invalid, "pipeline_unknown", "the MongoDB server lacks a part of this aggregation, which newer versions have")

// errRegexGaveUp is the error of an expression with a pattern that goes back so often that the server's PCRE gives up.
var errRegexGaveUp = errs.New(errs.Invalid, "pattern_too_slow",
	"a regular expression of the aggregation takes the store too many steps for a text: write it with no repeat inside of another, or give it shorter texts")

// pipelineError replaces a failure of a pipeline that only the server knows how to tell by what the same pipeline, run here
// until it fails, says of it. In a transaction it can't be run again, as the server has ended that.
func (c *collection) pipelineError(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, err error) error {
	known := pipelineFailure(err)
	switch {
	case known == nil:
		return err
	case c.tx != nil:
		if errors.Is(c.tx.ended, err) {
			c.tx.ended = known
		}
		return known
	case errs.From(known).Code != codePipelineFailed:
		return known
	}
	found := p.Run(ctx, source{c}, o.Budget(), func(bson.Raw) error { return nil })
	if document.ServerCodeOf(found) != 0 {
		return found
	}
	if ended := store.Ended(ctx); ended != nil {
		return ended
	}
	return known
}

const codePipelineFailed = "pipeline_failed"

// pipelineFailure gives the port's error for what the server says of a pipeline; nil if err, as translate gave it, is
// nothing of that kind.
func pipelineFailure(err error) error {
	var server mongo.CommandError
	if !errors.As(err, &server) {
		return nil
	}
	switch server.Code {
	case codeExceededMemory, codeExceededNoDisk, codeGraphLookupTooMuch:
		return pipeline.ErrMemory
	case codeObjectTooLarge, codeBufferTooLarge, codeFacetTooLarge, codeLookupTooLarge:
		return pipeline.ErrResultSize
	case codeInternalError, codeUnknownError:
		return nil
	case codeRegexGaveUp:
		return errRegexGaveUp.With(document.ServerCode(server.Code))
	}
	switch code := document.ServerCode(server.Code); {
	case slices.Contains(unknownParts, server.Code):
		return errUnknownPart.With(code)
	case errors.Is(err, mql.ErrParallelSort):
		return mql.ErrParallelSort.With(code)
	case errs.KindOf(err) == errs.Internal:
		return pipeline.Failure(code)
	default:
		return nil
	}
}

// source lets a pipeline that is run here read from the server.
type source struct{ own *collection }

// Find gives the documents of a collection that a stage asks for.
func (s source) Find(ctx context.Context, name string, q pipeline.Query, fn func(doc bson.Raw) error) error {
	from := s.own
	if name != "" {
		from = s.own.database.collection(name, s.own.in)
		from.view, from.tx = s.own.view, s.own.tx
	}
	return from.Find(ctx, store.Query{Filter: q.Filter, Sort: q.Sort, Skip: q.Skip, Limit: q.Limit}, fn)
}

// Indexed is true: the server knows, and nothing but time hangs on it.
func (s source) Indexed(context.Context, string, string) bool { return true }

// rawPipeline is what the server is sent for a pipeline: its filters are guarded as those of queries are (rawFilter).
//
// A result of more than 16 MiB that comes of a $group or $lookup at the end makes servers cut the connection without a word
// (seen on 6.0), and the driver asks again and again. Behind a stage that changes nothing they say so.
func rawPipeline(p *pipeline.Pipeline) bson.A {
	stages := make(bson.A, 0, len(p.Raw())+1)
	last := ""
	for _, stage := range p.Raw() {
		if e, err := stage.IndexErr(0); err == nil {
			last = e.Key()
		}
		stages = append(stages, guardStage(stage))
	}
	if last == "$group" || last == "$lookup" {
		stages = append(stages, bson.D{{Key: "$redact", Value: "$$KEEP"}})
	}
	return stages
}

func guardStage(stage bson.Raw) any {
	e, err := stage.IndexErr(0)
	if err != nil {
		return stage
	}
	options, isObject := e.Value().DocumentOK()
	switch {
	case !isObject || !hasIndexTrap(options):
		return stage
	case e.Key() == "$match":
		return bson.D{{Key: e.Key(), Value: guard(options)}}
	case e.Key() == "$lookup" || e.Key() == "$unionWith" || e.Key() == "$facet" || e.Key() == "$graphLookup":
		return bson.D{{Key: e.Key(), Value: guardOptions(options)}}
	default:
		return stage
	}
}

// guardOptions guards the filters and pipelines in the options of a stage.
func guardOptions(options bson.Raw) bson.D {
	d := bson.D{}
	elements, _ := options.Elements()
	for _, e := range elements {
		filter, isObject := e.Value().DocumentOK()
		stages, isList := e.Value().ArrayOK()
		switch {
		case isObject && e.Key() == "restrictSearchWithMatch":
			d = append(d, bson.E{Key: e.Key(), Value: guard(filter)})
		case isList: // a pipeline: no other option is a list
			d = append(d, bson.E{Key: e.Key(), Value: guardStages(stages)})
		default:
			d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return d
}

func guardStages(list bson.RawArray) bson.A {
	stages := bson.A{}
	values, _ := list.Values()
	for _, v := range values {
		stages = append(stages, guardStage(v.Document()))
	}
	return stages
}
