package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// maxEvent is how long a line of a stream may be, in bytes.
const maxEvent = 1 << 20

// errStreamEnded says that a stream ended before what it tells of did.
var errStreamEnded = errors.New("the stream of events ended early")

// followRun reads the events of a run behind one, and calls fn for each until the last one has come or fn fails. A stream
// that breaks is opened again behind the last event.
func (c *Client) followRun(ctx context.Context, path string, after int64, fn func(api.RunEvent) error) error {
	return c.follow(ctx, path, func() (bool, error) {
		before := after
		err := c.readEvents(ctx, path, &after, fn)
		return after > before, err
	})
}

// follow reads a stream by read until that returns nil or an error for good. A stream that breaks is read again after a
// while, a few times where nothing comes: read says whether something has come.
func (c *Client) follow(ctx context.Context, path string, read func() (moved bool, err error)) error {
	if strings.Contains(path, "//") {
		return fmt.Errorf("GET %s: an id or a name is empty", path)
	}
	for failures := 0; ; {
		moved, err := read()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if moved {
			failures = 0
		}
		unreachable, broken := errors.AsType[*UnreachableError](err)
		if failures++; !broken || unreachable.Permanent() || failures == maxAttempts {
			return err
		}
		timer := time.NewTimer(c.backoff(failures + 1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", c.root, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// readEvents reads one stream. It returns nil when the last event has come, and an *UnreachableError if the stream ends
// before.
func (c *Client) readEvents(ctx context.Context, path string, after *int64, fn func(api.RunEvent) error) error {
	last := ""
	if *after > 0 {
		last = strconv.FormatInt(*after, 10)
	}
	stream, err := c.openStream(ctx, Request{Method: http.MethodGet, Path: path}, last, maxEvent)
	if err != nil || stream == nil { // a run whose events are all known has none left
		return err
	}
	defer stream.Close() //nolint:errcheck // what matters has been read
	var event api.RunEvent
	for stream.Scan() {
		name, value, _ := strings.Cut(stream.Text(), ": ")
		switch name {
		case "id":
			event.ID, err = strconv.ParseInt(value, 10, 64)
		case "event":
			event.Event = value
		case "data":
			err = json.Unmarshal([]byte(value), &event.Data)
		case "": // the end of an event, or a comment
			if event.ID == 0 {
				event = api.RunEvent{}
				continue
			}
			*after = event.ID
			if err := fn(event); err != nil {
				return err
			}
			if event.Event == api.EventDone || event.Event == api.EventError {
				return nil
			}
			event = api.RunEvent{}
		}
		if err != nil {
			return c.notOurs(stream.resp, err)
		}
	}
	return stream.ended(ctx)
}
