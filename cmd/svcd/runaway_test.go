package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// wild are hooks that run away, and what their caller is told. A hook runs away unless the record says {"good": true}.
var wild = map[string]struct {
	code   string
	status int
}{
	"loop":      {`for (;;);`, 504},
	"catch":     {`for (;;) try { for (;;); } catch {} finally { continue }`, 504},
	"storm":     {`return new Promise(() => { const f = () => Promise.resolve().then(f); f() })`, 504},
	"sleep":     {`return sleep(1e6)`, 504},
	"held":      {`await db.collection('clean').insert({n: -1}); await sleep(1e6)`, 504},
	"regexp":    {`return /^(?!x)(a|aa)+$/.test('a'.repeat(60) + 'b')`, 504},
	"evil":      {`throw {get stack() { for (;;); }}`, 504},
	"recursion": {`const f = () => f() + 1; return f()`, 500},
	"repeat":    {`return 'x'.repeat(1e9)`, 500},
	"array":     {`return new Array(1e9)`, 500},
	"json":      {`let a = {}; for (let i = 0; i < 200000; i++) a = {a}; return JSON.stringify(a)`, 500},
	"bigint":    {`let n = 3n; for (;;) n = n * n`, 500},
	"circle":    {`Object.setPrototypeOf(ctx, ctx.doc); Object.setPrototypeOf(ctx.doc, ctx); return ctx.nothing`, 500},
	"memory":    {`const s = 'x'.repeat(1e6), a = []; for (let i = 0; ; i++) a.push(s + i + s)`, 500},
	"chain":     {`await db.collection('chain').insert({n: -1})`, 500},
}

// wildProject has a collection for each of them, and two that are clean: one of them with a hook.
func wildProject(s svcd) {
	var config strings.Builder
	config.WriteString(`
namespace: wild
collections:
  - {name: clean, permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}
  - name: hooked
    hooks: {post: {create: {type: javascript, file: two.js, timeout: 30000}}}
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
`)
	s.write("projects/wild/two.js", "module.exports = (ctx) => {\n  ctx.doc.slug = 'n-' + ctx.doc.n\n}\n")
	for _, name := range slices.Sorted(maps.Keys(wild)) {
		timeout := 300
		if wild[name].status == http.StatusInternalServerError {
			timeout = 30_000 // it ends before, but the machine of a test may be slow
		}
		fmt.Fprintf(&config, "  - {name: %s, hooks: {post: {create: {type: javascript, file: %s.js, timeout: %d}}}, permissions: {public: {methods: {post: true, get: true}}, user: {methods: {}}}}\n", name, name, timeout)
		s.write("projects/wild/"+name+".js", "module.exports = async (ctx) => {\n  if (ctx.doc.good) return\n  "+wild[name].code+"\n}\n")
	}
	s.write("projects/wild/project.yaml", config.String())
}

// wildServer is a service that has that project, and callers of it.
type wildServer struct {
	*server
	t   *testing.T
	url string
}

func startWild(t *testing.T, env ...string) *wildServer {
	t.Helper()
	s := newSvcd(t, append(env, "GOMEMLIMIT=512MiB")...)
	wildProject(s)
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

// call sends one request and gives its status and body.
func (w *wildServer) call(ctx context.Context, method, path, body string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewBufferString(body))
	if err != nil {
		w.t.Error(err)
		return 0, ""
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// bad calls a runaway.
func (w *wildServer) bad(ctx context.Context, name string) (int, string) {
	return w.call(ctx, http.MethodPost, "/api/v1/_/wild/"+name, `{"n": 1}`)
}

// clean calls the i-th of the routes that have nothing to do with the others, and says what is wrong.
func (w *wildServer) clean(ctx context.Context, i int) string {
	method, path, body, want := http.MethodGet, "/api/v1/_/wild/clean?limit=5", "", http.StatusOK
	switch i % 4 {
	case 1:
		path = "/api/v1/_/wild/hooked?limit=5"
	case 2:
		method, path, body, want = http.MethodPost, "/api/v1/_/wild/clean", `{"n": 1}`, http.StatusCreated
	case 3:
		method, path, body, want = http.MethodPost, "/api/v1/_/wild/hooked", `{"n": 1}`, http.StatusCreated
	}
	if status, text := w.call(ctx, method, path, body); status != want {
		return fmt.Sprintf("%s %s: %d %.200s", method, path, status, text)
	}
	return ""
}

// metric reads the sum of a metric's values.
func (w *wildServer) metric(name string) float64 {
	_, text := w.call(w.t.Context(), http.MethodGet, "/metrics?admin_token="+adminToken, "")
	sum := 0.0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, name) && !strings.HasPrefix(line, "#") {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				w.t.Error(err)
			}
			sum += v
		}
	}
	return sum
}

// memoryLimit is what a service with GOMEMLIMIT=512MiB may have in memory while scripts run away: they may take 64 MiB
// each before they are stopped, and a text doubles before anybody looks.
const memoryLimit = 1 << 30

func (w *wildServer) checkMemory() {
	w.t.Helper()
	if peak := w.peakMemory(); peak > memoryLimit {
		w.t.Errorf("the service had %d MiB in memory", peak>>20)
	}
}

// peakMemory is the most that the process has had in memory; 0 where that can't be known.
func (w *wildServer) peakMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// onStores runs a test on a service with each store.
func onStores(t *testing.T, test func(t *testing.T, w *wildServer)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, env ...string) { test(t, startWild(t, env...)) })
}

// onEachStore runs a test with the environment of a service for each store.
func onEachStore(t *testing.T, test func(t *testing.T, env ...string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t) })
	t.Run("mongo", func(t *testing.T) {
		server := startMongoDB(t)
		test(t, "STORE_URI="+server.URI)
	})
}

// TestS61Runaways calls hooks that run away, one kind after the other and then all at once: each caller is told what
// happened, nobody else notices, nothing of theirs is written, and the service goes on.
func TestS61Runaways(t *testing.T) {
	onStores(t, func(t *testing.T, w *wildServer) {
		before := w.metric("go_goroutines")
		for name, kind := range wild {
			status, text := w.bad(t.Context(), name)
			if want := map[int]string{504: `"script_timeout"`, 500: `"script_failed"`}[kind.status]; status != kind.status || !strings.Contains(text, want) {
				t.Errorf("%s: %d %.200s", name, status, text)
			}
		}
		w.overrun(t, strings.HasSuffix(t.Name(), "/mongo"))
		for name := range wild {
			if status, text := w.call(t.Context(), http.MethodGet, "/api/v1/_/wild/"+name, ""); status != http.StatusOK || !strings.Contains(text, `"items":[]`) {
				t.Errorf("%s has left something: %d %.200s", name, status, text)
			}
		}
		if _, text := w.call(t.Context(), http.MethodGet, "/api/v1/_/wild/clean?filter="+`{"n":-1}`, ""); !strings.Contains(text, `"items":[]`) {
			t.Errorf("a hook that was stopped has written: %.200s", text)
		}
		w.checkMemory()
		http.DefaultClient.CloseIdleConnections()
		for giveUp := time.Now().Add(patience); w.metric("go_goroutines") > before+40; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(giveUp) {
				t.Fatalf("%v goroutines, %v before", w.metric("go_goroutines"), before)
			}
		}
		t.Logf("at most %d MiB in memory, %v runs left behind", w.peakMemory()>>20, w.metric("svc_scripts_abandoned_total"))
		if code, log, err := w.stop(syscall.SIGTERM); code != 0 || err != nil {
			t.Errorf("code %d, %v, %s", code, err, log)
		}
	})
}

// overrun calls all of them at once while others work. On MongoDB these are the ones that write before, and one that keeps a processor
// busy meanwhile: what the others do is done before a store has any part in it.
func (w *wildServer) overrun(t *testing.T, mongo bool) {
	t.Helper()
	var group sync.WaitGroup
	var busy atomic.Int32
	names := slices.Sorted(maps.Keys(wild))
	if mongo {
		names = slices.DeleteFunc(names, func(name string) bool { return name != "loop" && !strings.Contains(wild[name].code, "db.") })
	}
	for c := range 8 {
		busy.Add(1)
		group.Go(func() {
			defer busy.Add(-1)
			for i := range 8 {
				name := names[(c*7+i)%len(names)]
				switch status, text := w.bad(t.Context(), name); status {
				case 500, 503, 504:
				default:
					t.Errorf("%s: %d %.200s", name, status, text)
				}
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for i := 0; busy.Load() > 0 || i < 40; i++ {
				if wrong := w.clean(t.Context(), i); wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
	group.Wait()
}

// TestR12RunawaysTogether calls one kind from many at once, before anything is known of it: what each takes alone is within
// its limit, and what they take together must not be the end of the service.
func TestR12RunawaysTogether(t *testing.T) {
	w := startWild(t)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 6 {
				if status, text := w.bad(t.Context(), "memory"); status != 500 && status != 503 {
					t.Errorf("%d %.200s", status, text)
				}
			}
		})
	}
	group.Wait()
	w.checkMemory()
	t.Logf("at most %d MiB in memory", w.peakMemory()>>20)
}

// TestR12PoisonedHooks has one call in ten run away. With SOAK set it is 300 calls a second for a minute.
func TestR12PoisonedHooks(t *testing.T) {
	calls, every := 600, time.Duration(0)
	if os.Getenv("SOAK") != "" {
		calls, every = 60*300, time.Second/300
	}
	onStores(t, func(t *testing.T, w *wildServer) {
		names := slices.Sorted(maps.Keys(wild))
		var group sync.WaitGroup
		var failed, suspended atomic.Int32
		places := make(chan struct{}, 64)
		start := time.Now()
		for i := range calls {
			time.Sleep(time.Until(start.Add(time.Duration(i) * every)))
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				if i%10 != 9 {
					if wrong := w.clean(t.Context(), i); wrong != "" {
						t.Error(wrong)
					}
					return
				}
				switch status, text := w.bad(t.Context(), names[i/10%len(names)]); {
				case status == 503 && strings.Contains(text, `"script_suspended"`):
					suspended.Add(1)
				case status == 500 || status == 503 || status == 504:
					failed.Add(1)
				default:
					t.Errorf("%s: %d %.200s", names[i/10%len(names)], status, text)
				}
			})
		}
		group.Wait()
		w.checkMemory()
		t.Logf("%d calls in %s: %d ran away, %d were refused; at most %d MiB in memory", calls, time.Since(start).Round(time.Millisecond), failed.Load(), suspended.Load(), w.peakMemory()>>20)
	})
}

// TestS61Latency measures what clean routes feel while every kind of runaway is called without pause. Turns are short and
// come in pairs, and the median of their ratios counts: the machine does other things meanwhile. SOAK=1 makes it run.
func TestS61Latency(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 to measure")
	}
	const turn, pairs = 5 * time.Second, 7
	w := startWild(t)
	w.p99(t, turn/2) // warm
	var ratios []float64
	for range pairs {
		alone := w.p99(t, turn)
		stop := w.runAway(t)
		beside := w.p99(t, turn)
		ran, refused := stop()
		ratios = append(ratios, float64(beside)/float64(alone))
		t.Logf("p99 alone %s, beside runaways %s: %.1f times (%d ran, %d refused), %d MiB", alone, beside, ratios[len(ratios)-1], ran, refused, w.peakMemory()>>20)
	}
	slices.Sort(ratios)
	t.Logf("the median is %.1f times", ratios[pairs/2])
	if ratios[pairs/2] > 3 {
		t.Errorf("p99 is %.1f times as long beside runaways", ratios[pairs/2])
	}
	w.checkMemory()
}

// runAway calls every kind from 8 clients without pause, until it is stopped.
func (w *wildServer) runAway(t *testing.T) (stop func() (ran, refused int32)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	names := slices.Sorted(maps.Keys(wild))
	var ran, refused atomic.Int32
	for c := range 8 {
		group.Go(func() {
			for i := c; ctx.Err() == nil; i++ {
				name := names[i%len(names)]
				for range 3 {
					if status, _ := w.bad(ctx, name); status == 503 {
						refused.Add(1)
					} else {
						ran.Add(1)
					}
				}
				w.call(ctx, http.MethodPost, "/api/v1/_/wild/"+name, `{"good": true}`) // or the breaker would spare us the rest
			}
		})
	}
	return func() (int32, int32) {
		cancel()
		group.Wait()
		return ran.Load(), refused.Load()
	}
}

// p99 calls clean routes, 300 a second from two clients.
func (w *wildServer) p99(t *testing.T, long time.Duration) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	end := time.Now().Add(long)
	for range 2 {
		group.Go(func() {
			next := time.Now()
			for i := 0; next.Before(end); i++ {
				time.Sleep(time.Until(next))
				began := time.Now()
				if wrong := w.clean(t.Context(), i); wrong != "" {
					t.Error(wrong)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				next = next.Add(time.Second / 150)
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}
