package records

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// scriptAggregate is what one aggregation of a script may use.
var scriptAggregate = store.AggregateOptions{Memory: 64 << 20, Results: maxScriptDocs, ResultBytes: maxPageSize} //nolint:gochecknoglobals // never written

// errAggregateAsUser: what a caller may see has to be worked out for every field that any stage names.
var errAggregateAsUser = errs.New(errs.Invalid, codeBadArgument,
	"aggregate works as the service only, and what it gives may be hidden from the caller: leave asUser out, or read with find")

// aggregate runs a pipeline on the records as they are stored. It reads the collections of the project, and nothing else of
// its database.
func (t target) aggregate(ctx context.Context, stages any) (any, error) {
	if t.asUser {
		return nil, errAggregateAsUser
	}
	list, ok := stages.(bson.A)
	if !ok {
		return nil, errs.New(errs.Invalid, codeBadArgument, "a pipeline must be a list of stages")
	}
	p, err := pipeline.Compile(list, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		return nil, err
	}
	for _, name := range p.Collections() {
		if _, ok := t.call.Project.Collections[name]; !ok {
			return nil, errs.New(errs.NotFound, errs.ErrCollectionNotFound.Code, "the pipeline reads a collection that the project does not have: %.64q", name)
		}
	}
	ctx, cancel := withDeadline(ctx, t.call)
	defer cancel()
	out := bson.A{}
	err = t.s.collection(ctx, t.call).Aggregate(ctx, p, scriptAggregate, func(doc bson.Raw) error {
		d, err := document.Unmarshal(doc)
		out = append(out, d)
		return err
	})
	if err != nil {
		return nil, storeError(ctx, err)
	}
	return out, nil
}
