package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listUsers(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.System.Users.List, userOut)
}

func (s *Server) createUser(w http.ResponseWriter, r *request) error {
	return createModel(w, r, s.cfg.System.Users.Create, userOut, func(u api.User) string { return api.UserPath(u.ID) })
}

func (s *Server) getUser(w http.ResponseWriter, r *request) error {
	return getModel(w, r, s.cfg.System.Users.Get, userOut)
}

func (s *Server) updateUser(w http.ResponseWriter, r *request) error {
	return updateModel(w, r, s.cfg.System.Users.Update, userOut)
}

func (s *Server) deleteUser(w http.ResponseWriter, r *request) error {
	return deleteModel(w, r, s.cfg.System.Users.Delete)
}

func userOut(u system.User) api.User {
	return api.User{
		ID: u.ID.Hex(), Username: u.Username, Email: u.Email, Name: u.Name, IsAdmin: u.IsAdmin, Active: u.Active,
		Language: u.Language, Scopes: append([]string{}, u.Scopes...), OrgIDs: append([]string{}, u.OrgIDs...), TeamIDs: append([]string{}, u.TeamIDs...),
		CreatedAt: api.Time{Time: u.CreatedAt}, UpdatedAt: api.Time{Time: u.UpdatedAt}, LastLoginAt: api.Time{Time: u.LastLoginAt},
	}
}
