package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// Model is the verbs of one system model: T is what is read, W what is written.
type Model[T, W any] struct {
	client *Client
	path   string
}

// Users are those who may log in.
func (c *Client) Users() Model[api.User, api.UserWrite] {
	return Model[api.User, api.UserWrite]{client: c, path: api.Prefix + api.RouteUsers}
}

// Projects are the registrations. To create one waits until its config has been loaded; to delete one makes the service
// forget the project, whose data stays.
func (c *Client) Projects() Model[api.Project, api.ProjectWrite] {
	return Model[api.Project, api.ProjectWrite]{client: c, path: api.Prefix + api.RouteProjects}
}

// Orgs are the organizations.
func (c *Client) Orgs() Model[api.Org, api.OrgWrite] {
	return Model[api.Org, api.OrgWrite]{client: c, path: api.Prefix + api.RouteOrgs}
}

// Teams are the teams.
func (c *Client) Teams() Model[api.Team, api.TeamWrite] {
	return Model[api.Team, api.TeamWrite]{client: c, path: api.Prefix + api.RouteTeams}
}

// Tokens are the personal access tokens. Create gives the token's value with it, and nothing gives it again.
func (c *Client) Tokens() Model[api.Token, api.TokenWrite] {
	return Model[api.Token, api.TokenWrite]{client: c, path: api.Prefix + api.RouteTokens}
}

// TokenScopes lists the scopes that the logged-in user may give a token now.
func (c *Client) TokenScopes(ctx context.Context) ([]string, error) {
	var out []string
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteTokenScopes, out: &out})
	return out, err
}

func (m Model[T, W]) one(id string) string { return m.path + "/" + url.PathEscape(id) }

// List gives one page.
func (m Model[T, W]) List(ctx context.Context, q Query) (*api.List[T], error) {
	return list[T](ctx, m.client, m.path, q)
}

// All yields all that the caller may see.
func (m Model[T, W]) All(ctx context.Context, q Query) iter.Seq2[T, error] {
	return all[T](ctx, m.client, m.path, q)
}

// Get reads one by id.
func (m Model[T, W]) Get(ctx context.Context, id string) (*T, error) {
	var out T
	_, err := m.client.do(ctx, call{method: http.MethodGet, path: m.one(id), out: &out})
	return &out, err
}

// Create makes one.
func (m Model[T, W]) Create(ctx context.Context, w W) (*T, error) {
	var out T
	_, err := m.client.do(ctx, call{method: http.MethodPost, path: m.path, in: w, out: &out})
	return &out, err
}

// Update changes the members of w that are set.
func (m Model[T, W]) Update(ctx context.Context, id string, w W) (*T, error) {
	var out T
	_, err := m.client.do(ctx, call{method: http.MethodPut, path: m.one(id), in: w, out: &out})
	return &out, err
}

// Delete removes one.
func (m Model[T, W]) Delete(ctx context.Context, id string) (*api.DeleteResult, error) {
	var out api.DeleteResult
	_, err := m.client.do(ctx, call{method: http.MethodDelete, path: m.one(id), out: &out})
	return &out, err
}
