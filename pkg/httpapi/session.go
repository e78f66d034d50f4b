package httpapi

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
)

// strings reads a body that has exactly the members of into, each a string.
func (r *request) strings(w http.ResponseWriter, into map[string]*string) error {
	r.small = true
	body, err := r.object(w)
	if err != nil {
		return err
	}
	problems := texts(body, "", into)
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if !slices.ContainsFunc(body, func(e bson.E) bool { return e.Key == name }) {
			problems = append(problems, errs.FieldError{Path: name, Rule: "required", Message: "is required"})
		}
	}
	if len(problems) > 0 {
		return errs.Validation(problems)
	}
	return nil
}

func (s *Server) login(w http.ResponseWriter, r *request) error {
	var username, password string
	if err := r.strings(w, map[string]*string{"username": &username, "password": &password}); err != nil {
		return err
	}
	session, err := s.cfg.Auth.Login(r.Context(), username, password, r.addr().String())
	if err != nil {
		return err
	}
	return s.session(w, r, session)
}

// session answers with a new session token, for browsers as a cookie, too.
func (s *Server) session(w http.ResponseWriter, r *request, session auth.Session) error {
	w.Header().Set("Cache-Control", "no-store")
	http.SetCookie(w, r.sessionCookie(session))
	return r.json(w, http.StatusOK, api.LoginResponse{Token: session.Token, ExpiresAt: api.Time{Time: session.ExpiresAt}})
}

// logout ends all sessions of the caller, and with all=true what their personal access tokens open, too.
func (s *Server) logout(w http.ResponseWriter, r *request) error {
	all, err := r.boolean(api.ParamAll)
	if err != nil {
		return err
	}
	if err := s.cfg.Auth.Logout(r.Context(), r.principal, all); err != nil {
		return err
	}
	r.clearCookie(w.Header())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// me tells callers who they are taken for.
func (s *Server) me(w http.ResponseWriter, r *request) error {
	p := r.principal
	me := api.Me{Kind: string(p.Kind), ID: p.ID, IsAdmin: p.Full(), Scopes: []string{}, OrgIDs: []string{}, TeamIDs: []string{}}
	if p.ID != "" {
		u, err := s.cfg.System.Users.ByID(r.Context(), p.ID)
		if err != nil {
			return revoked(err)
		}
		me.Username, me.Email, me.Name, me.Language = u.Username, u.Email, u.Name, u.Language
		me.Scopes = append(me.Scopes, p.Effective()...)
		me.OrgIDs, me.TeamIDs = append(me.OrgIDs, p.OrgIDs...), append(me.TeamIDs, p.TeamIDs...)
	}
	if p.TokenID != "" {
		t, err := s.cfg.System.Tokens.ByID(r.Context(), p.TokenID)
		if err != nil {
			return revoked(err)
		}
		me.ExpiresAt = api.Time{Time: t.ExpiresAt}
	}
	return r.json(w, http.StatusOK, me)
}

// revoked makes a denial of it that what a caller is taken for isn't there any more: another instance has deleted it a
// moment ago.
func revoked(err error) error {
	if errors.Is(err, errs.ErrNotFound) {
		return errs.ErrDenied
	}
	return err
}

// changePassword gives the caller a new password. Every token issued before is void, so the answer has a new one.
func (s *Server) changePassword(w http.ResponseWriter, r *request) error {
	var current, next string
	if err := r.strings(w, map[string]*string{"currentPassword": &current, "newPassword": &next}); err != nil {
		return err
	}
	session, err := s.cfg.Auth.ChangePassword(r.Context(), r.principal, current, next, r.addr().String())
	if err != nil {
		return err
	}
	return s.session(w, r, session)
}
