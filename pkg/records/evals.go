package records

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
)

// decide says what somebody may do with a method, with what scripts have to say about it.
func (s *Service) decide(ctx context.Context, c *Call, who *access.Principal, m access.Method) (access.Grant, error) {
	op := s.operationOf(c, who, m)
	g, err := c.Collection.Permissions.Decide(who, m, s.env(ctx, c, op))
	if err != nil {
		return g, err
	}
	return s.evaluate(ctx, c, op, g)
}

// evaluate adds to a grant what the fields' expressions hide or make readonly. What depends on the record is unsure until
// there is one.
func (s *Service) evaluate(ctx context.Context, c *Call, op *hooks.Operation, g access.Grant) (access.Grant, error) {
	if len(c.Collection.Evals) == 0 || g.Admin {
		return g, nil
	}
	var sure, unsure [2][]string // readonly, hidden
	for _, e := range c.Collection.Evals {
		kind := 0
		if e.Hidden {
			kind = 1
		}
		switch {
		case e.Hidden && g.SeesAll:
			continue
		case e.OfDoc:
			unsure[kind] = append(unsure[kind], e.Paths...)
			continue
		}
		holds, err := s.hooks.Eval(ctx, op, e, []bson.Raw{nil})
		if err != nil {
			return g, err
		}
		if holds[0] {
			sure[kind] = append(sure[kind], e.Paths...)
		}
	}
	g.Readonly, g.Hidden, g.Declared = with(g.Readonly, sure[0]), with(g.Hidden, sure[1]), with(g.Declared, sure[1])
	g.UnsureReadonly, g.Unsure = with(nil, unsure[0]), with(nil, unsure[1])
	return g, nil
}

// with adds paths to a set, which is shared and not changed.
func with(set *document.PathSet, paths []string) *document.PathSet {
	if len(paths) == 0 {
		return set
	}
	return set.Union(document.NewPathSet(paths...))
}

// neverNamed is what a caller may not name in a query: what is hidden from them on any record.
func neverNamed(g access.Grant) *document.PathSet {
	if g.Unsure == nil {
		return g.Hidden
	}
	return g.Hidden.Union(g.Unsure)
}

// protection is what is kept from a caller on one record.
type protection struct{ hidden, readonly *document.PathSet }

// protections says for each record what is kept from a caller: one run of each expression for all of them. What is
// readonly is asked for with writes only.
func (s *Service) protections(ctx context.Context, c *Call, m access.Method, g access.Grant, docs []bson.Raw) ([]protection, error) {
	out := make([]protection, len(docs))
	for i := range out {
		out[i] = protection{g.Hidden, g.Readonly}
	}
	if g.Unsure == nil && g.UnsureReadonly == nil || len(docs) == 0 {
		return out, nil
	}
	paths := make([][2][]string, len(docs))
	for _, e := range c.Collection.Evals {
		if !e.OfDoc || e.Hidden && g.Unsure == nil || !e.Hidden && m == access.Get {
			continue
		}
		holds, err := s.hooks.Eval(ctx, s.operation(c, m), e, docs)
		if err != nil {
			return nil, err
		}
		kind := 0
		if e.Hidden {
			kind = 1
		}
		for i := range docs {
			if holds[i] {
				paths[i][kind] = append(paths[i][kind], e.Paths...)
			}
		}
	}
	for i := range out {
		out[i] = protection{with(g.Hidden, paths[i][1]), with(g.Readonly, paths[i][0])}
	}
	return out, nil
}

// grantOn is a grant as it is for one record.
func (s *Service) grantOn(ctx context.Context, c *Call, m access.Method, g access.Grant, doc bson.Raw) (access.Grant, error) {
	if g.Unsure == nil && g.UnsureReadonly == nil {
		return g, nil
	}
	p, err := s.protections(ctx, c, m, g, []bson.Raw{doc})
	if err == nil {
		g.Hidden, g.Readonly = p[0].hidden, p[0].readonly
	}
	return g, err
}

// grantOnNew is a grant as it is for a record that is to be made, if body names nothing that it keeps from the caller.
func (s *Service) grantOnNew(ctx context.Context, c *Call, g access.Grant, body bson.D, record func() bson.D) (access.Grant, []errs.FieldError, error) {
	if g.Unsure != nil || g.UnsureReadonly != nil {
		raw, err := document.Marshal(record())
		if err != nil {
			return g, nil, err
		}
		if g, err = s.grantOn(ctx, c, access.Post, g, raw); err != nil {
			return g, nil, err
		}
	}
	return g, newGuard(g).named(body, true), nil
}

// operation is the operation of a call with a method, for scripts.
func (s *Service) operation(c *Call, m access.Method) *hooks.Operation {
	if c.ops[m] == nil {
		c.ops[m] = s.operationOf(c, c.Principal, m)
	}
	return c.ops[m]
}

func (s *Service) operationOf(c *Call, who *access.Principal, m access.Method) *hooks.Operation {
	if !c.Collection.Scripted() { // so that others cost nothing
		return nil
	}
	return &hooks.Operation{
		Project: c.Project, Collection: c.Collection, Principal: who, Method: methodName(m), Request: c.Request, Now: s.now(),
	}
}

// methodName is a method as HTTP has it.
func methodName(m access.Method) string {
	switch m {
	case access.Post:
		return "POST"
	case access.Put:
		return "PUT"
	case access.Delete:
		return "DELETE"
	default:
		return "GET"
	}
}
