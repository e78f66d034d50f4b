package httpapi

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listTokens(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.System.Tokens.List, tokenOut)
}

// createToken makes a token. Its value is in this answer and nowhere else.
func (s *Server) createToken(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	grantable, err := s.grantable(r)
	if err != nil {
		return err
	}
	t, value, err := s.cfg.System.Tokens.Create(r.Context(), r.principal, body, grantable)
	if err != nil {
		return err
	}
	out := tokenOut(t)
	out.Token = value
	w.Header().Set(api.HeaderLocation, api.TokenPath(out.ID))
	w.Header().Set("Cache-Control", "no-store")
	return r.json(w, http.StatusCreated, out)
}

func (s *Server) getToken(w http.ResponseWriter, r *request) error {
	return getModel(w, r, s.cfg.System.Tokens.Get, tokenOut)
}

func (s *Server) updateToken(w http.ResponseWriter, r *request) error {
	return updateModel(w, r, func(ctx context.Context, by *access.Principal, id string, doc bson.D) (system.Token, error) {
		grantable, err := s.grantable(r)
		if err != nil {
			return system.Token{}, err
		}
		return s.cfg.System.Tokens.Update(ctx, by, id, doc, grantable)
	}, tokenOut)
}

func (s *Server) deleteToken(w http.ResponseWriter, r *request) error {
	return deleteModel(w, r, s.cfg.System.Tokens.Delete)
}

// tokenScopes lists what the caller may give a token now.
func (s *Server) tokenScopes(w http.ResponseWriter, r *request) error {
	grantable, err := s.grantable(r)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, grantable)
}

func (s *Server) grantable(r *request) ([]string, error) {
	projects, err := s.cfg.System.Projects.All(r.Context())
	if err != nil {
		return nil, err
	}
	var places []access.Place
	for _, p := range projects {
		if r.principal.Foreign(p.OrgID) {
			continue
		}
		place := access.Place{Namespace: p.Namespace}
		if served, err := s.cfg.Registry.Get(p.Namespace); err == nil { // else its collections are not known
			place.Collections = slices.Sorted(maps.Keys(served.Collections))
			place.Actions = slices.Sorted(maps.Keys(served.Actions))
		}
		places = append(places, place)
	}
	return access.Grantable(r.principal, places), nil
}

func tokenOut(t system.Token) api.Token {
	return api.Token{
		ID: t.ID.Hex(), UserID: t.UserID, Name: t.Name, Scopes: append([]string{}, t.Scopes...),
		ExpiresAt: api.Time{Time: t.ExpiresAt}, LastUsedAt: api.Time{Time: t.LastUsedAt},
		CreatedAt: api.Time{Time: t.CreatedAt}, UpdatedAt: api.Time{Time: t.UpdatedAt},
	}
}
