package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listOrgs(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.System.Orgs.List, orgOut)
}

func (s *Server) createOrg(w http.ResponseWriter, r *request) error {
	return createModel(w, r, s.cfg.System.Orgs.Create, orgOut, func(o api.Org) string { return api.OrgPath(o.ID) })
}

func (s *Server) getOrg(w http.ResponseWriter, r *request) error {
	return getModel(w, r, s.cfg.System.Orgs.Get, orgOut)
}

func (s *Server) updateOrg(w http.ResponseWriter, r *request) error {
	return updateModel(w, r, s.cfg.System.Orgs.Update, orgOut)
}

func (s *Server) deleteOrg(w http.ResponseWriter, r *request) error {
	return deleteModel(w, r, s.cfg.System.Orgs.Delete)
}

func orgOut(o system.Org) api.Org {
	return api.Org{
		ID: o.ID.Hex(), Name: o.Name, Slug: o.Slug, Description: o.Description, Active: o.Active,
		CreatedAt: api.Time{Time: o.CreatedAt}, UpdatedAt: api.Time{Time: o.UpdatedAt},
	}
}
