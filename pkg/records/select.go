package records

import (
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
)

func newResolver(c *Call, g access.Grant) query.Resolver {
	return query.Resolver{Tree: c.Collection.Tree, Hidden: neverNamed(g), Limits: c.queryLimits()}
}

// queryLimits bound what one query asks for.
func (c *Call) queryLimits() query.Limits {
	if c.limits != nil {
		return *c.limits
	}
	return c.Collection.Limits.List
}

// want is what of records a caller wants to see.
type want struct {
	sel     query.Selection
	lookups []*query.Lookup
}

// wanted is what a caller asked to see, by a select or by the name of a projection, and what they look up with it.
func wanted(c *Call, g access.Grant, r query.Resolver, selectText, projectionName, lookupText string) (w want, err error) {
	if w.lookups, err = r.Lookups(lookupText); err != nil {
		return w, err
	}
	if projectionName == "" {
		w.sel, err = r.Select(selectText, w.lookups)
		return w, err
	}
	if selectText != "" {
		return w, errs.New(errs.Invalid, "bad_select", "use select or projection, not both")
	}
	p, ok := c.Collection.Projections[projectionName]
	if !ok || !g.AllProjections && !slices.Contains(g.Projections, projectionName) {
		return w, errs.New(errs.Invalid, "unknown_projection", "unknown projection: %s", projectionName)
	}
	w.sel = visibleOf(p, g).With(w.lookups)
	return w, nil
}

// visibleOf keeps a configured projection usable by a caller from whom some of its fields are hidden.
func visibleOf(p project.Projection, g access.Grant) query.Selection {
	sel := query.Selection{Exclude: p.Exclude}
	for _, path := range p.Include {
		if !g.Hidden.Covers(path) {
			sel.Include = append(sel.Include, path)
		}
	}
	if len(p.Include) > 0 && len(sel.Include) == 0 {
		sel.Include = []string{"_id"}
	}
	return sel
}
