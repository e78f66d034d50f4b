package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/tracing/tracetest"
)

// What must be in no span: contents, and whatever else callers write.
const canary = "canary-content-9Qx4"

const tracedConfig = `
namespace: traced
jobs: [{name: tidy, type: javascript, file: jobs/tidy.js}]
snapshots: [{name: daily, enabled: true}]
collections:
  - name: notes
    fields: [{name: title, type: string}, {name: seen, type: number}]
    hooks:
      post: {bind: {type: javascript, file: hooks/count.js}}
      get: {return: {type: javascript, file: hooks/thrown.js}}
    meta: {query: {fail: {type: string}}}
    permissions:
      public: {methods: {}}
      "token:` + collectionToken + `": {methods: {get: true, post: true, put: true, delete: true}}
      user: {methods: {get: true, post: true}}
`

// runTraced starts a service that is traced, with the project traced.
func runTraced(t *testing.T, change func(c *app.Config)) (*service, *tracetest.Collector) {
	t.Helper()
	c := tracetest.NewCollector(t)
	s := run(t, func(cfg *app.Config) {
		cfg.Tracing = app.Tracing{Endpoint: c.URL, Headers: "authorization=canary-header-3Kd8", SampleRatio: 1}
		if change != nil {
			change(cfg)
		}
	})
	for _, dir := range []string{"hooks", "jobs"} {
		if err := os.MkdirAll(filepath.Join(s.dir, "traced", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.file("traced", "hooks/count.js", "module.exports = async (ctx) => { ctx.data.seen = await db.collection('notes').count({title: {$ne: '"+canary+"'}}) }\n")
	s.file("traced", "hooks/thrown.js", "module.exports = (ctx) => { if (ctx.query.fail) throw ctx.error(ctx.query.fail === '503' ? 503 : 418, '"+canary+"') }\n")
	s.file("traced", "jobs/tidy.js", "module.exports = () => db.collection('notes').count()\n")
	s.register("traced", tracedConfig)
	return s, c
}

func withTrace(id string) option { return header("Traceparent", "00-"+id+"-b7ad6b7169203331-01") }

// one gives the trace with that id, once the request that it is of has ended.
func one(t *testing.T, c *tracetest.Collector, id string) string {
	t.Helper()
	all := c.Wait(t, func(all []tracetest.Span) bool {
		for _, s := range all {
			if s.Trace == id && s.Kind == "server" {
				return true
			}
		}
		return false
	})
	return tracetest.Tree(all, id, func(s tracetest.Span) string {
		line := s.Name
		for _, name := range []string{"http.response.status_code", "svc.namespace", "svc.collection", "svc.script.outcome", "svc.mcp.tool", "error.type"} {
			if v := s.Attributes[name]; v != "" {
				line += " " + v
			}
		}
		return line
	})
}

// A create with a hook that asks the store is one trace: the request, below it the hook and what the store does for either.
func TestTraces(t *testing.T) {
	t.Parallel()
	eachStore(t, "traced", testTraces)
}

// eachStore runs a test on a service with each store.
func eachStore(t *testing.T, database string, test func(t *testing.T, change func(c *app.Config))) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, nil) })
	t.Run("mongodb", func(t *testing.T) {
		uri := emptyMongo(t, database)
		test(t, func(c *app.Config) { c.StoreURI = uri })
	})
}

func testTraces(t *testing.T, change func(c *app.Config)) {
	s, c := runTraced(t, change)
	const id = "0af7651916cd43dd8448eb211c80319c"
	res := s.do("POST", "/api/v1/_/traced/notes", token(collectionToken), withTrace(id), text(`{"title": "`+canary+`"}`))
	res.want(t, http.StatusCreated)
	if res.header.Get("Traceparent") != "" {
		t.Error("the answer names a trace")
	}
	tree := one(t, c, id)
	if want := `POST /api/v1/_/{project}/{collection} 201 traced notes
  post.bind hooks/count.js traced notes ok
    count notes
  insert notes
`; tree != want {
		t.Errorf("the trace is\n%s\nand not\n%s", tree, want)
	}
	if !strings.Contains(s.logs.String(), "trace_id="+id) {
		t.Error("the log does not tell of the trace")
	}
	record := res.field("id")
	const thrown, away = "1af7651916cd43dd8448eb211c80319c", "2af7651916cd43dd8448eb211c80319c"
	s.do("GET", "/api/v1/_/traced/notes/"+record+"?fail="+canary, token(collectionToken), withTrace(thrown)).want(t, http.StatusTeapot)
	if tree := one(t, c, thrown); !strings.HasPrefix(tree, "GET /api/v1/_/{project}/{collection}/{id} 418 traced notes\n") || !strings.Contains(tree, "hooks/thrown.js traced notes thrown\n") {
		t.Error(tree)
	}
	const broken = "9af7651916cd43dd8448eb211c80319c"
	s.do("GET", "/api/v1/_/traced/notes/"+record+"?fail=503", token(collectionToken), withTrace(broken)).want(t, http.StatusServiceUnavailable)
	one(t, c, broken)
	for _, span := range c.Spans() {
		if bad := span.Trace == broken; span.Kind == "server" && span.Bad != bad {
			t.Errorf("%s is an error of the service: %v, want %v", span.Name, span.Bad, bad)
		}
	}
	s.do("GET", "/api/v1/nowhere/"+canary+"?"+canary, withTrace(away)).want(t, http.StatusNotFound)
	if tree := one(t, c, away); !strings.HasPrefix(tree, "request 404\n") {
		t.Error(tree)
	}
	for _, probe := range []string{"/healthz", "/readyz", "/metrics"} {
		const probed = "3af7651916cd43dd8448eb211c80319c"
		s.do("GET", probe, withTrace(probed))
		if tree := tracetest.Tree(c.Spans(), probed, func(s tracetest.Span) string { return s.Name }); tree != "" {
			t.Error(tree)
		}
	}
	c.Wait(t, func(all []tracetest.Span) bool {
		for _, s := range all {
			if s.Name == "reconcile project" && s.Attributes["svc.controller"] == "project" {
				return true
			}
		}
		return false
	})
	sent := s.do("GET", "/metrics", admin).body
	if !strings.Contains(sent, "svc_trace_spans_sent_total") || !strings.Contains(sent, `svc_trace_spans_dropped_total{reason="send"} 0`) {
		t.Error("there are no metrics of it")
	}
	noSecrets(t, c, record)
}

// noSecrets holds what a collector got against what must not be in it.
func noSecrets(t *testing.T, c *tracetest.Collector, more ...string) {
	t.Helper()
	raw := c.Raw()
	for _, secret := range append(more, canary, adminToken, collectionToken, password, "canary-", "svc_pat_") {
		if i := strings.Index(raw, secret); i >= 0 {
			t.Errorf("%s is in a span: %q", secret, raw[max(0, i-100):min(len(raw), i+100)])
		}
	}
}

// What a tool asks is below its span, and that below the request of the agent.
func TestTracesOfAgents(t *testing.T) {
	t.Parallel()
	s, c := runTraced(t, nil)
	_, session1 := s.user("agent", map[string]any{"isAdmin": true})
	made := s.do("POST", "/api/v1/token", session(session1), text(`{"name": "a", "scopes": ["namespace.traced"]}`))
	made.want(t, http.StatusCreated)
	const id = "4af7651916cd43dd8448eb211c80319c"
	s.do("POST", "/api/v1/mcp", session(made.field("token")), withTrace(id), text(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "documents_list",
		"arguments": {"namespace": "traced", "collection": "notes", "filter": {"title": "`+canary+`"}}}}`)).want(t, http.StatusOK)
	tree := one(t, c, id)
	if !strings.HasPrefix(tree, "POST /api/v1/mcp 200\n") || !strings.Contains(tree, "\n  tool documents_list documents_list\n    GET /api/v1/_/{project}/{collection} 200 traced notes\n") ||
		!strings.Contains(tree, "\n      find notes\n") {
		t.Error(tree)
	}
	noSecrets(t, c, made.field("token"), session1)
}

// What a script asks of another service carries the trace on, below the script; where nothing is traced, it tells nothing.
func TestTracesGoOn(t *testing.T) {
	t.Parallel()
	asked := make(chan http.Header, 2)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	t.Cleanup(other.Close)
	config := strings.Replace(tracedConfig, "namespace: traced", "namespace: traced\nhook: {http: {allow: [\""+strings.TrimPrefix(other.URL, "http://")+"\"]}}", 1)
	const call = "module.exports = async (ctx) => { await http.fetch('%s') }\n"
	const id = "8af7651916cd43dd8448eb211c80319c"
	s, c := runTraced(t, nil)
	off := run(t, nil)
	for _, dir := range []string{"hooks", "jobs"} {
		if err := os.CopyFS(filepath.Join(off.dir, "traced", dir), os.DirFS(filepath.Join(s.dir, "traced", dir))); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*service{s, off} {
		s.file("traced", "hooks/count.js", fmt.Sprintf(call, other.URL))
	}
	off.register("traced", config)
	s.configure("traced", config)
	s.do("POST", "/api/v1/_/traced/_/admin/reload?wait=true", admin).want(t, http.StatusOK)

	s.do("POST", "/api/v1/_/traced/notes", token(collectionToken), withTrace(id), text(`{"title": "x"}`)).want(t, http.StatusCreated)
	got := <-asked
	one(t, c, id)
	for _, span := range c.Spans() {
		if want := "00-" + id + "-" + span.ID + "-01"; span.Trace == id && span.Name == "post.bind hooks/count.js" && got.Get("Traceparent") != want {
			t.Errorf("it got %v, and not %s", got, want)
		}
	}
	if got.Get("Traceparent") == "" || got.Get("Tracestate") != "" || got.Get("Baggage") != "" {
		t.Errorf("it got %v", got)
	}
	off.do("POST", "/api/v1/_/traced/notes", token(collectionToken), withTrace(id), text(`{"title": "x"}`)).want(t, http.StatusCreated)
	if got := <-asked; got.Get("Traceparent") != "" {
		t.Errorf("without traces it got %v", got)
	}
}

// A run has a span with its kind and name, and the script of a job one below it.
func TestTracesOfRuns(t *testing.T) {
	t.Parallel()
	s, c := runTraced(t, nil)
	job := s.do("POST", "/api/v1/_/traced/_/jobs/tidy/run?wait=true", admin, withTrace("5af7651916cd43dd8448eb211c80319c"))
	job.want(t, http.StatusOK)
	taken := s.do("POST", "/api/v1/_/traced/_/admin/snapshots", admin, withTrace("6af7651916cd43dd8448eb211c80319c"), text(`{"profile": "daily"}`))
	taken.want(t, http.StatusAccepted)
	s.ended(taken.header.Get("Location"), admin)
	for trace, want := range map[string]string{
		"5af7651916cd43dd8448eb211c80319c": "\n  run job\n    job jobs/tidy.js traced ok\n",
		"6af7651916cd43dd8448eb211c80319c": "\n  run snapshot\n",
	} {
		c.Wait(t, func(all []tracetest.Span) bool {
			for _, s := range all {
				if s.Trace == trace && strings.HasPrefix(s.Name, "run ") && s.Attributes["svc.run.name"] != "" {
					return true
				}
			}
			return false
		})
		if tree := one(t, c, trace); !strings.Contains(tree, want) {
			t.Error(tree)
		}
	}
	noSecrets(t, c, job.field("id"))
}

// The spans of the last requests go out before the service has ended; a collector that hangs keeps it for no longer than it may.
func TestTracesAtTheEnd(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	t.Run("service", func(t *testing.T) {
		s := run(t, func(cfg *app.Config) { cfg.Tracing = app.Tracing{Endpoint: c.URL, SampleRatio: 1, Service: "cms"} })
		for range 50 {
			s.do("GET", "/api/v1/version").want(t, http.StatusOK)
		}
	})
	n := 0
	for _, s := range c.Spans() {
		if s.Name == "GET /api/v1/version" && s.Service == "cms" && s.Attributes["http.response.status_code"] == "200" {
			n++
		}
	}
	if n != 50 {
		t.Errorf("%d of 50 requests were told of", n)
	}

	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	c.Answer(func(http.ResponseWriter, *http.Request) bool {
		<-hang
		return false
	})
	began := time.Time{}
	t.Run("hangs", func(t *testing.T) {
		t.Cleanup(func() { began = time.Now() })
		s := run(t, func(cfg *app.Config) { cfg.Tracing = app.Tracing{Endpoint: c.URL, SampleRatio: 1} })
		s.do("GET", "/api/v1/version").want(t, http.StatusOK)
	})
	if took := time.Since(began); took > 40*time.Second { // it may take 5 s
		t.Errorf("the end took %v", took)
	}
}
