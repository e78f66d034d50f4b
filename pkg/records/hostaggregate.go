package records

import (
	"cmp"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// scriptAggregate is what one aggregation of a script may use.
var scriptAggregate = store.AggregateOptions{Memory: maxAggregateMemory, Results: maxScriptDocs, ResultBytes: maxPageSize} //nolint:gochecknoglobals // never written

// aggregate runs a pipeline: asUser what the caller could ask for, else on the records as they are stored. It reads the
// collections of the project, and nothing else of its database.
func (t target) aggregate(ctx context.Context, stages any) (any, error) {
	list, ok := stages.(bson.A)
	if !ok {
		return nil, errs.New(errs.Invalid, codeBadArgument, "a pipeline must be a list of stages")
	}
	if t.asUser {
		return t.aggregateAsUser(ctx, list)
	}
	var unknown error
	p, err := pipeline.Compile(list, pipeline.Options{Stages: pipeline.Scripts, Stored: func(name string) string {
		c, ok := t.call.Project.Collections[name]
		if !ok {
			unknown = cmp.Or(unknown, error(errs.New(errs.NotFound, errs.ErrCollectionNotFound.Code,
				"the pipeline reads a collection that the project does not have: %.64q", name)))
			return name
		}
		return c.StoredName()
	}})
	if err := cmp.Or(err, unknown); err != nil {
		return nil, err
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
		return nil, t.s.storeError(ctx, err)
	}
	return out, nil
}

func (t target) aggregateAsUser(ctx context.Context, stages bson.A) (any, error) {
	limit := int64(t.call.Collection.Limits.List.MaxLimit)
	res, err := t.s.Aggregate(ctx, t.call, AggregateParams{Stages: stages, Limit: &limit})
	if err != nil {
		return nil, err
	}
	out := make(bson.A, len(res.Items))
	for i, doc := range res.Items {
		if out[i], err = document.Unmarshal(doc); err != nil {
			return nil, err
		}
	}
	return out, nil
}
