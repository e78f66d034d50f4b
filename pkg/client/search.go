package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// SearchQueue tells what a collection has to index yet.
func (c *Client) SearchQueue(ctx context.Context, namespace, collection string) (*api.SearchQueue, error) {
	var out api.SearchQueue
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.QueuePath(namespace, collection), out: &out})
	return &out, err
}

// SearchWorker tells what a project has to index yet.
func (c *Client) SearchWorker(ctx context.Context, namespace string) (*api.SearchWorker, error) {
	var out api.SearchWorker
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.SearchWorkerPath(namespace), out: &out})
	return &out, err
}

// RegenerateSearch starts a run that makes search indexes of a project anew: those of a collection, "" for all, and of one of its searches,
// "" for all.
func (c *Client) RegenerateSearch(ctx context.Context, namespace, collection, search string) (*api.Run, error) {
	q := url.Values{}
	if collection != "" {
		q.Set(api.ParamCollection, collection)
	}
	if search != "" {
		q.Set(api.ParamSearch, search)
	}
	var out api.Run
	_, err := c.do(ctx, call{method: http.MethodPost, path: api.RegeneratePath(namespace), query: q, out: &out})
	return &out, err
}

// Regeneration gives a run that makes search indexes anew.
func (c *Client) Regeneration(ctx context.Context, namespace, id string) (*api.Run, error) {
	var out api.Run
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.RegenerationPath(namespace, id), out: &out})
	return &out, err
}

// FollowRegeneration calls fn for each event of such a run behind one, until the last has come or fn fails.
func (c *Client) FollowRegeneration(ctx context.Context, namespace, id string, after int64, fn func(api.RunEvent) error) error {
	return c.followRun(ctx, api.RegenerationEventsPath(namespace, id), after, fn)
}
