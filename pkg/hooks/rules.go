package hooks

import (
	"context"
	"errors"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// The names that logs and metrics have for scripts that are no hooks. These have no modules that reach out.
const (
	ruleFilter    = "filter"
	ruleEval      = "eval"
	ruleValidator = "validator"
)

// Filter runs a script that makes a permission filter, and gives the filter object.
func (r *Runner) Filter(ctx context.Context, op *Operation, s *project.Script) (bson.D, error) {
	c := r.call(ctx, op, ruleFilter, s, 0)
	c.Filter = true
	result, err := r.execute(ctx, op, ruleFilter, c)
	if err != nil {
		return nil, err
	}
	doc, ok := result.Value.(bson.D)
	if !ok {
		return nil, r.fail(ctx, op, ruleFilter, &script.Failure{
			Reason: script.Exception, Script: s.Program.Name(), Message: "the script must return a filter object; {} is all records",
		})
	}
	return doc, nil
}

// BadFilter notes in the log that what a script gave is no filter of the collection. The caller is only refused.
func (r *Runner) BadFilter(ctx context.Context, op *Operation, s *project.Script, err error) {
	_ = r.fail(ctx, op, ruleFilter, &script.Failure{
		Reason: script.Exception, Script: s.Program.Name(), Message: "what the script returned is no filter of this collection: " + err.Error(),
	})
}

// Eval asks an expression about each of docs; a doc is nil where the expression gets none. An expression that throws
// holds: what it would hide stays hidden.
func (r *Runner) Eval(ctx context.Context, op *Operation, e project.Eval, docs []bson.Raw) ([]bool, error) {
	c := r.call(ctx, op, ruleEval, e.Script, 0)
	c.Each = make([][]script.Member, len(docs))
	for i, doc := range docs {
		if doc != nil {
			c.Each[i] = []script.Member{{Name: "doc", Value: doc}}
		}
	}
	result, err := r.execute(ctx, op, ruleEval, c)
	out := make([]bool, len(docs))
	switch {
	case err != nil && len(docs) > 1 && errs.From(err).Code == codeFailed: // which one was it?
		for i := range docs {
			one, err := r.Eval(ctx, op, e, docs[i:i+1])
			if err != nil {
				return nil, err
			}
			out[i] = one[0]
		}
		return out, nil
	case err != nil && errs.From(err).Code == codeFailed:
		out[0] = true
		return out, nil
	case err != nil:
		return nil, err
	case len(result.Values) != len(docs):
		return nil, errs.New(errs.Internal, "internal", "internal error").With(errors.New("an expression gave not as many answers as there were records"))
	}
	for i, v := range result.Values {
		out[i] = truthy(v)
	}
	return out, nil
}

// Validate asks a validator about a value of a record, and gives its message; "" is none.
func (r *Runner) Validate(ctx context.Context, op *Operation, s *project.Script, path string, value any, doc bson.D) (string, error) {
	c := r.call(ctx, op, ruleValidator, s, 2)
	c.Args = []any{value}
	c.Ctx = append(c.Ctx,
		script.Member{Name: "path", Value: path}, script.Member{Name: "doc", Value: doc})
	result, err := r.execute(ctx, op, ruleValidator, c)
	if err != nil {
		return "", err
	}
	problems, err := Problems(result.Value)
	switch {
	case err != nil:
		return "", r.fail(ctx, op, ruleValidator, &script.Failure{
			Reason: script.Exception, Script: s.Program.Name(), Message: "a validator returns a message, or nothing: " + err.Error(),
		})
	case len(problems) == 0:
		return "", nil
	}
	return problems[0].Message, nil
}

// truthy says whether a value counts as true in JavaScript.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int32:
		return v != 0
	case int64:
		return v != 0
	case float64:
		return v != 0 && !math.IsNaN(v)
	}
	return true // an object
}
