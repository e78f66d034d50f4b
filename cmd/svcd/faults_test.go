package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// gate is asked by scripts, which tells the test where they are, and answers when the test says so.
type gate struct {
	*httptest.Server

	arrived chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{arrived: make(chan struct{}, 100), open: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.arrived <- struct{}{}
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// wait waits for a script.
func (g *gate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.arrived:
	case <-time.After(2 * patience):
		t.Fatal("no script has come")
	}
}

// startHeld starts a service with the collection notes, and one whose hook has this code. GATE in it asks the gate.
func startHeld(t *testing.T, g *gate, hook, code string, env ...string) *wildServer {
	t.Helper()
	s := newSvcd(t, env...)
	s.write("projects/wild/project.yaml", fmt.Sprintf(`
namespace: wild
hook: {%s, http: {allow: [%q]}}
collections:
  - {name: notes, fields: [{name: k, type: string, index: [unique]}], permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}
  - {name: held, hooks: {post: {create: {type: javascript, file: held.js}}}, permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}
`, hook, strings.TrimPrefix(g.URL, "http://")))
	code = strings.ReplaceAll(code, "GATE", fmt.Sprintf("await http.fetch('%s', {timeout: 9000})", g.URL))
	s.write("projects/wild/held.js", "module.exports = async (ctx) => {\n  if (ctx.doc.good) return\n  "+code+"\n}\n")
	srv := s.start("--log.level=error")
	if _, err := srv.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("wild")}); err != nil {
		t.Fatal(err)
	}
	w := &wildServer{server: srv, t: t}
	for _, arg := range srv.cmd.Args {
		if port, ok := strings.CutPrefix(arg, "--api.port="); ok {
			w.url = "http://127.0.0.1:" + port
		}
	}
	return w
}

// workers are the ids of the processes in which the service runs scripts.
func (w *wildServer) workers(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", w.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for pid := range strings.FieldsSeq(string(text)) {
			if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.HasSuffix(string(line), "\x00"+workerCommand+"\x00") {
				found = append(found, pid)
			}
		}
	}
	return found
}

// gone says whether a process has ended, be it that nobody has asked for its end yet.
func gone(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}

func (w *wildServer) items(t *testing.T, path string) string {
	t.Helper()
	status, text := w.call(t.Context(), http.MethodGet, "/api/v1/_/wild/"+path, "")
	if status != http.StatusOK {
		t.Errorf("%s: %d %s", path, status, text)
	}
	return text
}

// TestWorkerIsKilledInATransaction kills a worker process whose script has a transaction open: nothing of it is there, its
// caller is told, and the next run works.
func TestWorkerIsKilledInATransaction(t *testing.T) {
	onEachStore(t, func(t *testing.T, env ...string) {
		g := newGate(t)
		w := startHeld(t, g, "isolation: process, timeout: 1m", `await db.transaction(async (tx) => { await tx.collection('notes').insert({k: 'held'}); GATE })`, env...)
		var group sync.WaitGroup
		group.Go(func() {
			if status, text := w.bad(t.Context(), "held"); status != http.StatusInternalServerError || !strings.Contains(text, `"script_failed"`) {
				t.Errorf("the caller of a script whose process was killed: %d %s", status, text)
			}
		})
		g.wait(t)
		pids := w.workers(t)
		if len(pids) != 1 {
			t.Fatalf("workers: %v", pids)
		}
		kill(t, pids[0])
		group.Wait()
		close(g.open)
		if got := w.items(t, "notes") + w.items(t, "held"); strings.Count(got, `"items":[]`) != 2 {
			t.Errorf("something is left: %s", got)
		}
		if status, text := w.bad(t.Context(), "held"); status != http.StatusCreated {
			t.Errorf("the next run: %d %s", status, text)
		}
		if got := w.items(t, "notes"); !strings.Contains(got, `"held"`) {
			t.Errorf("the next run has written nothing: %s", got)
		}
	})
}

func kill(t *testing.T, pid string) {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestWorkersEndWithTheService kills the service while scripts compute in worker processes.
func TestWorkersEndWithTheService(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	close(g.open)
	w := startHeld(t, g, "isolation: process, timeout: 10m", `GATE; for (;;);`)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { w.bad(t.Context(), "held") }) // ends with the service
	}
	g.wait(t)
	g.wait(t)
	pids := w.workers(t)
	if len(pids) != 2 {
		t.Errorf("workers: %v", pids)
	}
	if _, _, err := w.stop(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	for _, pid := range pids {
		until(t, "the worker has ended", func() bool { return gone(pid) })
	}
}

// TestHeldTransaction has a hook keep a transaction open. Others write meanwhile, and who writes what the transaction has
// written waits until the hook's time is over at the longest.
func TestHeldTransaction(t *testing.T) {
	onEachStore(t, func(t *testing.T, env ...string) {
		g := newGate(t)
		w := startHeld(t, g, "timeout: 3s", `await db.transaction(async (tx) => {
			await tx.collection('notes').insert({k: 'held'})
			await tx.collection('notes').update({k: 'both'}, {$inc: {n: 10}})
			GATE
			await sleep(1e6)
		})`, env...)
		post := func(k string) (int, string) {
			return w.call(t.Context(), http.MethodPost, "/api/v1/_/wild/notes", fmt.Sprintf(`{"k": %q, "n": 1}`, k))
		}
		if status, text := post("both"); status != http.StatusCreated {
			t.Fatal(status, text)
		}
		var group sync.WaitGroup
		group.Go(func() {
			if status, text := w.bad(t.Context(), "held"); status != http.StatusGatewayTimeout || !strings.Contains(text, `"script_timeout"`) {
				t.Errorf("the one that holds: %d %s", status, text)
			}
		})
		g.wait(t)
		for i := range 20 {
			if status, text := post(fmt.Sprint("other ", i)); status != http.StatusCreated {
				t.Errorf("another record: %d %s", status, text)
			}
		}
		status, text := post("held") // the transaction has it, but it is not committed
		if status != http.StatusCreated && status != http.StatusConflict && status != http.StatusServiceUnavailable {
			t.Errorf("the same key: %d %s", status, text)
		}
		close(g.open)
		group.Wait()
		if got := w.items(t, "held"); !strings.Contains(got, `"items":[]`) {
			t.Errorf("the hook's record: %s", got)
		}
		got := w.items(t, "notes?limit=100")
		if strings.Count(got, `"other `) != 20 || strings.Contains(got, `"n":11`) || strings.Contains(got, `"held"`) != (status == http.StatusCreated) {
			t.Errorf("after %d: %s", status, got)
		}
	})
}

// TestS61AnswersInTime is about the clock, so it needs a machine of its own: SOAK=1 makes it run. Each caller of a runaway
// has the answer 250 ms after the script's time, and a script that rests is tried again when its time has come.
func TestS61AnswersInTime(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 to measure")
	}
	w := startWild(t)
	worst := time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(wild)) {
		if wild[name].status != http.StatusGatewayTimeout {
			continue
		}
		for range 3 {
			began := time.Now()
			w.bad(t.Context(), name)
			took := time.Since(began)
			if worst = max(worst, took); took > (300+250)*time.Millisecond {
				t.Errorf("%s: the answer came after %s", name, took)
			}
		}
	}
	t.Logf("the last answer came after %s", worst)
	for range 2 {
		w.bad(t.Context(), "loop")
	}
	good := func() int {
		status, _ := w.call(t.Context(), http.MethodPost, "/api/v1/_/wild/loop", `{"good": true}`)
		return status
	}
	if status := good(); status != http.StatusServiceUnavailable {
		t.Errorf("a script that has run away five times: %d", status)
	}
	until(t, "the script is tried again", func() bool { return good() == http.StatusCreated })
	if status := good(); status != http.StatusCreated {
		t.Errorf("after the trial: %d", status)
	}
}

// TestCachesAreApart fills the cache of one project: what another one has in its cache stays.
func TestCachesAreApart(t *testing.T) {
	t.Parallel()
	s := newSvcd(t)
	for name, code := range map[string]string{
		"small": `if (ctx.doc.set) await cache.set('k', 'mine'); ctx.doc.found = await cache.get('k')`,
		"large": `for (let i = 0; i < 20; i++) await cache.set('k' + i, 'x'.repeat(1 << 20)); ctx.doc.found = [await cache.get('k'), await cache.get('k0'), (await cache.get('k19')).length]`,
	} {
		s.write("projects/"+name+"/project.yaml", fmt.Sprintf(`
namespace: %s
collections:
  - {name: notes, hooks: {post: {create: {type: javascript, file: hook.js, timeout: 60000}}}, permissions: {public: {methods: {post: true}}, user: {methods: {}}}}
`, name))
		s.write("projects/"+name+"/hook.js", "module.exports = async (ctx) => { "+code+" }\n")
	}
	srv := s.start()
	for _, name := range []string{"small", "large"} {
		if _, err := srv.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new(name)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ project, record, want string }{
		{"small", `{"set": true}`, `"found":"mine"`},
		{"large", `{}`, `"found":[null,null,1048576]`},
		{"small", `{}`, `"found":"mine"`},
	} {
		got, err := srv.CreateRecord(t.Context(), c.project, "notes", api.Record(c.record))
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s %s: %s, %v", c.project, c.record, got, err)
		}
	}
}
