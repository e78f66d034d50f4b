package records

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// AggregateParams are the parameters of an aggregation.
type AggregateParams struct {
	query.Where        // before the first stage
	Stages      bson.A // constants as Extended JSON or as they are
	Limit       *int64 // of results; nil: the collection's default
}

// Results are what an aggregation gives: documents whose fields have the names of the store.
type Results struct {
	Items   []bson.Raw
	Limit   int64
	HasMore bool
}

// maxAggregateMemory is what the stages of one aggregation hold at once. The service's own are bounded by it, too.
const maxAggregateMemory = 64 << 20

// AppendJSON appends the answer to dst.
func (r *Results) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"items":[`...)
	for i, doc := range r.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = document.AppendJSONValue(dst, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, nil)
	}
	dst = strconv.AppendInt(append(dst, `],"limit":`...), r.Limit, 10)
	dst = strconv.AppendBool(append(dst, `,"offset":0,"hasMore":`...), r.HasMore)
	return append(dst, '}')
}

// maxPipelines is how many pipelines run at once: what one holds is bounded, and so is what they hold together. Others wait, and of one caller all but half of that.
const maxPipelines = 4

var errNoTurn = &errs.Error{
	Kind: errs.Throttled, Code: "too_many_aggregations", RetryAfter: time.Second,
	Message: "other aggregations are running: try again",
}

var errNoAggregate = errs.New(errs.Invalid, "query_limit", "aggregate is off in this collection (queryLimits.allowAggregate)")

// Aggregate runs a pipeline on the records that the caller may read, without what is hidden from them.
func (s *Service) Aggregate(ctx context.Context, c *Call, p AggregateParams) (*Results, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return nil, err
	}
	if !g.Aggregate {
		return nil, withoutFlag(c, "aggregate")
	}
	if !c.allowsAggregate() {
		return nil, errNoAggregate
	}
	q, err := s.resolver(ctx, c, g).Query(query.Params{Where: p.Where, Limit: p.Limit}, nil)
	if err != nil {
		return nil, err
	}
	compiled, err := s.guarded(ctx, c, g, q, p.Stages)
	if err != nil {
		return nil, err
	}
	return s.results(ctx, c, compiled, q.Limit)
}

// allowsAggregate says what the collection's limits say. What they leave open is allowed to those who show a credential.
func (c *Call) allowsAggregate() bool {
	if allow := c.Collection.Limits.AllowAggregate; allow != nil {
		return *allow
	}
	return c.Principal.Kind != access.KindAnonymous
}

// guarded makes the pipeline that runs of the caller's.
func (s *Service) guarded(ctx context.Context, c *Call, g access.Grant, q store.Query, stages bson.A) (*pipeline.Pipeline, error) {
	guard := query.Guard{MaxStages: c.Collection.Limits.MaxPipelineStages, Other: func(name string) (query.Source, error) {
		if !g.Lookup {
			return query.Source{}, withoutFlag(c, "lookup")
		}
		near, err := s.neighbor(ctx, c, name)
		if err != nil {
			return query.Source{}, err
		}
		return source(near.call, near.grant), nil
	}}
	list, err := guard.Pipeline(source(c, g), q.Filter, stages)
	if err != nil {
		return nil, err
	}
	list = append(list, bson.D{{Key: "$limit", Value: q.Limit + 1}}) // one more, to know whether there is one
	return pipeline.Compile(list, pipeline.Options{Stages: pipeline.Scripts, Stored: func(name string) string {
		if other := c.Project.Collections[name]; other != nil {
			return other.StoredName()
		}
		return name
	}})
}

// source is a collection as far as a caller may read it.
func source(c *Call, g access.Grant) query.Source {
	return query.Source{Paths: newResolver(c, g), Filter: g.Filter, Undeclared: c.Collection.Undeclared}
}

// results runs a pipeline, and cuts what it gives as the page of a list is cut.
func (s *Service) results(ctx context.Context, c *Call, p *pipeline.Pipeline, limit int64) (*Results, error) {
	out := &Results{Limit: limit, Items: []bson.Raw{}}
	if limit == 0 {
		return out, nil
	}
	size := 0
	err := s.runPipeline(ctx, c, p, func(doc bson.Raw) error {
		size += len(doc)
		if int64(len(out.Items)) == limit || size > maxPageSize && len(out.Items) > 0 {
			out.HasMore = true
			return errPageFull
		}
		out.Items = append(out.Items, bytes.Clone(doc))
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return out, nil
}

// runPipeline runs a pipeline within the collection's time for a query.
func (s *Service) runPipeline(ctx context.Context, c *Call, p *pipeline.Pipeline, fn func(doc bson.Raw) error) error {
	ctx, cancel := s.paced(ctx, c)
	defer cancel()
	leave, err := s.pipelines.take(ctx, whose(c))
	if err != nil {
		if errors.Is(context.Cause(ctx), errTooSlow) {
			return errNoTurn
		}
		return err
	}
	defer leave()
	err = s.collection(ctx, c).Aggregate(ctx, p, store.AggregateOptions{Memory: maxAggregateMemory}, fn)
	if e := errs.From(err); e != nil && e.Kind == errs.Limit { // of a query, not of a write
		return &errs.Error{Kind: errs.Invalid, Code: e.Code, Message: e.Message, Cause: e}
	}
	return s.storeError(ctx, err)
}
