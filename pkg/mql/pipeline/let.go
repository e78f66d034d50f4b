package pipeline

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// codeLetField is a server's for an expression of a let that reads a document, of which there is none yet.
const codeLetField = 4890500

// bindAll compiles the variables that a pipeline is given from outside.
func (c *compiler) bindAll(let bson.D) (values []*expr.Expr, err error) {
	for _, e := range let {
		if slices.Contains(c.vars, e.Key) {
			return nil, bad(codeFailedToParse, "let: the variable %s comes twice", document.Readable(e.Key))
		}
		if err := expr.CheckVariable(e.Key); err != nil {
			return nil, err
		}
		x, err := expr.Compile(e.Value)
		if err != nil {
			return nil, err
		}
		reads := false
		x.Paths(func(string, string) { reads = true })
		if reads {
			return nil, bad(codeLetField, "let: the variable %s is of no document, and can't name a field of one", document.Readable(e.Key))
		}
		c.vars, values = append(c.vars, e.Key), append(values, x)
	}
	return values, nil
}

// bound computes the variables of a run.
func (r *run) bound(let []*expr.Expr) ([]bson.RawValue, error) {
	var values []bson.RawValue
	for _, x := range let {
		v, err := x.Eval(r.newEnv(nil)) // each its own: the values last as long as the run
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
