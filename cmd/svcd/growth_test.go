package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// growth is what a service has at one time: goroutines, file descriptors, and the bytes of its heap that are in use.
type growth struct{ goroutines, files, heap float64 }

// What may come to it between the first and the second half of the rounds. A leak of one for each request is more in the few
// rounds of a short run, one of each round in those of a long one.
const (
	moreGoroutines = 6
	moreFiles      = 6
	moreHeap       = 6 << 20
)

// TestR19Growth is row R19 of the fault list: a service that does the same again and again, reloads and callers who leave
// among it, has no more goroutines, files and heap than before. With SOAK set it takes a minute for each store.
func TestR19Growth(t *testing.T) {
	onEachStore(t, func(t *testing.T, env ...string) {
		w := startGrowth(t, env...)
		rounds, until := 6, time.Time{}
		if os.Getenv("SOAK") != "" {
			until = time.Now().Add(time.Minute)
		}
		var seen []growth
		for n := 0; n < rounds || time.Now().Before(until); n++ {
			w.round(n)
			if t.Failed() {
				return
			}
			if n >= 2 { // what is made once is there by then
				seen = append(seen, w.measure())
			}
		}
		first, last := least(seen[:len(seen)/2]), least(seen[len(seen)/2:])
		t.Logf("%d rounds: %.0f goroutines, then %.0f; %.0f files, then %.0f; heap %.1f MiB, then %.1f MiB", len(seen),
			first.goroutines, last.goroutines, first.files, last.files, first.heap/(1<<20), last.heap/(1<<20))
		if first.goroutines == 0 || first.files == 0 || first.heap == 0 {
			t.Fatal("the service tells no figures")
		}
		if last.goroutines > first.goroutines+moreGoroutines || last.files > first.files+moreFiles || last.heap > first.heap+moreHeap {
			t.Error("the service grows")
		}
	})
}

// least is the least of each figure: what is under way comes and goes, what leaks is in all of them.
func least(of []growth) growth {
	out := of[0]
	for _, g := range of[1:] {
		out.goroutines, out.files, out.heap = min(out.goroutines, g.goroutines), min(out.files, g.files), min(out.heap, g.heap)
	}
	return out
}

type growing struct {
	*wildServer
	s svcd
}

func (w growing) write(version int) {
	w.s.write("projects/grow/project.yaml", fmt.Sprintf(`
namespace: grow
collections:
  - name: notes
    fields: [{name: n, type: number, index: [sparse], meta: {defaultValue: %d}}]
    hooks: {post: {create: {type: javascript, file: hook.js}}}
    permissions: {public: {methods: {get: true, post: true, delete: true}}, user: {methods: {}}}
`, version))
	w.s.write("projects/grow/hook.js", fmt.Sprintf("module.exports = (ctx) => {\n  ctx.doc.version = %d\n}\n", version))
}

func startGrowth(t *testing.T, env ...string) growing {
	t.Helper()
	s := newSvcd(t, append(env, "GOGC=20")...) // what is garbage counts less
	w := growing{s: s, wildServer: &wildServer{t: t}}
	w.write(0)
	w.server = s.start("--log.level=error", "--projects.watch=off")
	w.url = w.Server()
	if _, err := w.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("grow")}); err != nil {
		t.Fatal(err)
	}
	return w
}

// round leaves things as they were.
func (w growing) round(n int) {
	const path = "/api/v1/_/grow/notes"
	for i := range 4 {
		w.write(n*4 + i)
		if _, err := w.Reload(w.t.Context(), "grow"); err != nil {
			w.t.Error(err)
			return
		}
		left, leave := context.WithCancel(w.t.Context())
		for range 4 {
			w.follow(left, path+"/_changes")
		}
		var ids []string
		for range 20 {
			status, text := w.call(w.t.Context(), http.MethodPost, path, "{}")
			var rec struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal([]byte(text), &rec); err != nil || status != http.StatusCreated {
				w.t.Errorf("create: %d %s", status, text)
			}
			ids = append(ids, rec.ID)
		}
		for _, id := range slices.Backward(ids) {
			for _, c := range []struct {
				method, path string
				want         int
			}{
				{http.MethodGet, path + "?limit=10&sort=n", http.StatusOK},
				{http.MethodGet, path + "?filter=" + "{", http.StatusBadRequest},
				{http.MethodDelete, path + "/" + id, http.StatusOK},
			} {
				if status, text := w.call(w.t.Context(), c.method, c.path, ""); status != c.want {
					w.t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
				}
			}
		}
		leave()
	}
}

// follow reads a feed until ctx ends.
func (w growing) follow(ctx context.Context, path string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Error(err)
		return
	}
	context.AfterFunc(ctx, func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		w.t.Errorf("%s: %d", path, res.StatusCode)
	}
}

// measure takes the least of some looks, while the last callers' requests end. The heap in use is what the garbage
// collector left the last time: it comes again when a fifth has been added.
func (w growing) measure() growth {
	var looks []growth
	for range 5 {
		looks = append(looks, growth{
			goroutines: w.metric("go_goroutines"), files: w.metric("process_open_fds"), heap: w.metric("go_memstats_next_gc_bytes") / 1.2,
		})
	}
	return least(looks)
}
