package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// eventStream is the open answer of a route that goes on sending events, line by line.
type eventStream struct {
	*bufio.Scanner

	c     *Client
	resp  *http.Response
	ctx   context.Context //nolint:containedctx // of the reading, which goes on behind the call
	end   context.CancelCauseFunc
	quiet *time.Timer // runs while a line is waited for; nil: that may take any time
}

// errQuiet is the cause of the end of a stream on which nothing comes.
var errQuiet = fmt.Errorf("nothing came on the stream, not even what tells that it is alive: %w", context.DeadlineExceeded)

// openStream asks for a stream behind the last event that is known, "" for none. No line of it may be longer than maxLine. The
// stream is nil when the service says that nothing will follow; what that means, the caller knows.
func (c *Client) openStream(ctx context.Context, r Request, last string, maxLine int) (*eventStream, error) {
	r.Header = http.Header{"Accept": {api.MediaEvents}}
	if last != "" {
		r.Header.Set(api.HeaderLastEventID, last)
	}
	ctx, end := context.WithCancelCause(ctx)
	if c.timeout > 0 {
		late := time.AfterFunc(c.timeout, func() { end(errTimeout) })
		defer late.Stop()
	}
	resp, err := c.Do(ctx, r) //nolint:bodyclose // Close closes it
	if err != nil {
		end(context.Canceled)
		return nil, err
	}
	if media := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusNoContent || media != api.MediaEvents {
		defer end(context.Canceled)
		defer resp.Body.Close() //nolint:errcheck // what matters has been read
		if resp.StatusCode == http.StatusNoContent {
			return nil, nil //nolint:nilnil // there is no stream
		}
		return nil, c.notOurs(resp, fmt.Errorf("want %s", api.MediaEvents))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	s := &eventStream{Scanner: lines, c: c, resp: resp, ctx: ctx, end: end}
	if c.quiet > 0 {
		s.quiet = time.AfterFunc(c.quiet, func() { end(errQuiet) })
		s.quiet.Stop()
	}
	return s, nil
}

// Scan reads the next line.
func (s *eventStream) Scan() bool {
	if s.quiet != nil {
		s.quiet.Reset(s.c.quiet)
		defer s.quiet.Stop()
	}
	return s.Scanner.Scan()
}

// Close lets go of the answer.
func (s *eventStream) Close() error {
	s.end(context.Canceled)
	return s.resp.Body.Close()
}

// ended is the error of a stream that has no line left: that it broke, fell silent, or was ended by the service or something before it.
func (s *eventStream) ended(ctx context.Context) error {
	if ctx.Err() == nil && errors.Is(context.Cause(s.ctx), errQuiet) { // another one may be alive
		return &UnreachableError{Server: s.c.root, Err: errQuiet}
	}
	if err := s.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return s.c.unreachable(ctx, err)
	}
	return s.c.unreachable(ctx, errStreamEnded)
}
