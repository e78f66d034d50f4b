package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

const adminToken = "door-admin-token"

const doorConfig = `
namespace: door
collections:
  - name: items
    fields: [{name: title, type: string, index: [unique]}]
    upload: {maxBodySize: 1000}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true}}
      "token:writer": {methods: {get: true, post: true, put: true}}
`

// door is a server in front of a store in memory, with a control plane that does little.
type door struct {
	system *system.System
	auth   *auth.Auth
	server *httpapi.Server
	web    *httptest.Server
}

// control reads registrations, and knows of one broken index. reloadErr is what a reload answers.
type control struct {
	httpapi.Control

	reloadErr error
}

func (c control) Update(context.Context, string, bson.D) (system.Project, error) {
	return system.Project{}, c.reloadErr
}

func (c control) Reload(context.Context, string, bool) error { return c.reloadErr }

func (c control) RollBack(context.Context, string, int64) (int64, error) { return 0, c.reloadErr }

func (control) SyncIndexes(context.Context, *project.Project, api.Risk) (*api.Drift, error) {
	return &api.Drift{}, nil
}

func (control) Drift(context.Context, *project.Project) (*api.Drift, error) {
	return &api.Drift{}, nil
}

func (control) Stats(context.Context, *project.Project, string) (api.CollectionStats, error) {
	return api.CollectionStats{}, nil
}

func (control) Indexes(context.Context, *project.Project, string) ([]api.IndexDescription, error) {
	return []api.IndexDescription{{Name: "title", Key: []string{"title"}, State: api.IndexFailed, Message: "such as 650102030405060708090a0b"}}, nil
}

func newDoor(t testing.TB, reloadErr error) *door {
	t.Helper()
	return newDoorWith(t, reloadErr, func(*httpapi.Config) {})
}

func newDoorWith(t testing.TB, reloadErr error, change func(c *httpapi.Config)) *door {
	t.Helper()
	st := teststore.Memory(t)
	log := slog.New(slog.DiscardHandler)
	logs := audit.New(audit.Options{Store: st, Now: time.Now, SystemDatabase: system.DatabaseName})
	hasher := auth.NewHasher(auth.Params{Memory: 64, Time: 1, Threads: 1}, 1)
	models := system.New(st, system.Options{
		HashPassword: hasher.Hash, Now: time.Now, Audit: logs,
	})
	if err := models.EnsureIndexes(t.Context()); err != nil {
		t.Fatal(err)
	}
	authn, err := auth.New(t.Context(), auth.Options{
		System: models, Hasher: hasher, Logger: log, Now: time.Now, AdminToken: adminToken,
	})
	if err != nil {
		t.Fatal(err)
	}
	registry := project.NewRegistry()
	registry.Set(loadProject(t, doorConfig))
	registerer := prometheus.NewRegistry()
	cfg := httpapi.Config{
		Records: records.New(st, time.Now, logs, nil, nil), System: models, Audit: logs, Registry: registry, Auth: authn,
		Keys:    idempotency.New(idempotency.Options{Store: st, Now: time.Now, Alone: true}),
		Control: control{reloadErr: reloadErr}, Status: status.NewBoard(time.Now),
		Ready: func(context.Context, bool) []api.HealthCheck { return nil }, Shutdown: func() {}, Logger: log, Registerer: registerer, Gatherer: registerer,
		MaxBodySize: 1 << 20, MCP: httpapi.MCP{Enabled: true},
	}
	change(&cfg)
	server, err := httpapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{system: models, auth: authn, server: server, web: httptest.NewServer(server)}
	t.Cleanup(d.web.Close)
	return d
}

func loadProject(t testing.TB, config string) *project.Project {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		t.Fatal(problems)
	}
	p.ID, p.Generation = "650102030405060708090a0b", 1
	return p
}

// do sends a request. headers are name, value, ….
func (d *door) do(t *testing.T, method, path, body string, headers ...string) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	var p api.Problem
	if res.Header.Get("Content-Type") == api.MediaProblem && json.Unmarshal(data, &p) == nil {
		return res.Header, fmt.Sprintf("%d %s: %s", res.StatusCode, p.Code, p.Detail)
	}
	return res.Header, strconv.Itoa(res.StatusCode)
}

// get gives the body of an answer.
func (d *door) get(t *testing.T, path string, headers ...string) string {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, req)
	return w.Body.String()
}

// A body that is announced and never comes holds up neither its answer for long, nor the end of the service.
func TestBodiesThatNeverCome(t *testing.T) {
	d := newDoor(t, nil)
	httpapi.SetRestGrace(d.server, 20*time.Millisecond)
	const claim, chunked = "Content-Length: 900\r\n", "Transfer-Encoding: chunked\r\n"
	for _, tt := range []struct{ name, request, want string }{
		{"denied", "POST /api/v1/_/door/items HTTP/1.1\r\n" + claim, "403"},
		{"denied, large", "POST /api/v1/_/door/items HTTP/1.1\r\nContent-Length: 9000000\r\n", "403"},
		{"denied, chunked", "POST /api/v1/_/door/items HTTP/1.1\r\n" + chunked, "403"},
		{"no route", "POST /nope HTTP/1.1\r\n" + claim, "404"},
		{"no project", "POST /api/v1/_/none/items HTTP/1.1\r\n" + chunked, "404"},
		{"no method", "PATCH /api/v1/version HTTP/1.1\r\n" + claim, "405"},
		{"probe", "GET /healthz HTTP/1.1\r\n" + claim, "200"},
		{"probe, chunked", "GET /readyz HTTP/1.1\r\n" + chunked, "200"},
		{"metrics", "GET /metrics HTTP/1.1\r\n" + claim, "200"},
		{"read with a body", "GET /api/v1/_/door/items HTTP/1.1\r\n" + claim, "200"},
		{"bad query", "GET /api/v1/version?%zz HTTP/1.1\r\n" + claim, "400"},
		{"media type", "POST /api/v1/_/door/items HTTP/1.1\r\nToken: writer\r\nContent-Type: text/plain\r\n" + claim, "415"},
		{"claims too much", "POST /api/v1/_/door/items HTTP/1.1\r\nToken: writer\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n", "413"},
		{"sends too much, chunked", "POST /api/v1/_/door/items HTTP/1.1\r\nToken: writer\r\nContent-Type: application/json\r\n" + chunked +
			"\r\n3e9\r\n" + strings.Repeat("x", 1001), "413"},
		{"malformed chunk", "POST /api/v1/_/door/items HTTP/1.1\r\nToken: writer\r\nContent-Type: application/json\r\n" + chunked + "\r\nzz\r\n", "400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil { // where nothing bounds the wait
				t.Fatal(err)
			}
			request := strings.Replace(tt.request, "\r\n", "\r\nHost: x\r\n", 1)
			if !strings.Contains(request, "\r\n\r\n") {
				request += "\r\n"
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got := strconv.Itoa(res.StatusCode); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Who sends the last request of a connection gets to send all of it, and to read its answer: a connection that is closed with something
// unread is reset (RFC 9112, section 9.6).
func TestBodyOfTheLastRequest(t *testing.T) {
	d := newDoor(t, nil)
	for _, claim := range []string{"Content-Length: 100000\r\n", "Transfer-Encoding: chunked\r\n"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "POST /api/v1/_/door/items HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+claim+"\r\n"); err != nil {
			t.Fatal(err)
		}
		from := bufio.NewReader(conn)
		if strings.HasPrefix(claim, "Content") { // the answer does not wait for the body
			if _, err := from.Peek(1); err != nil {
				t.Fatal(err)
			}
		} else if _, err := io.WriteString(conn, "186a0\r\n"); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := io.WriteString(conn, strings.Repeat("x", 10_000)); err != nil {
				t.Fatalf("%q: %v", claim, err)
			}
			runtime.Gosched()
		}
		if strings.HasPrefix(claim, "Transfer") {
			if _, err := io.WriteString(conn, "\r\n0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatalf("%q: %v", claim, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %d, %v", claim, res.StatusCode, err)
		}
		_ = res.Body.Close()
	}
}

// A connection serves on after answers that took no notice of a body which did come.
func TestBodiesThatNobodyWants(t *testing.T) {
	d := newDoor(t, nil)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 3 {
		if _, err := io.WriteString(conn, "POST /api/v1/_/door/items HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusForbidden {
			t.Fatal(res.StatusCode, err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// writeDeadlines notes that an answer has been given time.
type writeDeadlines struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (w *writeDeadlines) SetWriteDeadline(t time.Time) error {
	w.until = t
	return nil
}

func (*writeDeadlines) SetReadDeadline(time.Time) error { return nil }

// Every answer has time to go out, however long its request took to come: refusals too.
func TestAnswersHaveTime(t *testing.T) {
	d := newDoor(t, nil)
	for path, want := range map[string]int{
		"/healthz": 200, "/nope": 404, "/api/v1/user": 403, "/api/v1/_/door/items": 200, "/api/v1/version?x": 400,
	} {
		w := &writeDeadlines{ResponseRecorder: httptest.NewRecorder()}
		d.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != want || time.Until(w.until) < 50*time.Second {
			t.Errorf("%s: %d, until %v", path, w.Code, w.until)
		}
	}
}

// Lists of more than one page are read to their end, by the client and by svcctl.
func TestListsOfSystemModels(t *testing.T) {
	d := newDoor(t, nil)
	const n = 230
	// Lists are in the order of ids, which is that of creation but for a clock set back and the counter in an id that starts over.
	userIDs, projectIDs := map[string]string{}, map[string]string{}
	for i := range n {
		user, namespace := fmt.Sprintf("user-%03d", i), fmt.Sprintf("project-%03d", i)
		u, err := d.system.Users.Create(t.Context(), &access.Principal{Kind: access.KindAdmin}, bson.D{{Key: "username", Value: user}, {Key: "password", Value: "long enough 123"}})
		if err != nil {
			t.Fatal(err)
		}
		resolve := func(context.Context, string) (string, error) { return namespace, nil }
		p, err := d.system.Projects.Create(t.Context(), bson.D{{Key: "configFile", Value: namespace + ".yaml"}}, resolve)
		if err != nil {
			t.Fatal(err)
		}
		userIDs[u.ID.Hex()], projectIDs[p.ID.Hex()] = "user/"+user, "project/"+namespace
	}
	users, projects := byKey(userIDs), byKey(projectIDs)
	c, err := client.New(client.Options{Server: d.web.URL, AdminToken: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []client.Query{{}, {Limit: 1}, {Limit: 115}, {Limit: 230}, {Limit: 50, Count: true}} {
		i := 0
		for u, err := range c.Users().All(t.Context(), q) {
			if err != nil || i >= n || "user/"+u.Username != users[i] {
				t.Fatalf("%+v: %d is %s, %v", q, i, u.Username, err)
			}
			i++
		}
		if i != n {
			t.Errorf("%+v: %d users", q, i)
		}
	}
	for kind, want := range map[string][]string{"user": users, "project": projects} {
		var out, problems strings.Builder
		code := cli.Run(t.Context(), &command.State{
			In: strings.NewReader(""), Out: &out, Err: &problems, Home: t.TempDir(), Now: time.Now,
			Env: func(name string) (string, bool) { return d.web.URL, name == "SVCCTL_SERVER" },
		}, []string{kind, "list", "-o", "name", "--admin-token-file", tokenFile(t)})
		if code != 0 || strings.Join(strings.Fields(out.String()), " ") != strings.Join(want, " ") {
			t.Errorf("%s list: %d, %d lines, %s", kind, code, strings.Count(out.String(), "\n"), problems.String())
		}
	}
	admin := []string{"X-Admin-Token", adminToken}
	if _, got := d.do(t, "GET", "/api/v1/user?after=x", "", admin...); !strings.HasPrefix(got, "400 bad_cursor") {
		t.Error(got)
	}
	first, _ := d.do(t, "GET", "/api/v1/project?limit=2&offset=1", "", admin...)
	link := strings.TrimSuffix(strings.TrimPrefix(first.Get("Link"), "<"), `>; rel="next"`)
	if _, got := d.do(t, "GET", link, "", admin...); got != "200" || strings.Contains(link, "offset") {
		t.Errorf("%s: %s", link, got)
	}
}

// byKey returns the values of m in the order of its keys.
func byKey(m map[string]string) []string {
	var values []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[key])
	}
	return values
}

func tokenFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(adminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// What is wrong with an index may name records, which are not for everyone to know of.
func TestIndexMessages(t *testing.T) {
	d := newDoor(t, nil)
	for token, want := range map[string]bool{"": false, "writer": false, adminToken: true} {
		headers := []string{"Token", token}
		if token == adminToken {
			headers[0] = "X-Admin-Token"
		}
		body := d.get(t, "/api/v1/_/door/_/collections/items", headers...)
		if !strings.Contains(body, `"state":"failed"`) || strings.Contains(body, "such as") != want {
			t.Errorf("%q: %s", token, body)
		}
	}
}

// Retry-After is for what can be repeated: reads, and what says that it has done nothing.
func TestRetryAfter(t *testing.T) {
	down := errs.New(errs.Unavailable, "store_unavailable", "the database can't be reached; try again later")
	busy := down.With(errors.New("busy"))
	busy.RetryAfter = 1500 * time.Millisecond
	admin := []string{"X-Admin-Token", adminToken}
	for _, tt := range []struct {
		err    error
		method string
		path   string
		want   string
	}{
		{down, "POST", "/api/v1/_/door/_/admin/reload", ""},
		{down, "PUT", "/api/v1/project/650102030405060708090a0b", ""},
		{busy, "POST", "/api/v1/_/door/_/admin/reload", "2"},
		{busy, "PUT", "/api/v1/project/650102030405060708090a0b", "2"},
	} {
		d := newDoor(t, tt.err)
		h, got := d.do(t, tt.method, tt.path, "{}", admin...)
		if !strings.HasPrefix(got, "503") || h.Get("Retry-After") != tt.want {
			t.Errorf("%s %s: %s, Retry-After %q", tt.method, tt.path, got, h.Get("Retry-After"))
		}
	}
	for method, want := range map[string]string{"GET": "1", "HEAD": "1", "POST": "", "PUT": "", "PATCH": "", "DELETE": ""} {
		if got := httpapi.RetryAfter(t.Context(), method, down); got != want {
			t.Errorf("%s: %q", method, got)
		}
	}
}

// Where a key has no meaning it is refused, so that nobody relies on it.
func TestIdempotencyKeysThatAreRefused(t *testing.T) {
	d := newDoor(t, nil)
	const (
		refused = "400 unsupported: Idempotency-Key is not supported here, but on the POST that creates something, calls an action or runs a job: leave it out"
		bad     = "400 bad_idempotency_key: Idempotency-Key must be given once, and have 1 to 255 visible ASCII characters"
	)
	for _, tt := range []struct{ method, path, key, want string }{
		{"POST", "/api/v1/_/door/items", "", bad},
		{"POST", "/api/v1/_/door/items", "a b", bad},
		{"POST", "/api/v1/_/door/items", "ä", bad},
		{"POST", "/api/v1/_/door/items", strings.Repeat("k", 256), bad},
		{"POST", "/api/v1/_/door/items", strings.Repeat("k", 255), "201"},
		{"POST", "/api/v1/_/door/items", "!~", "201"},
		{"PUT", "/api/v1/_/door/items/650102030405060708090a0b", "k", refused},
		{"GET", "/api/v1/_/door/items", "k", "200"},
		{"POST", "/nope", "k", "404 no_such_route: not found"},
	} {
		if _, got := d.do(t, tt.method, tt.path, `{"title": "x"}`, "Token", "writer", "Idempotency-Key", tt.key); got != tt.want {
			t.Errorf("%s %s: %s", tt.method, tt.path, got)
		}
	}
	if _, got := d.do(t, "POST", "/api/v1/login", `{"username": "x", "password": "y"}`, "Idempotency-Key", "k"); got != refused {
		t.Error(got)
	}
}

// Nobody but its operators learns that a project is registered whose config was never valid.
func TestProjectsThatWereNeverServed(t *testing.T) {
	d := newDoor(t, nil)
	resolve := func(context.Context, string) (string, error) { return "broken", nil }
	if _, err := d.system.Projects.Create(t.Context(), bson.D{{Key: "configFile", Value: "broken.yaml"}}, resolve); err != nil {
		t.Fatal(err)
	}
	for _, who := range [][]string{
		nil, {"Token", "writer"}, {"X-Admin-Token", "wrong"}, {"X-Auth-Token", "x.y.z"}, {"Token", "a", "X-Admin-Token", "b"}, {"Authorization", "Basic x"},
	} {
		for _, path := range []string{"_/collections", "_/collections/items", "_/admin/reload", "items", "items/x", "_/nope"} {
			method := "GET"
			if path == "_/admin/reload" {
				method = "POST"
			}
			broken, got := d.do(t, method, "/api/v1/_/broken/"+path, "", who...)
			none, want := d.do(t, method, "/api/v1/_/none/"+path, "", who...)
			for _, h := range []http.Header{broken, none} {
				h.Del("X-Request-Id")
				h.Del("Date")
			}
			if got != want || got != "404 project_not_found: project not found" || fmt.Sprint(broken) != fmt.Sprint(none) {
				t.Errorf("%v %s\n%s %v\n%s %v", who, path, got, broken, want, none)
			}
		}
	}
	admin := []string{"X-Admin-Token", adminToken}
	if h, got := d.do(t, "POST", "/api/v1/_/broken/_/admin/reload", "", admin...); got != "202" || h.Get("Cache-Control") != "private, no-cache" {
		t.Error(got, h)
	}
	if _, got := d.do(t, "GET", "/api/v1/_/broken/_/collections", "", admin...); got != "200" {
		t.Error(got)
	}
}

// Who am I is a question of those who show something.
func TestMe(t *testing.T) {
	d := newDoor(t, nil)
	for _, tt := range []struct {
		show []string
		want string
	}{
		{nil, "403 permission_denied: permission denied"},
		{[]string{"X-Admin-Token", adminToken}, "200"},
		{[]string{"X-Admin-Token", "wrong"}, "403 permission_denied: permission denied"},
		{[]string{"Token", "writer"}, "403 permission_denied: permission denied"}, // only a project could judge it
	} {
		if _, got := d.do(t, "GET", "/api/v1/me", "", tt.show...); got != tt.want {
			t.Errorf("%v: %s", tt.show, got)
		}
	}
}

// Whoever sends a large body to its end, and only then reads, gets the refusal and not a reset connection.
func TestRefusalsOfLargeBodies(t *testing.T) {
	d := newDoor(t, nil)
	const size = 8 << 20 // beyond what the sockets hold
	for name, send := range map[string]struct{ headers, body string }{
		"known":   {"Content-Length: " + strconv.Itoa(size), strings.Repeat("x", size)},
		"chunked": {"Transfer-Encoding: chunked", strings.Repeat("10000\r\n"+strings.Repeat("x", 1<<16)+"\r\n", size>>16) + "0\r\n\r\n"},
	} {
		for want, headers := range map[string]string{
			"403": "Content-Type: application/json", "413": "Token: writer\r\nContent-Type: application/json",
		} {
			t.Run(name+" "+want, func(t *testing.T) {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.web.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				request := "POST /api/v1/_/door/items HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + send.headers + "\r\n\r\n" + send.body
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if got := strconv.Itoa(res.StatusCode); got != want || !res.Close {
					t.Errorf("%s, closes %v", got, res.Close)
				}
			})
		}
	}
}

// TestAgentsAreOneRequest: what a tool asks is part of the request of the agent, and not counted beside it as one that is being answered.
func TestAgentsAreOneRequest(t *testing.T) {
	var active []float64
	registerer := prometheus.NewRegistry()
	d := newDoorWith(t, nil, func(c *httpapi.Config) {
		c.Registerer, c.Gatherer = registerer, registerer
		c.Moment = func(ctx context.Context) context.Context {
			families, err := registerer.Gather()
			if err != nil {
				t.Error(err)
			}
			for _, f := range families {
				if f.GetName() == "svc_requests_active" {
					active = append(active, f.GetMetric()[0].GetGauge().GetValue())
				}
			}
			return ctx
		}
	})
	pat := d.agent(t)
	_, got := d.do(t, "POST", "/api/v1/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"documents_list","arguments":{"namespace":"door","collection":"items"}}}`, "X-Auth-Token", pat)
	if !slices.Equal(active, []float64{1}) { // the endpoint itself takes long, and has no moment
		t.Errorf("%v are being answered: %s", active, got)
	}
}

// agent makes a user who has a personal access token for all of the project.
func (d *door) agent(t testing.TB) (pat string) {
	t.Helper()
	scopes := []string{"namespace.door"}
	u, err := d.system.Users.Create(t.Context(), &access.Principal{Kind: access.KindAdmin}, bson.D{
		{Key: "username", Value: "ann"}, {Key: "password", Value: "password-of-ann"}, {Key: "scopes", Value: bson.A{scopes[0]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, pat, err = d.system.Tokens.Create(t.Context(), &access.Principal{Kind: access.KindUser, ID: u.ID.Hex(), Scopes: scopes},
		bson.D{{Key: "name", Value: "agent"}, {Key: "scopes", Value: bson.A{scopes[0]}}}, scopes)
	if err != nil {
		t.Fatal(err)
	}
	return pat
}
