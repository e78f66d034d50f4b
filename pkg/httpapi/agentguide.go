package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// agentGuide tells what the config says for agents: of the project, or of the collection or action that is named. Each takes the right to
// read what it is about.
func (s *Server) agentGuide(w http.ResponseWriter, r *request) error {
	collection, err := r.one(api.ParamCollection)
	if err != nil {
		return err
	}
	action, err := r.one(api.ParamAction)
	if err != nil {
		return err
	}
	var out api.AgentGuide
	switch {
	case collection != "" && action != "":
		return errs.New(errs.Invalid, "bad_parameter", "give %s or %s, not both", api.ParamCollection, api.ParamAction)
	case collection != "":
		out, err = s.guideToCollection(r, collection)
	case action != "":
		out, err = s.guideToAction(r, action)
	default:
		out, err = s.guideToProject(r)
	}
	if err != nil {
		return err
	}
	out.Namespace = r.project.Namespace
	return r.json(w, http.StatusOK, out)
}

func (s *Server) guideToCollection(r *request, name string) (out api.AgentGuide, err error) {
	c, ok := r.project.Collections[name]
	if !ok {
		return out, errs.ErrCollectionNotFound
	}
	r.inCollection(c)
	d, err := s.describe(r)
	if err != nil {
		if errs.KindOf(err) == errs.Denied {
			err = errs.From(err).Lacking(access.LackingOn(r.principal, r.project.Namespace, name, access.Get))
		}
		return out, err
	}
	out.Collection, out.YourPermissions = name, d.YourPermissions
	out.Agent, out.Query, out.Label = d.Meta["agent"], d.Meta["query"], d.Meta["label"]
	return out, nil
}

func (s *Server) guideToAction(r *request, name string) (out api.AgentGuide, err error) {
	if r.action, err = actions.Find(r.project, name); err != nil {
		return out, err
	}
	if err := s.cfg.Actions.MayAny(r.actionCall(0)); err != nil {
		return out, err
	}
	d := s.actionOut(r)
	out.Action, out.YourPermissions = name, d.YourPermissions
	out.Agent, out.Label = d.Meta["agent"], d.Meta["label"]
	return out, nil
}

// guideToProject tells of the project, and of what is in it that has a guide of its own or lets the caller write.
func (s *Server) guideToProject(r *request) (out api.AgentGuide, err error) {
	if err := s.cfg.Records.MayOperate(r.project, r.principal, access.ProjectRead); err != nil {
		return out, err
	}
	rights := api.ProjectRights{Collections: map[string]map[string]api.MethodRights{}, Actions: map[string]map[string]bool{}}
	for name, c := range r.project.Collections {
		r.inCollection(c)
		switch d, err := s.describe(r); {
		case err == nil:
			rights.Collections[name] = d.YourPermissions
		case errs.KindOf(err) != errs.Denied:
			return out, err
		}
	}
	r.inCollection(nil)
	for _, a := range s.cfg.Actions.Callable(r.project, r.principal) {
		r.action = a
		rights.Actions[a.Name] = s.actionOut(r).YourPermissions
	}
	r.action = nil
	out.YourPermissions = rights
	if meta := r.project.Config.Meta; meta != nil {
		shown := r.labels(object(meta.Raw))
		out.Agent, out.Label = shown["agent"], shown["label"]
	}
	return out, nil
}
