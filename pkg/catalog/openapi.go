package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/openapi"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
)

// Catalog tells what there is. It is safe for concurrent use.
type Catalog struct {
	records *records.Service
	actions *actions.Service
}

// New makes a Catalog.
func New(r *records.Service, a *actions.Service) *Catalog { return &Catalog{records: r, actions: a} }

// Asker is who asks of which project. Project is one generation of it.
type Asker struct {
	Project   *project.Project
	Principal *access.Principal
	Request   *hooks.Request // what scripts see of the request
	Lang      string         // of the texts for people; "": their default
}

// OpenAPI gives what the asker may know of the project and do in it. Its error is that of a script or of the store: who may do nothing
// gets a view of nothing.
func (c *Catalog) OpenAPI(ctx context.Context, who Asker) (*openapi.View, error) {
	v := &openapi.View{Project: who.Project, Lang: who.Lang}
	for _, name := range slices.Sorted(maps.Keys(who.Project.Collections)) {
		of, err := c.collection(ctx, who, who.Project.Collections[name])
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
			call := &actions.Call{Project: who.Project, Action: a, Principal: who.Principal, Method: m, Request: who.Request}
			if a.Methods[m] != nil && c.actions.May(call, m) == nil {
				of.Methods = append(of.Methods, m)
			}
		}
		v.Actions = append(v.Actions, of)
	}
	return v, nil
}

func (c *Catalog) collection(ctx context.Context, who Asker, of *project.Collection) (openapi.Collection, error) {
	call := &records.Call{Project: who.Project, Collection: of, Principal: who.Principal}
	if of.Scripted() {
		call.Request = who.Request
	}
	out := openapi.Collection{Collection: of}
	var err error
	if out.Grants, err = c.records.Grants(ctx, call); err != nil {
		return out, err
	}
	if _, reads := out.Grants[access.Get]; !reads {
		return out, nil
	}
	d, err := c.records.Describe(ctx, call)
	switch {
	case errs.KindOf(err) == errs.Denied && err != nil:
		delete(out.Grants, access.Get)
		return out, nil
	case err != nil:
		return out, err
	}
	out.Projections = d.Projections
	out.Unnameable = d.Unnameable
	for _, s := range d.Searches {
		out.Searches = append(out.Searches, s.Name)
	}
	return out, nil
}
