package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/svcctl/svc/pkg/api"
)

// eventStream is the open answer of a route that goes on sending events, line by line.
type eventStream struct {
	*bufio.Scanner

	c    *Client
	resp *http.Response
}

// openStream asks for a stream behind the last event that is known, "" for none. No line of it may be longer than maxLine. The
// stream is nil when the service says that nothing will follow; what that means, the caller knows.
func (c *Client) openStream(ctx context.Context, r Request, last string, maxLine int) (*eventStream, error) {
	r.Header = http.Header{"Accept": {api.MediaEvents}}
	if last != "" {
		r.Header.Set(api.HeaderLastEventID, last)
	}
	resp, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if media := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusNoContent || media != api.MediaEvents {
		defer resp.Body.Close() //nolint:errcheck // what matters has been read
		if resp.StatusCode == http.StatusNoContent {
			return nil, nil //nolint:nilnil // there is no stream
		}
		return nil, c.notOurs(resp, fmt.Errorf("want %s", api.MediaEvents))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	return &eventStream{lines, c, resp}, nil
}

// Close lets go of the answer.
func (s *eventStream) Close() error { return s.resp.Body.Close() }

// ended is the error of a stream that has no line left: that it broke, or was ended by the service or something before it.
func (s *eventStream) ended(ctx context.Context) error {
	if err := s.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return s.c.unreachable(ctx, err)
	}
	return s.c.unreachable(ctx, errStreamEnded)
}
