package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// AgentGuide tells what a project's config tells agents: of the project, or of the collection or action that is named. lang picks the
// language of its texts; "": as they are.
func (c *Client) AgentGuide(ctx context.Context, namespace, collection, action, lang string) (*api.AgentGuide, error) {
	q := url.Values{}
	for name, value := range map[string]string{api.ParamCollection: collection, api.ParamAction: action, api.ParamLang: lang} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var out api.AgentGuide
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.AgentGuidePath(namespace), query: q, out: &out})
	return &out, err
}

// ProbeMCP tells what the endpoint for agents is, and its tools. It takes a personal access token, as all of the endpoint.
func (c *Client) ProbeMCP(ctx context.Context) (*api.MCPProbe, error) {
	var out api.MCPProbe
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteMCP, out: &out})
	return &out, err
}

// SendMCP sends one JSON-RPC message of an agent, once, and gives the answer as it came: nil for a message that wants none. A refusal of the
// endpoint itself, which is no answer to the message, is an *Error.
func (c *Client) SendMCP(ctx context.Context, message []byte) (json.RawMessage, error) {
	ctx, end := c.bounded(ctx)
	defer end()
	resp, err := c.Do(ctx, Request{
		Method: http.MethodPost, Path: api.Prefix + api.RouteMCP, Header: http.Header{"Content-Type": {api.MediaJSON}}, Body: bytes.NewReader(message),
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	data, err := c.ReadAnswer(ctx, resp)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusAccepted:
		return nil, nil
	case !json.Valid(data):
		return nil, c.notOurs(resp, errors.New("it is not JSON"))
	}
	return data, nil
}
