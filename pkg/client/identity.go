package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// Login trades a username and a password for a JWT. The client itself stays as it is.
func (c *Client) Login(ctx context.Context, username, password string) (*api.LoginResponse, error) {
	var out api.LoginResponse
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: api.Prefix + api.RouteLogin,
		in: api.LoginRequest{Username: username, Password: password}, out: &out,
	})
	return &out, err
}

// LogoutAll is Logout, and revokes the user's personal access tokens, too.
func (c *Client) LogoutAll(ctx context.Context) error {
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: api.Prefix + api.RouteLogout, query: url.Values{api.ParamAll: {"true"}},
	})
	return err
}

// Logout revokes all JWTs of the client's user.
func (c *Client) Logout(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.Prefix + api.RouteLogout})
	return err
}

// Me says who the client's credential is.
func (c *Client) Me(ctx context.Context) (*api.Me, error) {
	var out api.Me
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteMe, out: &out})
	return &out, err
}

// ChangePassword changes the password of the logged-in user, which revokes all their earlier JWTs.
func (c *Client) ChangePassword(ctx context.Context, current, next string) error {
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: api.Prefix + api.RouteMePassword,
		in: api.PasswordChange{CurrentPassword: current, NewPassword: next},
	})
	return err
}

// Version gives the service's version.
func (c *Client) Version(ctx context.Context) (*api.Version, error) {
	var out api.Version
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteVersion, out: &out})
	return &out, err
}

// Ready says whether the service takes requests; when it doesn't, that is an *Error with status 503.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.RootReady})
	return err
}

// Health says whether the service is alive.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.RootHealth})
	return err
}

// Metrics opens the service's metrics, as text. The caller closes the body.
func (c *Client) Metrics(ctx context.Context) (*http.Response, error) {
	return c.Do(ctx, Request{
		Method: http.MethodGet, Path: api.RootMetrics, Header: http.Header{"Accept": {"text/plain"}},
	})
}

// ListUsers gives one page of users.
func (c *Client) ListUsers(ctx context.Context, q Query) (*api.List[api.User], error) {
	return list[api.User](ctx, c, api.Prefix+api.RouteUsers, q)
}

// Users yields all users that the caller may see.
func (c *Client) Users(ctx context.Context, q Query) iter.Seq2[api.User, error] {
	return all[api.User](ctx, c, api.Prefix+api.RouteUsers, q)
}

// GetUser reads a user by id.
func (c *Client) GetUser(ctx context.Context, id string) (*api.User, error) {
	var out api.User
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.UserPath(id), out: &out})
	return &out, err
}

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, u api.UserWrite) (*api.User, error) {
	var out api.User
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.Prefix + api.RouteUsers, in: u, out: &out})
	return &out, err
}

// UpdateUser changes the members of u that are set.
func (c *Client) UpdateUser(ctx context.Context, id string, u api.UserWrite) (*api.User, error) {
	var out api.User
	_, err := c.do(ctx, call{method: http.MethodPut, path: api.UserPath(id), in: u, out: &out})
	return &out, err
}

// DeleteUser removes a user.
func (c *Client) DeleteUser(ctx context.Context, id string) (*api.DeleteResult, error) {
	var out api.DeleteResult
	_, err := c.do(ctx, call{method: http.MethodDelete, path: api.UserPath(id), out: &out})
	return &out, err
}
