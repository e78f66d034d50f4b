package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
)

const watchProject = `
namespace: blog
collections:
  - name: articles
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: title, type: string}, {name: section, type: string}]
`

// flaky is the way to a service, which breaks when it is told to and then lets some requests fail.
type flaky struct {
	proxy *httputil.ReverseProxy
	front *httptest.Server
	fail  atomic.Int64
}

func newFlaky(t *testing.T, service string) *flaky {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{proxy: httputil.NewSingleHostReverseProxy(target)}
	f.proxy.FlushInterval = -1
	f.proxy.ErrorLog = nil
	f.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.fail.Load() > 0 && f.fail.Add(-1) >= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		f.proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.front.Close)
	return f
}

// TestWatch follows changes as a program does, while the way to the service breaks.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "projects", "blog"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "projects", "blog", "project.yaml"), []byte(watchProject), 0o600); err != nil {
		t.Fatal(err)
	}
	service, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) string {
		t.Helper()
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		if code := p.run(t, args...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, p.err.String())
		}
		return strings.TrimPrefix(strings.TrimSpace(p.out.String()), "articles/")
	}
	do("project", "register", "blog")
	do("project", "status", "blog", "--wait", "--timeout", "60s")

	way := newFlaky(t, service)
	out, in := io.Pipe()
	watching := start(t, way.front.URL, "SVCCTL_ADMIN_TOKEN="+adminToken)
	watching.st.Out = in
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, watching.st, []string{"doc", "watch", "blog", "articles", "--filter", `{"section": "a"}`, "--select", "title", "-o", "json"})
		_ = in.Close() // a pipe's never fails
	}()
	lines := bufio.NewScanner(out)
	token := ""
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the watch ended: exit code %d: %s", <-code, watching.err.String())
		}
		var line struct {
			Event, Token string
			Item         struct{ Title string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		token = line.Token
		return strings.TrimSpace(line.Event + " " + line.Item.Title)
	}
	expect := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect("ready")
	id := do("doc", "create", "blog", "articles", "-d", `{"title": "One", "section": "a"}`, "-o", "name")
	expect("create One")
	behind := token
	do("doc", "create", "blog", "articles", "-d", `{"title": "Elsewhere", "section": "b"}`)

	way.fail.Store(1) // what is tried first after the break
	way.front.CloseClientConnections()
	do("doc", "update", "blog", "articles", id, "-d", `{"title": "Two"}`)
	expect("ready")
	expect("update Two")
	do("doc", "update", "blog", "articles", id, "-d", `{"section": "b"}`)
	expect("delete")
	interrupt()
	if lines.Scan() {
		t.Errorf("more is told: %s", lines.Text())
	}
	if got := <-code; got != command.ExitInterrupted {
		t.Errorf("exit code %d: %s", got, watching.err.String())
	}

	// It goes on behind a token, for people, until it has told enough.
	p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
	if code := p.run(t, "doc", "watch", "blog", "articles", "--after", behind, "--limit", "1"); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.err.String())
	}
	if got := p.out.String(); !strings.HasPrefix(got, "12:00:00  create  ") || !strings.HasSuffix(got, "  Elsewhere  b\n") {
		t.Errorf("got %q", got)
	}
	// One that is not known any more can't be gone on behind.
	p = start(t, serve(t, answer(http.StatusGone, `{"status":410,"code":"changes_lost","detail":"gone"}`)))
	if code := p.run(t, "doc", "watch", "blog", "articles", "--after", "x"); code != command.ExitConflict || !strings.Contains(p.err.String(), "without --after") {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
}

// TestProjectWatches follows the events and the status of a project, as objects a line, until it is interrupted.
func TestProjectWatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "projects", "blog", "project.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(watchProject)
	service, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	do := func(want int, args ...string) {
		t.Helper()
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		if code := p.run(t, args...); code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, p.err.String())
		}
	}
	do(0, "project", "register", "blog")
	do(0, "project", "status", "blog", "--wait", "--timeout", "60s")

	ctx, interrupt := context.WithCancel(t.Context())
	// watch gives a function that waits for a line with all of these words.
	watch := func(args ...string) (expect func(words ...string), end func()) {
		out, in := io.Pipe()
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		p.st.Out = in
		code := make(chan int, 1)
		go func() {
			code <- cli.Run(ctx, p.st, args)
			_ = in.Close() // a pipe's never fails
		}()
		lines := bufio.NewScanner(out)
		expect = func(words ...string) {
			t.Helper()
		line:
			for lines.Scan() {
				for _, word := range words {
					if !strings.Contains(lines.Text(), word) {
						continue line
					}
				}
				return
			}
			t.Fatalf("%v ended without %q: exit code %d: %s", args, words, <-code, p.err.String())
		}
		return expect, func() {
			t.Helper()
			for lines.Scan() { // what was on its way
			}
			if got := <-code; got != command.ExitInterrupted {
				t.Errorf("%v: exit code %d: %s", args, got, p.err.String())
			}
		}
	}
	events, endEvents := watch("project", "events", "blog", "--watch", "-o", "json")
	text, endText := watch("project", "events", "blog", "-w")
	status, endStatus := watch("project", "status", "blog", "-w", "-o", "json")
	events(`"reason":"Serving"`, "generation 1 is served")
	text("Serving", "generation 1 is served")
	status(`"phase":"Ready"`, `"observedGeneration":1`)

	write("namespace: blog\nnonsense: 1\n")
	do(1, "project", "reload", "blog")
	events(`"reason":"Invalid"`, "nonsense")
	text("Invalid", "nonsense")
	status(`"phase":"Degraded"`, `"observedGeneration":1`, "nonsense")

	write(strings.Replace(watchProject, "section", "part", 1))
	do(0, "project", "reload", "blog")
	events(`"reason":"Serving"`, "generation 2 is served")
	text("Serving", "generation 2 is served")
	status(`"phase":"Ready"`, `"observedGeneration":2`)
	interrupt()
	endEvents()
	endText()
	endStatus()
}
