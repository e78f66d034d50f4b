package catalog

import (
	"context"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
)

// Indexes tells of each index of a collection, declared or found, how it stands.
type Indexes func(ctx context.Context, p *project.Project, collection string) ([]api.IndexDescription, error)

// Catalog tells what there is. It is safe for concurrent use.
type Catalog struct {
	records *records.Service
	actions *actions.Service
	indexes Indexes
}

// New makes a Catalog.
func New(r *records.Service, a *actions.Service, i Indexes) *Catalog { return &Catalog{r, a, i} }

// Asker is who asks of which project. Project is one generation of it.
type Asker struct {
	Project   *project.Project
	Principal *access.Principal
	Request   *hooks.Request // what scripts see of the request
	Lang      string         // of the texts for people; "": their default
}

// toRecords is a call of the asker for a collection.
func (who Asker) toRecords(of *project.Collection) *records.Call {
	call := &records.Call{Project: who.Project, Collection: of, Principal: who.Principal}
	if of.Scripted() {
		call.Request = who.Request
	}
	return call
}

// toAction is a call of an action by the asker.
func (who Asker) toAction(a *project.Action, m access.Method) *actions.Call {
	return &actions.Call{Project: who.Project, Action: a, Principal: who.Principal, Method: m, Request: who.Request}
}
