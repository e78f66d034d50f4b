package client

import (
	"context"
	"encoding/json"
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

// OpenAPI gives the OpenAPI document of a project as the caller may see it. lang picks the language of its texts; "": as they are.
func (c *Client) OpenAPI(ctx context.Context, namespace, lang string) (json.RawMessage, error) {
	q := url.Values{}
	if lang != "" {
		q.Set(api.ParamLang, lang)
	}
	var out json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.OpenAPIPath(namespace), query: q, out: &out})
	return out, err
}

// Ready says whether the service takes requests; when it doesn't, that is an *Error with status 503.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.RootReady})
	return err
}

// Checks tells how the parts of a service are that takes requests; one that takes none is an *Error with status 503. It is asked once.
func (c *Client) Checks(ctx context.Context) (*api.Health, error) {
	var out api.Health
	_, err := c.once(ctx, call{method: http.MethodGet, path: api.RootReady, query: url.Values{"verbose": {"1"}}, out: &out}, nil)
	return &out, err
}

// Health says whether the service is alive, and gives the header of its answer, which has its time (Date). It is asked once.
func (c *Client) Health(ctx context.Context) (http.Header, error) {
	return c.once(ctx, call{method: http.MethodGet, path: api.RootHealth}, nil)
}

// RotateKeys makes a new key sign JWTs; those that older ones signed stay good.
func (c *Client) RotateKeys(ctx context.Context) (*api.SigningKey, error) {
	var out api.SigningKey
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.Prefix + api.RouteRotateKeys, out: &out})
	return &out, err
}

// Shutdown has the service stop, which goes on after the answer.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.Prefix + api.RouteShutdown})
	return err
}

// EmbeddingStatus tells how the embedding groups are, with the full texts of errors.
func (c *Client) EmbeddingStatus(ctx context.Context) (*api.EmbeddingStatus, error) {
	var out api.EmbeddingStatus
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteEmbedding, out: &out})
	return &out, err
}

// ProjectEmbeddingStatus tells how the embedding groups are to who runs a project: what providers said is left out.
func (c *Client) ProjectEmbeddingStatus(ctx context.Context, namespace string) (*api.EmbeddingStatus, error) {
	var out api.EmbeddingStatus
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.ProjectEmbeddingPath(namespace), out: &out})
	return &out, err
}

// Metrics opens the service's metrics, as text. The caller closes the body.
func (c *Client) Metrics(ctx context.Context) (*http.Response, error) {
	return c.Do(ctx, Request{
		Method: http.MethodGet, Path: api.RootMetrics, Header: http.Header{"Accept": {"text/plain"}},
	})
}

// Meta says what each system model takes.
func (c *Client) Meta(ctx context.Context) (*api.Meta, error) {
	var out api.Meta
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteMeta, out: &out})
	return &out, err
}

// ModelMeta says what one system model takes: user, project, org, team or token.
func (c *Client) ModelMeta(ctx context.Context, model string) ([]api.MetaField, error) {
	var out []api.MetaField
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.ModelMetaPath(model), out: &out})
	return out, err
}
