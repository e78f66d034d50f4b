package httpapi

import (
	"net/http"

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
		c, ok := r.project.Collections[collection]
		if !ok {
			return errs.ErrCollectionNotFound
		}
		r.inCollection(c)
		out, err = s.catalog.GuideToCollection(r.Context(), r.asker(), r.call())
	case action != "":
		if r.action, err = actions.Find(r.project, action); err != nil {
			return err
		}
		out, err = s.catalog.GuideToAction(r.asker(), r.action)
	default:
		out, err = s.catalog.GuideToProject(r.Context(), r.asker())
	}
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out)
}
