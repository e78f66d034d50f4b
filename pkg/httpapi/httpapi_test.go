package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/mql"
)

func TestStatusOfKinds(t *testing.T) {
	want := map[errs.Kind]int{
		errs.Internal: 500, errs.Invalid: 400, errs.Denied: 403, errs.NotFound: 404, errs.Method: 405, errs.Conflict: 409,
		errs.Precondition: 412, errs.TooLarge: 413, errs.MediaType: 415, errs.Limit: 422, errs.Throttled: 429,
		errs.Unavailable: 503, errs.Timeout: 504, errs.Full: 507, errs.Full + 1: 500,
	}
	got := map[errs.Kind]int{}
	for kind := range errs.Full + 2 {
		got[kind] = httpapi.StatusOf(kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryRouteHasARight(t *testing.T) {
	var got []string
	for _, rt := range httpapi.Routes() {
		got = append(got, fmt.Sprintf("%-6s %s: %s", rt.Method, strings.TrimPrefix(rt.Pattern, "/api/v1"), rt.Right))
	}
	want := `GET    /version: anyone
POST   /login: anyone
POST   /logout: login
GET    /me: credential
PUT    /me/password: login
GET    /_meta: anyone
GET    /_meta/{model}: anyone
POST   /admin/keys/rotate: keys.rotate
POST   /admin/shutdown: server.shutdown
GET    /admin/embedding/status: server.shutdown
GET    /user: user.read
POST   /user: user.create
GET    /user/{id}: user.read
PUT    /user/{id}: user.update
DELETE /user/{id}: user.delete
GET    /org: org.read
POST   /org: org.create
GET    /org/{id}: org.read
PUT    /org/{id}: org.update
DELETE /org/{id}: org.delete
GET    /team: team.read
POST   /team: team.create
GET    /team/{id}: team.read
PUT    /team/{id}: team.update
DELETE /team/{id}: team.delete
GET    /token: login
POST   /token: login
GET    /token/_scopes: login
GET    /token/{id}: login
PUT    /token/{id}: login
DELETE /token/{id}: login
GET    /audit: audit.read
GET    /audit/verify: audit.verify
GET    /_/{project}/_/audit: project audit.read
GET    /project: project.read
POST   /project: project.create
GET    /project/{id}: project.read
PUT    /project/{id}: project.update
DELETE /project/{id}: project.delete
GET    /project/{id}/status: project.read
POST   /_/{project}/_/admin/reload: project project.reload
POST   /_/{project}/_/admin/plan: project project.reload
GET    /_/{project}/_/admin/generations: project project.reload
POST   /_/{project}/_/admin/rollback: project project.reload
GET    /_/{project}/_/admin/drift: project project.read
POST   /_/{project}/_/admin/indexes/sync: project project.reload
GET    /_/{project}/_/admin/search-worker/status: project project.regenerate-search
POST   /_/{project}/_/admin/regenerate-search: project project.regenerate-search
GET    /_/{project}/_/admin/regenerate-search/{id}: project project.regenerate-search
GET    /_/{project}/_/admin/regenerate-search/{id}/events: project project.regenerate-search
GET    /_/{project}/_/admin/embedding/status: project project.regenerate-search
GET    /_/{project}/_/admin/events: project project.read
POST   /_/{project}/_/admin/access/explain: project project.read
GET    /_/{project}/_/admin/snapshots/profiles: project project.snapshot
GET    /_/{project}/_/admin/snapshots: project project.snapshot
POST   /_/{project}/_/admin/snapshots: project project.snapshot
POST   /_/{project}/_/admin/snapshots/prune: project project.snapshot
GET    /_/{project}/_/admin/snapshots/runs: project project.snapshot
GET    /_/{project}/_/admin/snapshots/runs/{id}: project project.snapshot
GET    /_/{project}/_/admin/snapshots/{id}: project project.snapshot
PUT    /_/{project}/_/admin/snapshots/{id}: project project.snapshot
DELETE /_/{project}/_/admin/snapshots/{id}: project project.snapshot
GET    /_/{project}/_/admin/snapshots/{id}/events: project project.snapshot
POST   /_/{project}/_/admin/snapshots/{id}/cancel: project project.snapshot
POST   /_/{project}/_/admin/snapshots/{id}/verify: project project.snapshot
POST   /_/{project}/_/admin/snapshots/{id}/drill: project project.snapshot
GET    /_/{project}/_/admin/snapshots/{id}/diff: project project.snapshot
POST   /_/{project}/_/admin/snapshots/{id}/restore: project project.snapshot
GET    /_/{project}/_/admin/snapshots/{id}/download: project project.snapshot
POST   /_/{project}/_/admin/snapshots/import: project project.snapshot
POST   /_/{project}/_/admin/backup: project project.backup
GET    /_/{project}/_/admin/backup/analyze-download: project project.backup
GET    /_/{project}/_/admin/backup/download: project project.backup
POST   /_/{project}/_/admin/backup/restore: project project.backup
GET    /_/{project}/_/collections: project project.read
GET    /_/{project}/_/collections/{collection}: records get
GET    /_/{project}/_/collections/{collection}/stats: project project.read
GET    /mcp: personal access token
POST   /mcp: personal access token
GET    /_/{project}/_/agent: described
GET    /_openapi/{project}: described
GET    /_/{project}/_/jobs: project project.read
GET    /_/{project}/_/jobs/{job}: project project.read
GET    /_/{project}/_/jobs/{job}/next: project project.read
POST   /_/{project}/_/jobs/{job}/suspend: project project.reload
POST   /_/{project}/_/jobs/{job}/resume: project project.reload
POST   /_/{project}/_/jobs/{job}/run: project project.reload
GET    /_/{project}/_/jobs/{job}/runs: project project.read
GET    /_/{project}/_/jobs/{job}/runs/{id}: project project.read
DELETE /_/{project}/_/jobs/{job}/runs/{id}: project project.reload
GET    /_/{project}/_/jobs/{job}/runs/{id}/events: project project.read
GET    /_/{project}/_/assets: project project.read
GET    /_/{project}/_/assets/{asset}/*: asset
GET    /_/{project}/{collection}/{id}/{field}/*: file
GET    /_/{project}/_/actions: actions
GET    /_/{project}/_/actions/{action}: action get
POST   /_/{project}/_/actions/{action}: action post
GET    /_/{project}/_/actions/{action}/describe: action any
GET    /_/{project}/_/actions/{action}/runs: action runs
GET    /_/{project}/_/actions/{action}/runs/{id}: action runs
DELETE /_/{project}/_/actions/{action}/runs/{id}: action runs
GET    /_/{project}/_/actions/{action}/runs/{id}/events: action runs
GET    /_/{project}/{collection}/_count: records get
GET    /_/{project}/{collection}/_facet: records get
GET    /_/{project}/{collection}/_queue: project project.read
GET    /_/{project}/{collection}/_changes: records get
GET    /_/{project}/{collection}: records get
POST   /_/{project}/{collection}: records post
PUT    /_/{project}/{collection}: records put
DELETE /_/{project}/{collection}: records delete
GET    /_/{project}/{collection}/{id}: records get
PUT    /_/{project}/{collection}/{id}: records put
PATCH  /_/{project}/{collection}/{id}: records put
DELETE /_/{project}/{collection}/{id}: records delete`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// Every route has a method of the client, and the client calls nothing else.
func TestEveryRouteHasAClientMethod(t *testing.T) {
	var called []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called = append(called, r.Method+" "+r.URL.EscapedPath())
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	c, err := client.New(client.Options{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	callAll(t, c)

	routes := map[string]*regexp.Regexp{"GET /healthz": nil, "GET /readyz": nil, "GET /metrics": nil}
	for _, rt := range httpapi.Routes() {
		pattern := regexp.MustCompile(`\\\{[a-z]+\\\}|\\\*$`).ReplaceAllString(regexp.QuoteMeta(rt.Pattern), "x[a-z0-9]*")
		routes[rt.Method+" "+rt.Pattern] = regexp.MustCompile("^" + rt.Method + " " + pattern + "$")
	}
	used := map[string]bool{}
	for _, call := range called {
		for route, pattern := range routes {
			if pattern == nil && call == route || pattern != nil && pattern.MatchString(call) {
				used[route] = true
				call = ""
			}
		}
		if call != "" {
			t.Errorf("the client calls %s, which is no route", call)
		}
	}
	for route := range routes {
		if !used[route] {
			t.Errorf("no method of the client calls %s", route)
		}
	}
}

// callAll calls every method of a client and its models that takes a context and asks for a route of its own, with an "x" in the place of each text.
func callAll(t *testing.T, c any) {
	t.Helper()
	helpers := []string{"Do", "ReadAnswer", "Stalling", "WhileAnswering"} // which serve any request
	v := reflect.ValueOf(c)
	for i := range v.NumMethod() {
		m, name := v.Method(i), v.Type().Method(i).Name
		if m.Type().NumIn() == 0 && m.Type().NumOut() == 1 && strings.HasPrefix(m.Type().Out(0).Name(), "Model[") {
			callAll(t, m.Call(nil)[0].Interface())
		}
		if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() || slices.Contains(helpers, name) {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < m.Type().NumIn(); j++ {
			arg := reflect.New(m.Type().In(j)).Elem()
			if arg.Kind() == reflect.String {
				arg.SetString("x" + strconv.Itoa(j))
			}
			if raw, ok := reflect.TypeAssert[interface{ UnmarshalJSON([]byte) error }](arg.Addr()); ok {
				if err := raw.UnmarshalJSON([]byte(`{}`)); err != nil {
					t.Fatal(err)
				}
			}
			args = append(args, arg)
		}
		do := m.Call
		if m.Type().IsVariadic() {
			do = m.CallSlice
		}
		for _, out := range do(args) {
			if res, ok := reflect.TypeAssert[*http.Response](out); ok && res != nil {
				if err := res.Body.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// deadlines notes what deadlines are set on a connection.
type deadlines struct {
	http.ResponseWriter
	read []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

// A body has a deadline while it comes, which moves with what has come, and none stays behind: the connection's reader
// would cancel a handler that takes longer.
func TestBodyDeadlines(t *testing.T) {
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	body := bytes.Repeat([]byte("x"), 300<<10)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.NopCloser(bytes.NewReader(body)))
	began := time.Now()
	got, err := httpapi.ReadBody(w, r, 1<<20)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatal(len(got), err)
	}
	last := len(w.read) - 1
	if last < 3 || !w.read[last].IsZero() {
		t.Fatalf("%v", w.read)
	}
	if first := w.read[0].Sub(began); first < 9*time.Second || first > 11*time.Second {
		t.Errorf("first deadline in %v", first)
	}
	if moved := w.read[last-1].Sub(w.read[0]); moved < 60*time.Second || moved > 76*time.Second {
		t.Errorf("the last of 300 KiB is due %v later", moved)
	}
}

func TestBodyLimits(t *testing.T) {
	for _, tt := range []struct {
		size, claimed int64
		want          errs.Kind // Internal: none
	}{
		{10, 10, errs.Internal},
		{10, -1, errs.Internal},
		{11, 11, errs.TooLarge},
		{11, -1, errs.TooLarge},
		{0, 0, errs.Internal},
		{0, -1, errs.Internal},
		{5, 1 << 40, errs.TooLarge},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.NopCloser(strings.NewReader(strings.Repeat("x", int(tt.size)))))
		r.ContentLength = tt.claimed
		got, err := httpapi.ReadBody(httptest.NewRecorder(), r, 10)
		if err == nil && (tt.want != errs.Internal || int64(len(got)) != tt.size) || err != nil && errs.KindOf(err) != tt.want {
			t.Errorf("%+v: %d bytes, %v", tt, len(got), err)
		}
	}
	broken := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{})))
	if _, err := httpapi.ReadBody(httptest.NewRecorder(), broken, 10); errs.From(err).Code != "bad_body" {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// What is claimed to come takes no memory until it is there.
func TestClaimedLengthReservesNothing(t *testing.T) {
	const claimed = 64 << 20
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), claimed
			if _, err := httpapi.ReadBody(httptest.NewRecorder(), r, claimed); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 1<<20 {
		t.Errorf("%d bytes are taken for a body of one", allocated)
	}
}

func TestClientAddr(t *testing.T) {
	inner, outer := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")
	for _, tt := range []struct {
		peer    string
		xff     []string
		trusted []netip.Prefix
		want    string
	}{
		{"203.0.113.1:5", nil, nil, "203.0.113.1"},
		{"203.0.113.1:5", []string{"1.1.1.1"}, nil, "203.0.113.1"},
		{"10.0.0.1:5", []string{"1.1.1.1"}, nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"1.1.1.1"}, []netip.Prefix{inner}, "1.1.1.1"},
		{"[::ffff:10.0.0.1]:5", []string{"::ffff:1.1.1.1"}, []netip.Prefix{inner}, "1.1.1.1"},
		{"10.0.0.1:5", []string{"6.6.6.6, 1.1.1.1"}, []netip.Prefix{inner}, "1.1.1.1"},
		{"10.0.0.1:5", []string{"6.6.6.6", "1.1.1.1 ,192.0.2.9"}, []netip.Prefix{inner, outer}, "1.1.1.1"},
		{"10.0.0.1:5", []string{"6.6.6.6, 1.1.1.1, garbage"}, []netip.Prefix{inner}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"10.0.0.2"}, []netip.Prefix{inner}, "10.0.0.2"},
		{"10.0.0.1:5", []string{"6.6.6.6, 1.1.1.1:4711"}, []netip.Prefix{inner}, "1.1.1.1"},
		{"10.0.0.1:5", []string{"[2001:db8::1]:4711"}, []netip.Prefix{inner}, "2001:db8::1"},
		{"10.0.0.1:5", []string{""}, []netip.Prefix{inner}, "10.0.0.1"},
		{"@", []string{"1.1.1.1"}, []netip.Prefix{inner}, "invalid IP"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = tt.peer
		for _, v := range tt.xff {
			r.Header.Add("X-Forwarded-For", v)
		}
		if got := httpapi.ClientAddr(r, tt.trusted...).String(); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// Forwarded says what X-Forwarded-For does, in another way, and counts before it.
func TestForwarded(t *testing.T) {
	inner := netip.MustParsePrefix("10.0.0.0/8")
	const proxy = "10.0.0.1"
	for _, tt := range []struct {
		forwarded []string
		want      string
	}{
		{[]string{`for=1.1.1.1`}, "1.1.1.1"},
		{[]string{`For="1.1.1.1:80";proto=https;by=10.0.0.1`}, "1.1.1.1"},
		{[]string{`proto=https; for="[2001:db8::1]"`}, "2001:db8::1"},
		{[]string{`for="[2001:db8::1]:4711"`}, "2001:db8::1"},
		{[]string{`for="[::ffff:1.1.1.1]"`}, "1.1.1.1"},
		{[]string{`for="1.1.1.1:_port"`}, "1.1.1.1"},
		{[]string{`for=6.6.6.6, for=1.1.1.1`}, "1.1.1.1"},
		{[]string{`for=6.6.6.6`, `for=1.1.1.1 , for=10.0.0.2`}, "1.1.1.1"},
		{[]string{`for=6.6.6.6;host="a,b", for=10.0.0.2;host="x,y;for=7.7.7.7"`}, "6.6.6.6"},
		{[]string{`for="6.6.6.6, for=1.1.1.1`}, "1.1.1.1"}, // a quote that a client left open
		{[]string{`for=6.6.6.6, for=unknown`}, proxy},
		{[]string{`for=6.6.6.6, for=_hidden, for=10.0.0.2`}, "10.0.0.2"},
		{[]string{`for=6.6.6.6, proto=https`}, proxy},
		{[]string{`for=6.6.6.6, for=1.1.1.1;for=2.2.2.2`}, proxy},
		{[]string{`for=1.1.1.1:80`}, proxy},
		{[]string{`for=[2001:db8::1]`}, proxy},
		{[]string{`for="2001:db8::1"`}, proxy},
		{[]string{`for="[1.1.1.1]"`}, proxy},
		{[]string{`for="[2001:db8::1]x"`}, proxy},
		{[]string{`for="[2001:db8::1"`}, proxy},
		{[]string{`for="1.1.1.1:"`}, proxy},
		{[]string{`for="1.1.1.1`}, proxy},
		{[]string{`for=""`}, proxy},
		{[]string{`for=`}, proxy},
		{[]string{`for`}, proxy},
		{[]string{`for=6.6.6.6,`}, proxy},
		{[]string{``}, proxy},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = proxy + ":5"
		r.Header["Forwarded"] = tt.forwarded
		if got := httpapi.ClientAddr(r, inner).String(); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.forwarded, got, tt.want)
		}
		r.Header.Set("X-Forwarded-For", "9.9.9.9") // a client's own, or the other is
		if got := httpapi.ClientAddr(r, inner).String(); got != proxy {
			t.Errorf("%q against X-Forwarded-For: %s, want %s", tt.forwarded, got, proxy)
		}
		r.Header.Set("X-Forwarded-For", tt.want)
		if got := httpapi.ClientAddr(r, inner).String(); got != tt.want {
			t.Errorf("%q with an equal X-Forwarded-For: %s, want %s", tt.forwarded, got, tt.want)
		}
		if got := httpapi.ClientAddr(r).String(); got != proxy {
			t.Errorf("%q, from one who is not trusted: %s", tt.forwarded, got)
		}
	}
}

// Whatever a URL's query is, reading it ends, and what is refused is refused as the caller's mistake.
func FuzzListParams(f *testing.F) {
	for _, seed := range []string{
		"", "limit=10&offset=5&sort=-a,b&select=a&projection=p&after=x&count=true", `filter={"a":{"$gt":1}}`, "filter%5Ba%5D%5Bgte%5D=1&filter[b]=2",
		"filter[a][in]=1,2,3", "filter[]=1", "filter[a", "filter=%00", "a=%zz", ";", "&&&", "limit=1&limit=2", "limit=99999999999999999999",
		"filter=" + strings.Repeat(`{"$and":[`, 50), "filter[a][b][c]=1", "filter[$or]=1", "token=x&TOKEN=y", "count=maybe", "filter={}&filter[a]=1", "filter[%b0]=1", "a=%ff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := httpapi.ListParams(raw)
		if err != nil {
			if e := errs.From(err); e.Kind != errs.Invalid || e.Code == "" || e.Message == "" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		again, err := httpapi.ListParams(raw)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%q is read in two ways: %v and %v, %v", raw, p, again, err)
		}
		if p.Bytes < 0 || p.Bytes > 3*len(raw)+len("filter") || len(p.Filter) > 0 && p.Bytes == 0 {
			t.Fatalf("%q: a filter of %d bytes", raw, p.Bytes)
		}
	})
}

// FuzzWriteHeaders: whatever the headers of a write hold, reading them ends; what is taken of them is safe to keep and to repeat.
func FuzzWriteHeaders(f *testing.F) {
	f.Add("key", `"3", W/"4"`, "return=minimal", "id", "lang=de")
	f.Add(strings.Repeat("k", 256), "*", `respond-async, return="representation"; x=1`, "a b", "lang=de-AT&lang=de")
	f.Add("é", `"0", "-1", "99999999999999999999"`, "return = minimal,,;=", strings.Repeat("x", 65), "lang=%00")
	f.Fuzz(func(t *testing.T, key, match, prefer, id, query string) {
		h := http.Header{"Idempotency-Key": {key}, "If-Match": strings.Split(match, "\n"), "Prefer": {prefer}, "X-Request-Id": {id}}
		got, err := httpapi.ReadWriteHeaders(h)
		if e := errs.From(err); e != nil && (e.Kind != errs.Invalid && e.Kind != errs.Precondition || e.Code == "" || e.Message == "") {
			t.Fatalf("%q: %v", h, err)
		}
		visible := func(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) }
		if !visible(got.Key) || len(got.Key) > 255 || !visible(got.ID) || got.ID == "" || len(got.ID) > 64 {
			t.Fatalf("%q: key %q, id %q", h, got.Key, got.ID)
		}
		for _, rev := range got.Revs {
			if rev < 1 {
				t.Fatalf("%q: revision %d", match, rev)
			}
		}
		lang, err := httpapi.Language(query)
		if e := errs.From(err); e != nil && e.Kind != errs.Invalid || err == nil && (!visible(lang) || len(lang) > 64) {
			t.Fatalf("%q: %q, %v", query, lang, err)
		}
	})
}

// FuzzLastEventID: the id of an event is a number that is not negative, and nothing else is.
func FuzzLastEventID(f *testing.F) {
	for _, id := range []string{"", "0", "1", "-1", "+1", "01", "1 ", "1e3", "0x1", "9223372036854775807", "9223372036854775808", "NaN", "\x00", "é", strings.Repeat("9", 5000)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		got, err := httpapi.LastEvent(http.Header{"Last-Event-Id": {id}})
		if e := errs.From(err); e != nil && (e.Kind != errs.Invalid || e.Code != "bad_event_id") || got < 0 || err != nil && got != 0 {
			t.Fatalf("%q: %d, %v", id, got, err)
		}
		if again, err2 := httpapi.LastEvent(http.Header{"Last-Event-Id": {strconv.FormatInt(got, 10)}}); err2 != nil || again != got {
			t.Fatalf("%d, of %q: %d, %v", got, id, again, err2)
		}
	})
}

// A pattern in the short form is a string like any other, so that the limits on regular expressions see it.
func TestShortFormPatternIsAString(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]mql.RegexUse{
		"filter[name][regex]=^x":                                    {Path: "name", Pattern: "^x", Anchored: true},
		"filter[name][regex]=^x&filter[name][options]=i":            {Path: "name", Pattern: "^x", Options: "i", Anchored: true},
		"filter[name][options]=i&filter[name][regex]=x&filter[n]=1": {Path: "name", Pattern: "x", Options: "i"},
	} {
		p, err := httpapi.ListParams(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := mql.Measure(p.Filter).Regexes; len(got) != 1 || got[0] != want {
			t.Errorf("%s: measured patterns %v, want %v", query, got, want)
		}
		if _, err := mql.Compile(p.Filter); err != nil && !strings.Contains(query, "[n]=1") { // a constant that its field has to read
			t.Errorf("%s: %v", query, err)
		}
	}
	p, err := httpapi.ListParams("filter[name][options]=i")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mql.Compile(p.Filter); err == nil {
		t.Error("options of no pattern are taken")
	}
}
