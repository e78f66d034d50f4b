package catalog

import (
	"context"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
)

// GuideToCollection tells what the config says for agents of the collection that a call of the asker is for. It takes the right to read it.
func (c *Catalog) GuideToCollection(ctx context.Context, who Asker, call *records.Call) (out api.AgentGuide, err error) {
	d, err := c.Collection(ctx, who, call)
	if err != nil {
		if errs.KindOf(err) == errs.Denied {
			err = errs.From(err).Lacking(access.LackingOn(who.Principal, who.Project.Namespace, call.Collection.Name, access.Get))
		}
		return out, err
	}
	out.Namespace, out.Collection, out.YourPermissions = who.Project.Namespace, d.Name, d.YourPermissions
	out.Agent, out.Query, out.Label = d.Meta["agent"], d.Meta["query"], d.Meta["label"]
	return out, nil
}

// GuideToAction tells what the config says for agents of an action. It takes the right to call it.
func (c *Catalog) GuideToAction(who Asker, a *project.Action) (out api.AgentGuide, err error) {
	if err := c.actions.MayAny(who.toAction(a, 0)); err != nil {
		return out, err
	}
	d := c.Action(who, a)
	out.Namespace, out.Action, out.YourPermissions = who.Project.Namespace, a.Name, d.YourPermissions
	out.Agent, out.Label = d.Meta["agent"], d.Meta["label"]
	return out, nil
}

// GuideToProject tells what the config says for agents of the project, and what the asker may do in it. It takes the right to read the project.
func (c *Catalog) GuideToProject(ctx context.Context, who Asker) (out api.AgentGuide, err error) {
	if err := c.records.MayOperate(who.Project, who.Principal, access.ProjectRead); err != nil {
		return out, err
	}
	rights := api.ProjectRights{Collections: map[string]map[string]api.MethodRights{}, Actions: map[string]map[string]bool{}}
	collections, err := c.Collections(ctx, who)
	if err != nil {
		return out, err
	}
	for i := range collections {
		rights.Collections[collections[i].Name] = collections[i].YourPermissions
	}
	for _, a := range c.Actions(who) {
		rights.Actions[a.Name] = a.YourPermissions
	}
	out.Namespace, out.YourPermissions = who.Project.Namespace, rights
	if meta := who.Project.Config.Meta; meta != nil {
		shown := who.labels(object(meta.Raw))
		out.Agent, out.Label = shown["agent"], shown["label"]
	}
	return out, nil
}
