package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// ListProjects gives one page of registrations.
func (c *Client) ListProjects(ctx context.Context, q Query) (*api.List[api.Project], error) {
	return list[api.Project](ctx, c, api.Prefix+api.RouteProjects, q)
}

// Projects yields all registrations that the caller may see.
func (c *Client) Projects(ctx context.Context, q Query) iter.Seq2[api.Project, error] {
	return all[api.Project](ctx, c, api.Prefix+api.RouteProjects, q)
}

// RegisterProject makes a project known to the service, and waits until its config has been loaded.
func (c *Client) RegisterProject(ctx context.Context, r api.ProjectRegistration) (*api.Project, error) {
	var out api.Project
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.Prefix + api.RouteProjects, in: r, out: &out})
	return &out, err
}

// GetProject reads a registration by id.
func (c *Client) GetProject(ctx context.Context, id string) (*api.Project, error) {
	var out api.Project
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.ProjectPath(id), out: &out})
	return &out, err
}

// UpdateProject changes the members of u that are set.
func (c *Client) UpdateProject(ctx context.Context, id string, u api.ProjectUpdate) (*api.Project, error) {
	var out api.Project
	_, err := c.do(ctx, call{method: http.MethodPut, path: api.ProjectPath(id), in: u, out: &out})
	return &out, err
}

// UnregisterProject makes the service forget a project. Its data stays.
func (c *Client) UnregisterProject(ctx context.Context, id string) (*api.DeleteResult, error) {
	var out api.DeleteResult
	_, err := c.do(ctx, call{method: http.MethodDelete, path: api.ProjectPath(id), out: &out})
	return &out, err
}

// ProjectStatus reads how a project does.
func (c *Client) ProjectStatus(ctx context.Context, id string) (*api.ProjectStatus, error) {
	var out api.ProjectStatus
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.ProjectStatusPath(id), out: &out})
	return &out, err
}

// Reload makes the service load a project's config again and waits for the outcome. An invalid config is an *Error
// with status 422 and its Problems, and the served one stays.
func (c *Client) Reload(ctx context.Context, namespace string) (*api.ReloadResult, error) {
	var out api.ReloadResult
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: api.ReloadPath(namespace),
		query: url.Values{api.ParamWait: {"true"}}, out: &out,
	})
	return &out, err
}

// RequestReload asks for a reload without waiting for it.
func (c *Client) RequestReload(ctx context.Context, namespace string) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.ReloadPath(namespace)})
	return err
}

// ListCollections describes the collections of a project that the caller may read.
func (c *Client) ListCollections(ctx context.Context, namespace string) (*api.List[api.CollectionDescription], error) {
	return list[api.CollectionDescription](ctx, c, api.CollectionsPath(namespace), Query{})
}

// DescribeCollection describes one collection.
func (c *Client) DescribeCollection(ctx context.Context, namespace, collection string) (*api.CollectionDescription, error) {
	var out api.CollectionDescription
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.CollectionPath(namespace, collection), out: &out})
	return &out, err
}
