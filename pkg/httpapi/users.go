package httpapi

import (
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listUsers(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.Users.List, userOut)
}

func (s *Server) createUser(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	u, err := s.cfg.Users.Create(r.Context(), r.principal, body)
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.UserPath(u.ID.Hex()))
	return r.json(w, http.StatusCreated, userOut(u))
}

func (s *Server) getUser(w http.ResponseWriter, r *request) error {
	u, err := s.cfg.Users.Get(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, userOut(u))
}

func (s *Server) updateUser(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	u, err := s.cfg.Users.Update(r.Context(), r.principal, r.param("id"), body)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, userOut(u))
}

func (s *Server) deleteUser(w http.ResponseWriter, r *request) error {
	id := strings.ToLower(r.param("id"))
	if err := s.cfg.Users.Delete(r.Context(), r.principal, id); err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.DeleteResult{ID: id})
}

func userOut(u system.User) api.User {
	return api.User{
		ID: u.ID.Hex(), Username: u.Username, Email: u.Email, Name: u.Name, IsAdmin: u.IsAdmin, Active: u.Active,
		Language: u.Language, Scopes: append([]string{}, u.Scopes...), OrgIDs: append([]string{}, u.OrgIDs...), TeamIDs: append([]string{}, u.TeamIDs...),
		CreatedAt: api.Time{Time: u.CreatedAt}, UpdatedAt: api.Time{Time: u.UpdatedAt}, LastLoginAt: api.Time{Time: u.LastLoginAt},
	}
}
