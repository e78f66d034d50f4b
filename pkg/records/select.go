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

// selected is what a caller asked to see, by a select or by the name of a projection.
func selected(c *Call, g access.Grant, selectText, projectionName string) (query.Selection, error) {
	if projectionName == "" {
		return newResolver(c, g).Select(selectText)
	}
	if selectText != "" {
		return query.Selection{}, errs.New(errs.Invalid, "bad_select", "use select or projection, not both")
	}
	p, ok := c.Collection.Projections[projectionName]
	if !ok || !g.AllProjections && !slices.Contains(g.Projections, projectionName) {
		return query.Selection{}, errs.New(errs.Invalid, "unknown_projection", "unknown projection: %s", projectionName)
	}
	return visibleOf(p, g), nil
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
