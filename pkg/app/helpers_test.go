package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// The secrets that the tests work with. None of them may ever be found in a log, an error or a metric.
const (
	adminToken      = "canary-admin-token-5Yw8"
	collectionToken = "canary-collection-token-k2Pq"
	readToken       = "canary-read-token-Zz91"
	projectToken    = "canary-project-admin-token-77aB"
	password        = "canary-password-Ff3x-Qe9"
)

// cheap are the costs of password hashes in tests, which make thousands. TestPasswordCost has those that users get.
var cheap = auth.Params{Memory: 64, Time: 1, Threads: 1}

// shopFiles is the project that most tests use.
const shopConfig = `
namespace: shop
admin: {tokens: [{name: deploy, value: ` + projectToken + `}]}
collections:
  - name: items
    strictFields: true
    fields:
      - {name: title, type: string, validator: {required: true, max: 20}}
      - {name: slug, type: string, index: [unique, sparse]}
      - {name: n, type: number}
      - {name: at, type: date}
      - {name: secret, type: string, hidden: true}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}]}
    projections: {card: {select: {title: 1}}}
    meta: {query: {preview: {type: boolean}}}
    upload: {maxBodySize: 65536}
    bulk: {maxItems: 3}
    permissions:
      public: {methods: {get: true}, filter: {n: {$gte: 0}}}
      user: {methods: {get: true}}
      "token:` + collectionToken + `": {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
      "token:` + readToken + `": {methods: {get: true}}
  - name: items2
    fields: [{name: items, type: "object[]"}]
    permissions: {public: {methods: {post: {bulk: true}, get: true}}, user: {methods: {}}}
  - name: inbox
    permissions: {public: {methods: {post: true, put: true, delete: true}}, user: {methods: {}}}
`

// service is a running service, whole but for the process around it.
type service struct {
	t    *testing.T
	url  string
	dir  string // of the projects
	logs *lockedBuffer
	app  *app.App
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// run starts a service on an empty store; change may set what a test needs otherwise.
func run(t *testing.T, change func(c *app.Config)) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), logs: &lockedBuffer{}}
	cfg := app.Config{
		MCP:  app.MCP{Enabled: true},
		Host: "127.0.0.1", MaxBodySize: 1 << 20, AdminToken: adminToken,
		DataDir: t.TempDir(), ProjectsDir: s.dir, Watch: controllers.WatchOff, ShutdownGrace: 10 * time.Second,
		Version: "v0-test", Logger: slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: time.Now, Env: func(string) (string, bool) { return "", false }, OnFatal: func(err error) { t.Error(err) },
		PasswordCost: cheap,
	}
	if change != nil {
		change(&cfg)
	}
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.app = "http://"+a.Addr(), a
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// emptyMongo is a MongoDB that has nothing of the system models and of some databases, before the test and after it.
func emptyMongo(t *testing.T, databases ...string) string {
	t.Helper()
	uri := mongotest.URI(t)
	st, err := mongo.Open(t.Context(), mongo.Options{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	drop := func() {
		for _, name := range append(databases, "svc") {
			if err := st.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		}
	}
	drop()
	t.Cleanup(func() {
		drop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return uri
}

// runShop starts a service with the project shop.
func runShop(t *testing.T, change func(c *app.Config)) *service {
	t.Helper()
	s := run(t, change)
	s.register("shop", shopConfig)
	return s
}

// register puts a config file in the projects directory and registers it. It gives the registration's id.
func (s *service) register(name, config string) string {
	s.t.Helper()
	s.configure(name, config)
	res := s.do("POST", "/api/v1/project", admin, json1(map[string]any{"name": name, "configFile": name + "/project.yaml", "enabled": true}))
	res.want(s.t, http.StatusCreated)
	return res.field("id")
}

func (s *service) configure(name, config string) {
	s.t.Helper()
	s.file(name, "project.yaml", config)
}

// file writes a file of a project.
func (s *service) file(project, name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, project, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// user makes a user and logs in. It gives the id and a session token.
func (s *service) user(name string, more map[string]any) (id, token string) {
	s.t.Helper()
	body := map[string]any{"username": name, "password": password}
	maps.Copy(body, more)
	res := s.do("POST", "/api/v1/user", admin, json1(body))
	res.want(s.t, http.StatusCreated)
	return res.field("id"), s.login(name)
}

func (s *service) login(name string) string {
	s.t.Helper()
	res := s.do("POST", "/api/v1/login", json1(map[string]any{"username": name, "password": password}))
	res.want(s.t, http.StatusOK)
	return res.field("token")
}

// item creates a record in shop's items and gives its id.
func (s *service) item(body string) string {
	s.t.Helper()
	res := s.do("POST", "/api/v1/_/shop/items", admin, text(body))
	res.want(s.t, http.StatusCreated)
	return res.field("id")
}

// projectID gives the id of the first registration.
func (s *service) projectID() string {
	s.t.Helper()
	_, rest, _ := strings.Cut(s.do("GET", "/api/v1/project", admin).body, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if id == "" {
		s.t.Fatal("no project is registered")
	}
	return id
}

// contents is everything that the store holds of shop and of the system models.
func (s *service) contents() string {
	s.t.Helper()
	var out strings.Builder
	for _, path := range []string{"_/shop/items", "_/shop/items2", "_/shop/inbox", "user", "project"} {
		if res := s.do("GET", "/api/v1/"+path+"?limit=1000", admin); res.status == http.StatusOK {
			out.WriteString(res.body)
		}
	}
	return out.String()
}

// option changes a request.
type option func(r *http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func text(body string) option {
	return func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
	}
}

func json1(v any) option {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text(string(data))
}

func host(name string) option { return func(r *http.Request) { r.Host = name } }

func admin(r *http.Request) { r.Header.Set("X-Admin-Token", adminToken) }

func session(token string) option { return header("X-Auth-Token", token) }

func token(value string) option { return header("Token", value) }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. path is escaped as it should go out.
func (s *service) do(method, path string, options ...option) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range options {
		o(req)
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	var from io.Reader = res.Body
	if strings.HasSuffix(req.URL.Path, "/_changes") && res.StatusCode == http.StatusOK { // which does not end
		from = io.LimitReader(res.Body, 1)
	}
	body, err := io.ReadAll(from)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// String is the status and, of a problem, its code and detail.
func (a answer) String() string {
	if a.header.Get("Content-Type") != "application/problem+json" {
		return strconv.Itoa(a.status)
	}
	return fmt.Sprintf("%d %s: %s", a.status, a.field("code"), a.field("detail"))
}

func (a answer) field(name string) string {
	var m map[string]any
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		return err.Error()
	}
	v, _ := m[name].(string)
	return v
}

func (a answer) want(t *testing.T, status int) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
}

// write puts a file into the projects directory.
func (s *service) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
