package pipeline

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// match is $match.
type match struct {
	filter *mql.Filter // nil: all
	more   []condition // what is no filter: clauses with $expr
}

// condition is a clause with $expr in it.
type condition interface {
	holds(doc bson.Raw, env *expr.Env) (bool, error)
}

func compileMatch(c *compiler, _ string, spec any) (stage, any, error) {
	if f, ok := spec.(*mql.Filter); ok {
		return &match{filter: f}, f.Raw(), nil
	}
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(15959, "$match needs a filter, an object")
	}
	m, raw, err := c.match(d)
	return m, raw, err
}

// written is v with what is compiled already as a server is sent it.
func written(v any) any {
	return document.Map(v, func(v any) (any, bool) {
		switch v := v.(type) {
		case *mql.Filter:
			return v.Raw(), true
		case *restore:
			return v.expression(), true
		default:
			return nil, false
		}
	})
}

// match splits a filter into what mql takes and clauses with $expr.
func (c *compiler) match(d bson.D) (*match, bson.D, error) {
	m := &match{}
	plain := bson.D{}
	var raw bson.A
	for _, e := range d {
		if !hasExpr(e) {
			plain = append(plain, e)
			continue
		}
		if c.options.Stages != Scripts {
			return nil, nil, bad(codeBadValue, "$match: $expr is for scripts only")
		}
		cond, spec, err := c.condition(e)
		if err != nil {
			return nil, nil, err
		}
		m.more = append(m.more, cond)
		raw = append(raw, bson.D{{Key: e.Key, Value: spec}})
	}
	var err error
	if m.filter, err = mql.Compile(plain); err != nil {
		return nil, nil, coded(err)
	}
	whole := bson.D{}
	if len(plain) > 0 {
		raw = append(bson.A{m.filter.Raw()}, raw...)
	}
	if len(raw) > 0 {
		whole = bson.D{{Key: "$and", Value: raw}}
	}
	return m, whole, nil
}

func hasExpr(e bson.E) bool {
	switch e.Key {
	case "$expr":
		return true
	case "$and", "$or", "$nor":
	default:
		return false
	}
	list, _ := asList(e.Value)
	for _, v := range list {
		if d, _ := asObject(v); slices.ContainsFunc(d, hasExpr) {
			return true
		}
	}
	return false
}

func (c *compiler) condition(e bson.E) (condition, any, error) {
	if e.Key == "$expr" {
		x, err := c.expression(e.Value)
		if err != nil {
			return nil, nil, err
		}
		return exprCondition{x}, x.Raw(), nil
	}
	list, _ := asList(e.Value)
	cond := &logic{name: e.Key}
	raw := bson.A{}
	for _, v := range list {
		d, ok := asObject(v)
		if !ok {
			return nil, nil, bad(codeBadValue, "%s needs a list of objects", e.Key)
		}
		m, spec, err := c.match(d)
		if err != nil {
			return nil, nil, err
		}
		cond.of = append(cond.of, m)
		raw = append(raw, spec)
	}
	return cond, raw, nil
}

func (c *compiler) expression(v any) (*expr.Expr, error) {
	x, err := expr.Compile(v, c.vars...)
	if err == nil {
		c.note(x)
	}
	return x, err
}

type exprCondition struct{ of *expr.Expr }

func (c exprCondition) holds(doc bson.Raw, env *expr.Env) (bool, error) {
	env.Reset(doc)
	v, err := c.of.Eval(env)
	return err == nil && expr.Truth(v), err
}

// logic is $and, $or and $nor.
type logic struct {
	name string
	of   []*match
}

func (l *logic) holds(doc bson.Raw, env *expr.Env) (bool, error) {
	for _, m := range l.of {
		ok, err := m.holds(doc, env)
		switch {
		case err != nil:
			return false, err
		case ok && l.name != "$and":
			return l.name == "$or", nil
		case !ok && l.name == "$and":
			return false, nil
		}
	}
	return l.name != "$or", nil
}

func (m *match) holds(doc bson.Raw, env *expr.Env) (bool, error) {
	if ok, err := m.filter.MatchUntil(doc, env.Ended); err != nil || !ok {
		return false, err
	}
	for _, cond := range m.more {
		if ok, err := cond.holds(doc, env); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// lead makes filters of the query of filters; expressions stay.
func (m *match) lead(q *Query) (stage, bool) {
	if q.Skip > 0 || q.Limit > 0 {
		return nil, false
	}
	q.Filter = mql.And(q.Filter, m.filter)
	if len(m.more) > 0 {
		return &match{more: m.more}, true
	}
	return nil, true
}

func (m *match) open(r *run, next sink) sink { return &matching{m, r, next} }

type matching struct {
	*match
	r    *run
	next sink
}

func (m *matching) push(doc bson.Raw) error {
	ok, err := m.holds(doc, m.r.env)
	if err != nil || !ok {
		return err
	}
	return m.r.give(m.next, doc)
}

func (m *matching) end() error { return m.next.end() }
