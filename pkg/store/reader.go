package store

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// Reader reads one consistent state of a collection per call.
type Reader interface {
	// Get returns the document whose _id is id, or errs.ErrNotFound. The caller owns the result.
	Get(ctx context.Context, id bson.RawValue) (bson.Raw, error)
	// Find calls fn for each match in order and stops at the first error of fn, which it returns. The document
	// is valid only during the call: copy what outlives it. fn must not call the store's writers.
	Find(ctx context.Context, q Query, fn func(doc bson.Raw) error) error
	// Count counts the matches, up to limit (0: all).
	Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error)
	// Distinct gives the different values that path has in the matches, in document.Compare order. Of a list it
	// gives the elements (one level), and of values that are equal (1 and 1.0) any one. More than 16 MiB of
	// values are errs.Limit; what can't be a path is errs.Invalid (code "bad_path").
	Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error)
	// Explain tells how Find would run q, by running it.
	Explain(ctx context.Context, q Query) (Explanation, error)

	// Aggregate calls fn for each result of p, in order, and stops at the first error of fn, which it returns. All that
	// p reads, of other collections of the database, too, is one state. The result is valid only during the call: copy
	// what outlives it. fn must not call the store's writers.
	//
	// Collections that do not exist are empty. If p can't be computed for a document, that is errs.Invalid (code
	// "expression_failed" or "pipeline_failed") with the document.ServerCode of a MongoDB server among its causes; too
	// much memory is pipeline.ErrMemory. Both end a transaction. What o does not allow is errs.Limit (code
	// "too_many_results").
	Aggregate(ctx context.Context, p *pipeline.Pipeline, o AggregateOptions, fn func(doc bson.Raw) error) error
	// ExplainAggregate tells how Aggregate would run p, by running it.
	ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o AggregateOptions) (AggregateExplanation, error)
}

// Query says which documents Find returns, in which order.
type Query struct {
	Filter *mql.Filter // nil: all
	// Sort has up to 32 fields; empty for any order. Callers who page append _id to make it total. A document with different
	// lists in two fields of the sort is refused (errs.Invalid, code "parallel_sort") where the documents have to be
	// sorted; it may pass where an index or an earlier field of the sort decides the order.
	Sort mql.Sort
	// After is the sort key (Sort.Key) of the last document of the page before: Find starts behind it.
	// It has as many values as Sort has fields; empty: from the start.
	After []bson.RawValue
	Skip  int64
	Limit int64 // 0: no limit
	// Project says which parts of each document Find gives; nil: all of it.
	Project *mql.Projection
}

// Explanation is how a query ran.
type Explanation struct {
	// Indexes are the names of those used, several where branches of an $or have one each. "_id" is the primary key;
	// none is a scan of the whole collection.
	Indexes      []string
	KeysExamined int64
	DocsExamined int64
	Returned     int64
	SortInMemory bool
}
