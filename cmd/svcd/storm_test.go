package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/randtest"
)

// stormConfig is a project of ten collections, whose answers tell twice which version of it made them.
func stormConfig(version int) string {
	var out strings.Builder
	out.WriteString("namespace: storm\ncollections:\n")
	for i := range 10 {
		fmt.Fprintf(&out, `  - {name: c%d, fields: [{name: first, type: string, meta: {defaultValue: "v%d"}}, {name: k, type: string, index: [sparse]}, {name: last, type: string, meta: {defaultValue: "v%d"}}], `+
			"permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}\n", i, version, version)
	}
	return out.String()
}

// TestR8ReloadStorm is row R8 of the fault list: the files of a project are well, half-written, invalid, away, or swapped with
// their folder, and are reloaded each time, while requests come. None fails, none is answered by two configs, the last good one is
// kept, and the status tells what is wrong. With SOAK set it is 1,000 reloads in a minute, and 500 requests a second.
func TestR8ReloadStorm(t *testing.T) {
	onEachStore(t, func(t *testing.T, env ...string) {
		reloads, every, requestEvery := 30, time.Duration(0), 10*time.Millisecond
		if os.Getenv("SOAK") != "" {
			reloads, every, requestEvery = 1000, 60*time.Millisecond, 2*time.Millisecond
		}
		s := newSvcd(t, env...)
		s.write("projects/storm/project.yaml", stormConfig(0))
		srv := s.start("--log.level=error")
		reg, err := srv.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("storm")})
		if err != nil {
			t.Fatal(err)
		}
		tr := &stormTraffic{t: t, url: srv.Server(), versions: map[string]string{}}
		stop := tr.start(requestEvery)
		good, began := 0, time.Now()
		for n := range reloads {
			if every > 0 {
				time.Sleep(time.Until(began.Add(time.Duration(n) * every)))
			}
			broken := tr.disturb(s, n+1)
			if !broken {
				good = n + 1
			}
			_, err := srv.Reload(t.Context(), "storm")
			if (err != nil) != broken {
				t.Fatalf("reload %d, broken: %v: %v", n, broken, err)
			}
			st, err := srv.ProjectStatus(t.Context(), reg.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range st.Conditions {
				if c.Type == "ConfigValid" && (c.Status == "True") == broken {
					t.Errorf("reload %d, broken: %v: the status says %+v", n, broken, c)
				}
			}
			if got := tr.post(n); got != fmt.Sprint("v", good) { // the last good one
				t.Errorf("reload %d is answered by %s, want v%d", n, got, good)
			}
			if t.Failed() {
				break
			}
		}
		stop()
		t.Logf("%d reloads in %s, %d requests, %d generations seen", reloads, time.Since(began).Round(time.Second), tr.sent.Load(), len(tr.versions))
		if tr.sent.Load() < int64(reloads) || len(tr.versions) < 3 {
			t.Error("this tested little")
		}
	})
}

// stormTraffic is requests to the project, and what their answers told.
type stormTraffic struct {
	t    *testing.T
	url  string
	sent atomic.Int64

	mu       sync.Mutex
	versions map[string]string // by generation
}

// disturb changes the project's files, and says whether they are broken now.
func (tr *stormTraffic) disturb(s svcd, version int) (broken bool) {
	tr.t.Helper()
	dir, next := filepath.Join(s.dir, "projects", "storm"), filepath.Join(s.dir, "projects", "next")
	text := stormConfig(version)
	must := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			tr.t.Fatal(err)
		}
	}
	switch randtest.Of(tr.t).IntN(6) {
	case 0: // half of it
		s.write("projects/storm/project.yaml", text[:strings.LastIndex(text, "defaultValue")+3])
		return true
	case 1:
		s.write("projects/storm/project.yaml", strings.ReplaceAll(text, "type: string", "type: strnig"))
		return true
	case 2:
		must(os.RemoveAll(dir))
		return true
	case 3: // the folder is swapped
		s.write("projects/next/project.yaml", text)
		must(os.RemoveAll(dir), os.Rename(next, dir))
	case 4: // an atomic save
		s.write("projects/storm/.project.yaml.tmp", text)
		must(os.Rename(filepath.Join(dir, ".project.yaml.tmp"), filepath.Join(dir, "project.yaml")))
	default:
		s.write("projects/storm/project.yaml", text)
	}
	return false
}

// start sends requests until it is stopped.
func (tr *stormTraffic) start(every time.Duration) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	const workers = 4
	for w := range workers {
		group.Go(func() {
			tick := time.NewTicker(every * workers)
			defer tick.Stop()
			for n := w; ; n++ {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				if n%2 == 0 {
					tr.post(n)
				} else {
					tr.call(http.MethodGet, fmt.Sprintf("c%d?limit=2", n%10), http.StatusOK)
				}
			}
		})
	}
	return func() {
		close(done)
		group.Wait()
	}
}

// post creates a record, and gives the version that it tells of.
func (tr *stormTraffic) post(n int) (version string) {
	header, body := tr.call(http.MethodPost, fmt.Sprintf("c%d", n%10), http.StatusCreated)
	var rec struct{ First, Last string }
	if err := json.Unmarshal([]byte(body), &rec); err != nil || header == nil {
		return ""
	}
	generation := header.Get(api.HeaderGeneration)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	known, ok := tr.versions[generation]
	tr.versions[generation] = rec.First
	if rec.First == "" || rec.First != rec.Last || ok && known != rec.First {
		tr.t.Errorf("generation %s, known as %q, answers with %s", generation, known, body)
	}
	return rec.First
}

func (tr *stormTraffic) call(method, path string, want int) (header http.Header, body string) {
	tr.sent.Add(1)
	req, err := http.NewRequestWithContext(tr.t.Context(), method, tr.url+"/api/v1/_/storm/"+path, strings.NewReader("{}"))
	if err != nil {
		tr.t.Error(err)
		return nil, ""
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tr.t.Error(err)
		return nil, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		tr.t.Errorf("%s %s: %d %s, %v", method, path, res.StatusCode, text, err)
		return nil, ""
	}
	return res.Header, string(text)
}
