package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/store/mongotest"
)

// link is the way to a service, which can be cut at one of the requests that create records.
type link struct {
	proxy *httputil.ReverseProxy
	url   string

	mu    sync.Mutex
	count int
	cutAt int              // 0: never
	cut   func(after bool) // is called in place of the answer
	after bool             // the service gets the request all the same
}

func newLink(t *testing.T, service string) *link {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{proxy: httputil.NewSingleHostReverseProxy(target)}
	l.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	front := httptest.NewServer(l)
	t.Cleanup(front.Close)
	l.url = front.URL
	return l
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	here := false
	if r.Method == http.MethodPost {
		l.count++
		here = l.count == l.cutAt
	}
	l.mu.Unlock()
	if !here {
		l.proxy.ServeHTTP(w, r)
		return
	}
	if l.after {
		l.proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	l.cut(l.after)
	panic(http.ErrAbortHandler)
}

// cutting has the n-th create from now on cut.
func (l *link) cutting(n int, after bool, cut func(after bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.cutAt, l.after, l.cut = 0, n, after, cut
}

const importProject = `
namespace: shop
collections:
  - name: items
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: n, type: number}, {name: slug, type: string, index: [unique]}]
  - name: free
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: n, type: number}]
`

// An import whose process is killed, again and again, before or after the service has done what it was asked, ends with each
// record once, in the order of the file.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		testImportIsKilled(t, "")
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		mongotest.URI(t)                            // says loudly when there is none
		server, err := mongotest.Start(t.Context()) // of its own, as in TestScripts
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		testImportIsKilled(t, server.URI)
	})
}

func testImportIsKilled(t *testing.T, storeURI string) {
	t.Helper()
	records := 3000
	if os.Getenv("SOAK") != "" {
		records = 20_000
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "projects", "shop", "project.yaml"), importProject)
	var lines strings.Builder
	for i := range records {
		fmt.Fprintf(&lines, "{\"n\":%d}\n", i)
	}
	file := filepath.Join(dir, "free.ndjson")
	writeFile(t, file, lines.String())
	service, err := serveProjects(dir, storeURI, func(stop func()) { t.Cleanup(stop) }, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(t, service)
	run := func(ctx context.Context, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "svcctl", args...)
		cmd.Env = append(os.Environ(), "SVCCTL_SERVER="+l.url, "SVCCTL_ADMIN_TOKEN="+adminToken, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(t.Context(), "project", "register", "shop"); err != nil {
		t.Fatal(out, err)
	}
	for i, cut := range []struct {
		at    int
		after bool
	}{{1, true}, {7, true}, {2, false}, {1, true}, {12, false}} {
		ctx, kill := context.WithCancel(t.Context())
		l.cutting(cut.at, cut.after, func(bool) { kill() }) // CommandContext kills
		out, err := run(ctx, "doc", "import", "shop", "free", "-f", file, "--batch", strconv.Itoa(records/100))
		kill()
		if err == nil {
			t.Fatalf("import %d was not killed: %s", i, out)
		}
	}
	l.cutting(0, false, nil)
	out, err := run(t.Context(), "doc", "import", "shop", "free", "-f", file, "--batch", strconv.Itoa(records/100))
	if err != nil || !strings.Contains(out, fmt.Sprintf("shop/free    %-10d0", records)) || !strings.Contains(out, "going on behind record ") {
		t.Fatal(out, err)
	}
	if _, err := os.Stat(file + ".import"); !os.IsNotExist(err) {
		t.Error("the state file is still there", err)
	}
	if out, err := run(t.Context(), "doc", "export", "shop", "free", "--bare", "-f", file+".out.ndjson"); err != nil {
		t.Fatal(out, err)
	}
	got, err := os.ReadFile(file + ".out.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sortedLines(string(got)), sortedLines(lines.String()); !slices.Equal(got, want) {
		t.Errorf("%d records were exported, want the %d imported, each once", len(got), len(want))
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sortedLines are the lines of text in order: ids of requests of one second don't have that of the file.
func sortedLines(text string) []string {
	return slices.Sorted(strings.SplitSeq(text, "\n"))
}
