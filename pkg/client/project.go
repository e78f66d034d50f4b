package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// ProjectOf finds the registration of a namespace; nil: there is none.
func (c *Client) ProjectOf(ctx context.Context, namespace string) (*api.Project, error) {
	for p, err := range c.Projects().All(ctx, Query{}) {
		if err != nil {
			return nil, err
		}
		if p.Namespace == namespace {
			return &p, nil
		}
	}
	return nil, nil //nolint:nilnil // there may be none
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

// ReloadPlanned is Reload, unless it would change something else than the plan with that hash, or has a greater risk than is
// allowed; either may be empty.
func (c *Client) ReloadPlanned(ctx context.Context, namespace, hash string, allow api.Risk) (*api.ReloadResult, error) {
	var out api.ReloadResult
	q := url.Values{api.ParamWait: {"true"}}
	if hash != "" {
		q.Set(api.ParamPlan, hash)
	}
	if allow != "" {
		q.Set(api.ParamAllow, string(allow))
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.ReloadPath(namespace), query: q, out: &out})
	return &out, err
}

// Plan tells what a reload would change, with the files on the service's disk or those of a tar archive; nil: none.
func (c *Client) Plan(ctx context.Context, namespace string, archive []byte) (*api.Plan, error) {
	var out api.Plan
	r := call{method: http.MethodPost, path: api.PlanPath(namespace), out: &out}
	if archive != nil {
		r.in, r.header = archive, http.Header{"Content-Type": {api.MediaTar}}
	}
	_, err := c.do(ctx, r)
	return &out, err
}

// RequestReload asks for a reload without waiting for it.
func (c *Client) RequestReload(ctx context.Context, namespace string) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.ReloadPath(namespace)})
	return err
}

// Drift tells where what a project declares and what there is differ.
func (c *Client) Drift(ctx context.Context, namespace string) (*api.Drift, error) {
	var out api.Drift
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.DriftPath(namespace), out: &out})
	return &out, err
}

// SyncIndexes makes the indexes of a project as they are declared, and tells of those that are not. It is an *Error with status 409,
// and nothing changes, if that drops indexes whose loss is above the risk that is allowed; "": if it drops any.
func (c *Client) SyncIndexes(ctx context.Context, namespace string, allow api.Risk) (*api.Drift, error) {
	var out api.Drift
	q := url.Values{}
	if allow != "" {
		q.Set(api.ParamAllow, string(allow))
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.SyncIndexesPath(namespace), query: q, out: &out})
	return &out, err
}

// Generations lists the configs that a project was served from, the latest first.
func (c *Client) Generations(ctx context.Context, namespace string) (*api.List[api.Generation], error) {
	return list[api.Generation](ctx, c, api.GenerationsPath(namespace), Query{})
}

// Rollback has an earlier generation of a project served again and waits until it is. One that is no longer valid is an
// *Error with status 422 and its Problems, and nothing changes.
func (c *Client) Rollback(ctx context.Context, namespace string, generation int64) (*api.RollbackResult, error) {
	var out api.RollbackResult
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.RollbackPath(namespace), in: api.RollbackWrite{Generation: generation}, out: &out})
	return &out, err
}

// ProjectEvents lists what the service did with a project, the latest first.
func (c *Client) ProjectEvents(ctx context.Context, namespace string) (*api.List[api.ProjectEvent], error) {
	return list[api.ProjectEvent](ctx, c, api.ProjectEventsPath(namespace), Query{})
}

// FollowProjectEvents calls fn for each event of a project behind one, 0 for all that are kept, until ctx ends or fn fails. A
// stream that breaks is opened again behind the last event.
func (c *Client) FollowProjectEvents(ctx context.Context, namespace string, after int64, fn func(api.ProjectEvent) error) error {
	path := api.ProjectEventsPath(namespace)
	return c.follow(ctx, path, func() (bool, error) {
		before := after
		err := c.readProjectEvents(ctx, path, &after, fn)
		return after > before, err
	})
}

// readProjectEvents reads one stream. It never returns nil.
func (c *Client) readProjectEvents(ctx context.Context, path string, after *int64, fn func(api.ProjectEvent) error) error {
	last := ""
	if *after > 0 {
		last = strconv.FormatInt(*after, 10)
	}
	stream, err := c.openStream(ctx, Request{Method: http.MethodGet, Path: path, Query: url.Values{api.ParamWatch: {"true"}}}, last, maxEvent)
	if err != nil {
		return err
	}
	if stream == nil { // it has no end, so that nothing left is no answer
		return c.unreachable(ctx, errStreamEnded)
	}
	defer stream.Close() //nolint:errcheck // what matters has been read
	kind := ""
	for stream.Scan() {
		name, value, _ := strings.Cut(stream.Text(), ": ")
		switch {
		case name == "event":
			kind = value
		case name == "data" && kind == api.EventProject:
			var event api.ProjectEvent
			if err := json.Unmarshal([]byte(value), &event); err != nil {
				return c.notOurs(stream.resp, err)
			}
			if err := fn(event); err != nil {
				return err
			}
			*after = event.ID
		}
	}
	return stream.ended(ctx)
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

// CollectionStats says how large a collection is.
func (c *Client) CollectionStats(ctx context.Context, namespace, collection string) (*api.CollectionStats, error) {
	var out api.CollectionStats
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.CollectionStatsPath(namespace, collection), out: &out})
	return &out, err
}

// ExplainAccess says what somebody may do with the records of a project, and why.
func (c *Client) ExplainAccess(ctx context.Context, namespace string, r api.ExplainRequest) (*api.Explanation, error) {
	var out api.Explanation
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.AccessExplainPath(namespace), in: r, out: &out})
	return &out, err
}
