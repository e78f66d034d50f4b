package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listOrgs(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.Orgs.List, orgOut)
}

func (s *Server) createOrg(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	o, err := s.cfg.Orgs.Create(r.Context(), r.principal, body)
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.OrgPath(o.ID.Hex()))
	return r.json(w, http.StatusCreated, orgOut(o))
}

func (s *Server) getOrg(w http.ResponseWriter, r *request) error {
	o, err := s.cfg.Orgs.Get(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, orgOut(o))
}

func (s *Server) updateOrg(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	o, err := s.cfg.Orgs.Update(r.Context(), r.principal, r.param("id"), body)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, orgOut(o))
}

func (s *Server) deleteOrg(w http.ResponseWriter, r *request) error {
	o, err := s.cfg.Orgs.Delete(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.DeleteResult{ID: o.ID.Hex()})
}

func orgOut(o system.Org) api.Org {
	return api.Org{
		ID: o.ID.Hex(), Name: o.Name, Slug: o.Slug, Description: o.Description, Active: o.Active,
		CreatedAt: api.Time{Time: o.CreatedAt}, UpdatedAt: api.Time{Time: o.UpdatedAt},
	}
}
