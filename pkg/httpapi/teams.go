package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listTeams(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.Teams.List, teamOut)
}

func (s *Server) createTeam(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	t, err := s.cfg.Teams.Create(r.Context(), r.principal, body)
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.TeamPath(t.ID.Hex()))
	return r.json(w, http.StatusCreated, teamOut(t))
}

func (s *Server) getTeam(w http.ResponseWriter, r *request) error {
	t, err := s.cfg.Teams.Get(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, teamOut(t))
}

func (s *Server) updateTeam(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	t, err := s.cfg.Teams.Update(r.Context(), r.principal, r.param("id"), body)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, teamOut(t))
}

func (s *Server) deleteTeam(w http.ResponseWriter, r *request) error {
	t, err := s.cfg.Teams.Delete(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.DeleteResult{ID: t.ID.Hex()})
}

func teamOut(t system.Team) api.Team {
	return api.Team{
		ID: t.ID.Hex(), Name: t.Name, Slug: t.Slug, OrgID: t.OrgID, Description: t.Description,
		Scopes:    append([]string{}, t.Scopes...),
		CreatedAt: api.Time{Time: t.CreatedAt}, UpdatedAt: api.Time{Time: t.UpdatedAt},
	}
}
