package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

const feedConfig = `
namespace: blog
collections:
  - name: articles
    fields: [{name: title, type: string}, {name: n, type: number}, {name: secret, type: string, hidden: true}]
    permissions:
      public: {methods: {get: true}, filter: {n: {$gte: 0}}}
      user: {methods: {get: true}}
`

// feed is a reader's connection to a feed of changes.
type feed struct {
	t      *testing.T
	lines  *bufio.Scanner
	close  context.CancelFunc
	last   string // the id of the last event
	told   string // the data of the last event
	status answer // of one that was refused
	masked bool   // the reader may not see all fields
}

// connect opens a feed of articles, behind an event if that is given.
func connect(t *testing.T, addr, query, after string, who option) *feed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/v1/_/blog/articles/_changes"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	who(req)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) //nolint:bodyclose // with its context
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{t: t, lines: bufio.NewScanner(res.Body), close: cancel, masked: req.Header.Get("X-Admin-Token") == ""}
	if res.StatusCode != http.StatusOK {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		f.status = answer{res.StatusCode, res.Header, string(body)}
		return f
	}
	if got := f.next(); got != "ready {}" {
		t.Fatalf("the feed begins with %s", got)
	}
	return f
}

// next gives the next event, "" at the end.
func (f *feed) next() string {
	f.t.Helper()
	timer := time.AfterFunc(patience, f.close)
	defer timer.Stop()
	kind, data := "", ""
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			f.last = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if kind != "" {
				return kind + " " + data
			}
		}
	}
	return ""
}

// want reads an event of a record with a part of its data. A change that was told as of a later one may come once
// more for that one: such an update says what the event before it has said.
func (f *feed) want(kind, id, part string) {
	f.t.Helper()
	for {
		got := f.next()
		if f.masked && strings.Contains(got, "canary") {
			f.t.Errorf("told of what is hidden: %s", got)
		}
		event, data, _ := strings.Cut(got, " ")
		if event == kind && strings.HasPrefix(data, `{"id":"`+id+`"`) && strings.Contains(data, part) {
			f.told = data
			return
		}
		if event != "update" || data != f.told && (kind == "update" || !strings.HasPrefix(data, `{"id":"`+id)) {
			f.t.Errorf("got %s, want %s of %s with %s", got, kind, id, part)
			return
		}
	}
}

// pen writes articles as the administrator.
type pen struct {
	t    *testing.T
	addr string
}

func (p pen) do(method, path, body string) answer {
	p.t.Helper()
	s := &service{t: p.t, url: "http://" + p.addr}
	res := s.do(method, "/api/v1/_/blog/articles"+path, admin, text(body))
	if res.status >= 300 {
		p.t.Fatalf("%s %s: %s", method, path, res)
	}
	return res
}

func (p pen) create(n int) string {
	return p.do("POST", "", fmt.Sprintf(`{"title": "T", "n": %d, "secret": "canary"}`, n)).field("id")
}

func (p pen) set(id string, n int) { p.do("PUT", "/"+id, fmt.Sprintf(`{"n": %d}`, n)) }
func (p pen) remove(id string)     { p.do("DELETE", "/"+id, "") }

// A feed tells its reader of what they can see, when it comes, changes and goes, and of nothing else.
func TestChanges(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		edit(t, cfg, feedConfig)
		i := start(t, cfg)
		i.register(t)
		p := pen{t, i.addr}
		old, unseen := p.create(1), p.create(-1)
		all, public := connect(t, i.addr, "", "", admin), connect(t, i.addr, "", "", noop)
		big := connect(t, i.addr, "?filter[n][gte]=5&select=n", "", noop)

		p.set(unseen, -2)
		all.want("update", unseen, `"n":-2`)
		a := p.create(1)
		all.want("create", a, `"n":1`)
		public.want("create", a, `"item":{"id":"`+a+`","title":"T","n":1,`)
		p.set(a, 5)
		public.want("update", a, `"n":5`)
		big.want("create", a, `"item":{"id":"`+a+`","n":5}`)
		p.set(a, 4)
		public.want("update", a, `"n":4`)
		big.want("delete", a, "")
		p.set(a, -4)
		public.want("delete", a, "}")
		p.set(a, -5)
		p.set(a, 6)
		public.want("create", a, `"n":6`)
		big.want("create", a, `"n":6`)
		p.remove(unseen)
		p.remove(old)
		public.want("delete", old, "")
		p.remove(a)
		public.want("delete", a, "")
		big.want("delete", a, "")
		told := ""
		for !strings.HasPrefix(told, "delete "+`{"id":"`+a) { // of a record that is gone by now, changes may be left out
			if told = all.next(); told == "" {
				t.Fatal("the feed has ended")
			}
		}
	})
}

// Who comes back with the id of their last event is told what they have missed, after a restart, too.
func TestChangesGoOn(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		edit(t, cfg, feedConfig)
		i := start(t, cfg)
		i.register(t)
		p := pen{t, i.addr}
		kept, dropped, left, unseen := p.create(1), p.create(2), p.create(3), p.create(-1)
		all, public := connect(t, i.addr, "", "", admin), connect(t, i.addr, "", "", noop)
		first := p.create(1)
		all.want("create", first, "")
		public.want("create", first, "")
		tokens := []string{all.last, public.last}
		p.remove(first) // told, but the reader says that it did not arrive
		all.want("delete", first, "")
		public.want("delete", first, "")
		again := []*feed{connect(t, i.addr, "", tokens[0], admin), connect(t, i.addr, "", tokens[1], noop)} // in place of those
		again[0].want("delete", first, "")
		again[1].want("delete", first, "")
		if got := connect(t, i.addr, "?filter[n]=1", tokens[1], noop).status.String(); !strings.HasPrefix(got, "410 changes_lost: ") {
			t.Errorf("another filter: %s", got)
		}
		all, public = again[0], again[1]
		p.set(kept, 1)
		all.want("update", kept, "")
		public.want("update", kept, "")
		i.stop()
		if got := public.next(); !strings.HasPrefix(got, "stopping ") {
			t.Errorf("the feed ends with %q", got)
		}
		i = start(t, cfg)
		p = pen{t, i.addr}
		eventually(t, func() string {
			if _, err := i.CountRecords(t.Context(), "blog", "articles", ""); err != nil {
				return err.Error()
			}
			return ""
		})
		p.set(kept, 7)
		p.remove(dropped)
		p.set(left, -3)
		p.set(unseen, -7)
		all, public = connect(t, i.addr, "", all.last, admin), connect(t, i.addr, "", public.last, noop)
		all.want("update", kept, `"n":7`)
		all.want("delete", dropped, "")
		all.want("update", left, `"n":-3`)
		all.want("update", unseen, "")
		public.want("update", kept, `"n":7`)
		public.want("delete", dropped, "")
		public.want("delete", left, "")
		marker := p.create(1)
		public.want("create", marker, "") // and nothing of what can't be seen
	})
}

// What a reader may see is decided when an event is told.
func TestChangesOfRights(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		edit(t, cfg, feedConfig)
		i := start(t, cfg)
		i.register(t)
		p := pen{t, i.addr}
		a := p.create(5)
		public := connect(t, i.addr, "", "", noop)
		all := connect(t, i.addr, "", "", admin)
		reload := func(config string) {
			t.Helper()
			edit(t, cfg, config)
			(&service{t: t, url: "http://" + i.addr}).do("POST", "/api/v1/_/blog/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		}
		reload(strings.Replace(feedConfig, "{name: title, type: string}", "{name: title, type: string, hidden: true}", 1))
		p.set(a, 6)
		if got := public.next(); strings.Contains(got, "title") || !strings.Contains(got, `"n":6`) {
			t.Error(got)
		}
		reload(strings.Replace(feedConfig, "$gte: 0", "$gte: 9", 1))
		p.set(a, 7)
		public.want("delete", a, "}")
		p.set(a, 8)
		p.set(a, 9)
		public.want("create", a, `"n":9`)
		reload(strings.Replace(feedConfig, "public: {methods: {get: true}", "public: {methods: {}", 1))
		p.set(a, 10)
		got := public.next()
		for strings.Contains(got, `"n":9`) { // both changes from before were told as of the second
			got = public.next()
		}
		if got != "" {
			t.Errorf("after the right has ended: %s", got)
		}
		all.want("update", a, `"n":`)
	})
}

func TestChangesThatAreRefused(t *testing.T) {
	cfg := newConfig(t)
	edit(t, cfg, feedConfig)
	i := start(t, cfg)
	i.register(t)
	token := connect(t, i.addr, "", "", admin).last
	for _, tt := range []struct{ query, after, want string }{
		{"?filter[secret]=x", "", "400 unknown_field: unknown field: secret"},
		{"?filter[nope]=x", "", "400 unknown_field: unknown field: nope"},
		{"?select=secret", "", "400 unknown_field: unknown field: secret"},
		{"?sort=n", "", "400 unknown_parameter: unknown query parameter: sort"},
		{"", "7", "400 bad_event_id: Last-Event-ID must be the id of an event of this feed"},
		{"", token[:len(token)-1], "400 bad_event_id: Last-Event-ID must be the id of an event of this feed"},
		{"", token, "410 changes_lost: what changed since then is not known any more: read the records anew, and connect without Last-Event-ID"}, // another's
	} {
		if got := connect(t, i.addr, tt.query, tt.after, noop).status.String(); got != tt.want {
			t.Errorf("%s %s: %s", tt.query, tt.after, got)
		}
	}
	var open []*feed
	for range 32 {
		open = append(open, connect(t, i.addr, "", "", noop))
	}
	refused := connect(t, i.addr, "", "", noop).status
	if refused.status != http.StatusTooManyRequests || refused.header.Get("Retry-After") != "10" {
		t.Error(refused)
	}
	for _, f := range open {
		f.close()
	}
	s := &service{t: t, url: "http://" + i.addr}
	eventually(t, func() string { // the server sees a while later that a reader has gone
		head := s.do("HEAD", "/api/v1/_/blog/articles/_changes")
		if head.status == http.StatusOK && head.header.Get("Content-Type") == "text/event-stream" {
			return ""
		}
		return "HEAD: " + head.String()
	})
	if refused := connect(t, i.addr, "", "", noop).status; refused.status != 0 {
		t.Error(refused)
	}
}
