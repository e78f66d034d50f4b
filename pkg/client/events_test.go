package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// streaming is a client of a server that answers with these bodies, one after the other, and notes the id of the event
// that the client says it had last.
func streaming(t *testing.T, bodies ...string) (c *client.Client, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(*asked)
		*asked = append(*asked, r.Header.Get("Last-Event-ID"))
		switch {
		case n >= len(bodies):
			w.WriteHeader(http.StatusNoContent)
		case bodies[n] == "other":
			fmt.Fprint(w, "<html>")
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, bodies[n])
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{Server: server.URL, Backoff: func(int) time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

const (
	first  = ": \n\nid: 1\nevent: log\ndata: {\"message\":\"a\",\"level\":\"info\"}\n\n"
	second = "id: 2\nevent: done\ndata: {\"status\":\"succeeded\"}\n\n"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for name, tt := range map[string]struct {
		bodies []string
		after  int64
		fail   bool
		events []string
		asked  []string
		err    bool
	}{
		"one stream":                      {[]string{first + second}, 0, false, []string{"1 log a", "2 done "}, []string{""}, false},
		"a stream that breaks":            {[]string{first, second}, 0, false, []string{"1 log a", "2 done "}, []string{"", "1"}, false},
		"a service that stops":            {[]string{first + "event: stopping\ndata: {}\n\n", second}, 0, false, []string{"1 log a", "2 done "}, []string{"", "1"}, false},
		"an event that breaks":            {[]string{"id: 1\nevent: lo", first, second}, 0, false, []string{"1 log a", "2 done "}, []string{"", "", "1"}, false},
		"nothing to come":                 {nil, 2, false, nil, []string{"2"}, false},
		"streams that break all the time": {[]string{first, "", "", ""}, 0, false, []string{"1 log a"}, []string{"", "1", "1"}, true},
		"another program":                 {[]string{"other"}, 0, false, nil, []string{""}, true},
		"who has had enough":              {[]string{first + second}, 0, true, []string{"1 log a"}, []string{""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, asked := streaming(t, tt.bodies...)
			var events []string
			err := c.FollowJobRun(t.Context(), "shop", "cleanup", "r", tt.after, func(e api.RunEvent) error {
				events = append(events, fmt.Sprintf("%d %s %s", e.ID, e.Event, e.Data.Message))
				if tt.fail {
					return stop
				}
				return nil
			})
			if (err != nil) != tt.err || tt.fail && !errors.Is(err, stop) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tt.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.asked, *asked); diff != "" {
				t.Errorf("ids sent (-want +got):\n%s", diff)
			}
		})
	}
}

// Feeds that have no end take it for broken when nothing follows, and go on trying; a run has ended then.
func TestNothingFollows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		follow func(*client.Client) error
		asked  int
		err    bool
	}{
		"a run":  {func(c *client.Client) error { return c.FollowJobRun(t.Context(), "shop", "cleanup", "r", 2, nil) }, 1, false},
		"events": {func(c *client.Client) error { return c.FollowProjectEvents(t.Context(), "shop", 2, nil) }, 3, true},
		"changes": {func(c *client.Client) error {
			return c.FollowChanges(t.Context(), "shop", "items", client.Query{}, "2", nil)
		}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, asked := streaming(t)
			unreachable := &client.UnreachableError{}
			if err := tt.follow(c); errors.As(err, &unreachable) != tt.err || err != nil && !tt.err {
				t.Errorf("error %v", err)
			}
			if len(*asked) != tt.asked || (*asked)[0] != "2" {
				t.Errorf("asked behind %q", *asked)
			}
		})
	}
}
