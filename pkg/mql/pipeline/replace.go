package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// replace is $replaceRoot and $replaceWith.
type replace struct{ with *expr.Expr }

func compileReplaceRoot(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(40229, "%s needs an object with newRoot", name)
	}
	var with any
	given := false
	for _, e := range d {
		if e.Key != "newRoot" {
			return nil, nil, bad(codeUnknownField, "%s does not know %s", name, document.Readable(e.Key))
		}
		with, given = e.Value, true
	}
	if !given {
		return nil, nil, bad(codeMissingField, "%s needs newRoot", name)
	}
	s, raw, err := compileReplaceWith(c, name, with)
	return s, bson.D{{Key: "newRoot", Value: raw}}, err
}

func compileReplaceWith(c *compiler, _ string, spec any) (stage, any, error) {
	if s, ok := spec.(*restore); ok {
		raw := s.expression()
		return s, raw, nil
	}
	x, err := c.expression(spec)
	if err != nil {
		return nil, nil, err
	}
	return &replace{x}, x.Raw(), nil
}

func (s *replace) open(r *run, next sink) sink { return &replacing{replace: s, r: r, next: next} }

type replacing struct {
	*replace
	r    *run
	next sink
	out  []byte
}

func (s *replacing) push(doc bson.Raw) error {
	env := s.r.env
	env.Reset(doc)
	v, err := s.with.Eval(env)
	switch {
	case err != nil:
		return err
	case v.Type != bson.TypeEmbeddedDocument:
		return fail(40228, "the new root of a document has to be an object")
	}
	s.out = append(reuse(s.out), v.Value...)
	return s.r.give(s.next, s.out)
}

func (s *replacing) end() error { return s.next.end() }
