package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listTeams(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.System.Teams.List, teamOut)
}

func (s *Server) createTeam(w http.ResponseWriter, r *request) error {
	return createModel(w, r, s.cfg.System.Teams.Create, teamOut, func(t api.Team) string { return api.TeamPath(t.ID) })
}

func (s *Server) getTeam(w http.ResponseWriter, r *request) error {
	return getModel(w, r, s.cfg.System.Teams.Get, teamOut)
}

func (s *Server) updateTeam(w http.ResponseWriter, r *request) error {
	return updateModel(w, r, s.cfg.System.Teams.Update, teamOut)
}

func (s *Server) deleteTeam(w http.ResponseWriter, r *request) error {
	return deleteModel(w, r, s.cfg.System.Teams.Delete)
}

func teamOut(t system.Team) api.Team {
	return api.Team{
		ID: t.ID.Hex(), Name: t.Name, Slug: t.Slug, OrgID: t.OrgID, Description: t.Description,
		Scopes:    append([]string{}, t.Scopes...),
		CreatedAt: api.Time{Time: t.CreatedAt}, UpdatedAt: api.Time{Time: t.UpdatedAt},
	}
}
