package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Expr is a compiled expression. It is immutable and safe for concurrent use.
type Expr struct {
	root node
	raw  bson.RawValue
}

// Compile checks an expression and makes it runnable. v is a value as document.MarshalValue takes it, vars are the names
// of variables that are bound outside (Env.Vars). Only the operators of the table are taken, at every depth; everything
// else is errs.Invalid with code "bad_expression". What is constant is computed at once; if that fails, the error is what
// Eval would give.
func Compile(v any, vars ...string) (*Expr, error) {
	c, raw, err := newCompiler(v, vars)
	if err != nil {
		return nil, err
	}
	n, err := c.expression(raw)
	if err != nil {
		return nil, err
	}
	var f folder
	if n, err = f.fold(n); err != nil {
		return nil, err
	}
	return &Expr{root: n, raw: c.forServer(raw)}, nil
}

// Raw gives the expression for a MongoDB server: what Compile has checked. Constant regular
// expressions are rewritten so that the server reads them as is done here.
func (e *Expr) Raw() bson.RawValue { return e.raw }

// Eval computes the expression. Type 0 is the value of what is missing. The result may alias the document, the
// expression and what Env has computed: copy what is to outlive the next Reset.
func (e *Expr) Eval(env *Env) (bson.RawValue, error) {
	v, err := e.root.eval(env)
	if err != nil {
		env.stack = env.stack[:0]
		return missing, err
	}
	if len(v.Value) > document.MaxSize {
		return missing, errs.New(errs.Limit, "result_too_large", "an expression makes more than 16 MiB of one document").
			With(document.ServerCode(10334))
	}
	return v, nil
}

// Constant gives the value if it does not depend on the document.
func (e *Expr) Constant() (bson.RawValue, bool) {
	c, ok := e.root.(*constant)
	if !ok {
		return missing, false
	}
	return c.v, true
}

// Paths calls fn for every field path that the expression reads, of the document ("ROOT") and of the variables that are
// bound outside. An empty path is the whole value.
func (e *Expr) Paths(fn func(variable, path string)) {
	walkPaths(e.root, fn)
}

func walkPaths(n node, fn func(variable, path string)) {
	if r, ok := n.(reading); ok {
		r.reads(fn)
	}
	_ = n.each(func(p *node) error {
		walkPaths(*p, fn)
		return nil
	})
}

// reading is a node that reads the document or a variable itself.
type reading interface {
	reads(fn func(variable, path string))
}
