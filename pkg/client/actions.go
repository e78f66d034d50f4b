package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// ListActions describes the actions of a project that the caller may call.
func (c *Client) ListActions(ctx context.Context, namespace string) (*api.List[api.ActionDescription], error) {
	return list[api.ActionDescription](ctx, c, api.ActionsPath(namespace), Query{})
}

// DescribeAction describes one action.
func (c *Client) DescribeAction(ctx context.Context, namespace, action string) (*api.ActionDescription, error) {
	return get[api.ActionDescription](ctx, c, api.ActionDescribePath(namespace, action), nil)
}

// GetAction calls an action by GET. The answer is the action's own: of an action that makes runs, 202 and the run. The
// caller closes its body.
func (c *Client) GetAction(ctx context.Context, namespace, action string, query url.Values) (*http.Response, error) {
	return c.Do(ctx, Request{Method: http.MethodGet, Path: api.ActionPath(namespace, action), Query: query, Header: http.Header{"Accept": {"*/*"}}})
}

// CallAction calls an action by POST, with JSON as its data; nil is none. It is like GetAction otherwise. Of the options
// IdempotencyKey counts; the call is not repeated by itself.
func (c *Client) CallAction(ctx context.Context, namespace, action string, query url.Values, data api.Record, o ...WriteOptions) (*http.Response, error) {
	r := Request{Method: http.MethodPost, Path: api.ActionPath(namespace, action), Query: query, Header: http.Header{"Accept": {"*/*"}}}
	if data != nil {
		r.Header.Set("Content-Type", api.MediaJSON)
		r.Body = bytes.NewReader(data)
	}
	if key := lastOf(o).IdempotencyKey; key != "" {
		r.Header.Set(api.HeaderIdempotencyKey, key)
	}
	return c.Do(ctx, r)
}

// ListActionRuns gives runs of an action, newest first: the caller's own, or all for who reads the project. Of q, Limit and
// Offset count; status is one of runs, or "" for all.
func (c *Client) ListActionRuns(ctx context.Context, namespace, action, status string, q Query) (*api.List[api.Run], error) {
	if status != "" {
		q.Extra = url.Values{api.ParamStatus: {status}}
	}
	return list[api.Run](ctx, c, api.ActionRunsPath(namespace, action), q)
}

// ActionRun gives a run of an action with its events.
func (c *Client) ActionRun(ctx context.Context, namespace, action, id string) (*api.Run, error) {
	return get[api.Run](ctx, c, api.ActionRunPath(namespace, action, id), nil)
}

// ActionResult gives what a run of an action gave, as a sync action would have answered. The caller closes the body.
func (c *Client) ActionResult(ctx context.Context, namespace, action, id string) (*http.Response, error) {
	return c.Do(ctx, Request{
		Method: http.MethodGet, Path: api.ActionRunPath(namespace, action, id), Query: url.Values{api.ParamResult: {"true"}},
		Header: http.Header{"Accept": {"*/*"}},
	})
}

// CancelActionRun asks a run of an action to end.
func (c *Client) CancelActionRun(ctx context.Context, namespace, action, id string) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodDelete, api.ActionRunPath(namespace, action, id))
}

// FollowActionRun calls fn for each event of a run of an action behind one, until the last has come or fn fails.
func (c *Client) FollowActionRun(ctx context.Context, namespace, action, id string, after int64, fn func(api.RunEvent) error) error {
	return c.followRun(ctx, api.ActionRunEventsPath(namespace, action, id), after, fn)
}
