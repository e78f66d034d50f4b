package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// ErrReset says that a feed of changes can't go on: the records have to be read anew.
var ErrReset = errors.New("the feed of changes can't go on: read the records anew, and follow it from now on")

// FollowChanges calls fn for each change of the records that q selects (its Filter and Select) behind a token, "" for from
// now on, until ctx ends or fn fails. The first event is api.EventReady: what is read after it lacks nothing. A stream that breaks is
// opened again behind the last event.
func (c *Client) FollowChanges(ctx context.Context, namespace, collection string, q Query, after string, fn func(api.Change) error) error {
	path := api.RecordChangesPath(namespace, collection)
	q = Query{Filter: q.Filter, Select: q.Select}
	return c.follow(ctx, path, func() (bool, error) {
		before := after
		err := c.readChanges(ctx, Request{Method: http.MethodGet, Path: path, Query: q.Values()}, &after, fn)
		return after != before, err
	})
}

// readChanges reads one stream. It never returns nil.
func (c *Client) readChanges(ctx context.Context, r Request, after *string, fn func(api.Change) error) error {
	stream, err := c.openStream(ctx, r, *after, maxChange)
	if err != nil {
		return err
	}
	if stream == nil { // it has no end, so that nothing left is no answer
		return c.unreachable(ctx, errStreamEnded)
	}
	defer stream.Close() //nolint:errcheck // what matters has been read
	var event api.Change
	for stream.Scan() {
		name, value, _ := strings.Cut(stream.Text(), ": ")
		switch name {
		case "id":
			event.Token = value
		case "event":
			event.Event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &event); err != nil {
				return c.notOurs(stream.resp, err)
			}
		case "": // the end of an event, or a comment
			done := event
			event = api.Change{}
			switch done.Event {
			case api.EventReset:
				return ErrReset
			case api.EventCreate, api.EventUpdate, api.EventDelete, api.EventReady:
				if err := fn(done); err != nil {
					return err
				}
			}
			if done.Token != "" {
				*after = done.Token
			}
		}
	}
	return stream.ended(ctx)
}

// maxChange is how long an event with a record may be, in bytes.
const maxChange = 64 << 20
