package records

import (
	"context"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/query"
)

// neighbor is another collection of the project that a question about one goes into: by a relation in a filter, by a
// lookup, by a stage of a pipeline. What is read there is within grant.Filter, and what the caller names there goes
// through paths.
type neighbor struct {
	call  *Call
	grant access.Grant   // to read it
	paths query.Resolver // refuses what is hidden from the caller, also what is hidden on some records only
}

// neighbor opens a collection for a question of c's caller about c. It is the only way from one collection into another,
// so whoever takes it sees there what they could have read there themselves: they need the right to read it. Collections
// of other projects and the system's own models are no neighbors: their names are as unknown as any.
func (s *Service) neighbor(ctx context.Context, c *Call, name string) (neighbor, error) {
	near, err := c.neighbor(name)
	if err != nil {
		return neighbor{}, err
	}
	g, err := s.grant(ctx, near, access.Get)
	if err != nil {
		return neighbor{}, lacking(err, access.LackingOn(c.Principal, c.Project.Namespace, name, access.Get))
	}
	return neighbor{call: near, grant: g, paths: newResolver(near, g)}, nil
}

// neighbor is the call on another collection for the same caller. There is one for each collection, so that each is
// decided about once for all that a request asks of it.
func (c *Call) neighbor(name string) (*Call, error) {
	collection, ok := c.Project.Collections[name]
	if !ok {
		return nil, errs.New(errs.Invalid, "unknown_collection", "unknown collection: %.64s", name)
	}
	if c.near == nil {
		c.near = map[string]*Call{c.Collection.Name: c}
	}
	near := c.near[name]
	if near == nil {
		near = &Call{Project: c.Project, Collection: collection, Principal: c.Principal, limits: c.limits, near: c.near, Lang: c.langIn(collection.Tree)}
		if c.Request != nil { // its query is for the collection that was asked
			near.Request = &hooks.Request{ID: c.Request.ID, Headers: c.Request.Headers, Lang: c.Request.Lang}
		}
		c.near[name] = near
	}
	return near, nil
}

// lacking names in a denial the right that is missing, where the caller may be told.
func lacking(err error, right string) error {
	if e := errs.From(err); e.Kind == errs.Denied && right != "" {
		return e.Lacking(right)
	}
	return err
}
