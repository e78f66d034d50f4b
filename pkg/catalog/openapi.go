package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/openapi"
	"github.com/svcctl/svc/pkg/project"
)

// OpenAPI gives what the asker may know of the project and do in it. Its error is that of a script or of the store: who may do nothing
// gets a view of nothing.
func (c *Catalog) OpenAPI(ctx context.Context, who Asker) (*openapi.View, error) {
	v := &openapi.View{Project: who.Project, Lang: who.Lang}
	for _, name := range slices.Sorted(maps.Keys(who.Project.Collections)) {
		of, err := c.operations(ctx, who, who.Project.Collections[name])
		if err != nil {
			return nil, err
		}
		if len(of.Grants) > 0 {
			v.Collections = append(v.Collections, of)
		}
	}
	if len(who.Project.Actions) == 0 {
		return v, nil
	}
	for _, a := range c.actions.Callable(who.Project, who.Principal) {
		of := openapi.Action{Action: a}
		for _, m := range []access.Method{access.Get, access.Post} {
			if a.Methods[m] != nil && c.actions.May(who.toAction(a, m), m) == nil {
				of.Methods = append(of.Methods, m)
			}
		}
		v.Actions = append(v.Actions, of)
	}
	return v, nil
}

// operations gives what the asker may know of a collection and do in it.
func (c *Catalog) operations(ctx context.Context, who Asker, of *project.Collection) (openapi.Collection, error) {
	call := who.toRecords(of)
	out := openapi.Collection{Collection: of}
	var err error
	if out.Grants, err = c.records.Grants(ctx, call); err != nil {
		return out, err
	}
	if _, reads := out.Grants[access.Get]; !reads {
		return out, nil
	}
	d, err := c.records.Describe(ctx, call)
	if err != nil {
		return out, err
	}
	out.Projections = d.Projections
	out.Unnameable = d.Unnameable
	for _, s := range d.Searches {
		out.Searches = append(out.Searches, s.Name)
	}
	return out, nil
}
