package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

const writersConfig = `
namespace: media
collections:
  - name: pairs
    bulk: {mode: atomic}
    fields: [{name: pair, type: string}, {name: version, type: number}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: files
    fields: [{name: pair, type: string}, {name: version, type: number}, {name: hash, type: string}, {name: file, type: file}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`

// pairWriter changes two records of one pair at once, and then the record with its file, each time to the next version. So at each moment the two have
// one version, the third has that or the one before, and its file has the bytes whose hash it names.
type pairWriter struct {
	name, file string       // the pair, and the id of the third record
	tried      atomic.Int64 // the latest version that was sent
	written    atomic.Int64 // the latest that all three have
	refused    atomic.Int64 // requests that were told to come again
}

// newPairWriters makes the records.
func newPairWriters(s *service, prefix string, n int) (all []*pairWriter) {
	s.t.Helper()
	for i := range n {
		w := &pairWriter{name: fmt.Sprint(prefix, i)}
		for range 2 {
			s.do("POST", "/api/v1/_/media/pairs", admin, json1(map[string]any{"pair": w.name, "version": 0})).want(s.t, http.StatusCreated)
		}
		made := s.do("POST", "/api/v1/_/media/files", admin, w.form(0))
		made.want(s.t, http.StatusCreated)
		w.file = made.field("id")
		all = append(all, w)
	}
	return all
}

func (w *pairWriter) form(version int64) option {
	content := fmt.Sprint(w.name, " ", version, strings.Repeat(" and more", int(version%500)))
	return form(part{name: "data", content: fmt.Sprintf(`{"pair": %q, "version": %d, "hash": %q, "file": null}`, w.name, version, sha(content))}, part{name: "file", file: "f.txt", content: content})
}

func sha(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// run writes until stop is closed, or its records are gone.
func (w *pairWriter) run(s *service, stop <-chan struct{}) {
	pairs := "/api/v1/_/media/pairs?filter=" + url.QueryEscape(`{"pair": "`+w.name+`"}`)
	for version := w.written.Load() + 1; ; version++ {
		w.tried.Store(version)
		for _, write := range []func() answer{
			func() answer {
				return s.do("PUT", pairs, admin, json1(map[string]any{"pair": w.name, "version": version}))
			},
			func() answer { return s.do("PUT", "/api/v1/_/media/files/"+w.file, admin, w.form(version)) },
		} {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := write()
				if got.status == http.StatusServiceUnavailable && got.field("code") == "restoring" {
					w.refused.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				if got.status == http.StatusNotFound || strings.Contains(got.body, `"matched":0`) { // others are in their place
					return
				}
				if got.status != http.StatusOK {
					s.t.Errorf("%s: %d %s", w.name, got.status, got.body)
					return
				}
				break
			}
		}
		w.written.Store(version)
	}
}

// runPairWriters has all write. end has them end, and waits for that.
func runPairWriters(s *service, all []*pairWriter) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() { w.run(s, stop) })
	}
	return func() {
		close(stop)
		running.Wait()
	}
}

func versionsOf(all []*pairWriter, which func(*pairWriter) *atomic.Int64) map[string]int64 {
	out := map[string]int64{}
	for _, w := range all {
		out[w.name] = which(w).Load()
	}
	return out
}

func written(w *pairWriter) *atomic.Int64 { return &w.written }
func tried(w *pairWriter) *atomic.Int64   { return &w.tried }

// checkPairs holds what a service has against what writers keep: no version before least, which was written by the moment, none behind most, which
// was sent by then, and nothing of anybody else.
func checkPairs(s *service, when string, least, most map[string]int64) {
	s.t.Helper()
	type row struct {
		ID, Pair, Hash string
		Version        int64
		File           struct{ Src string }
	}
	var pairs, files api.List[row]
	unmarshal(s.t, s.do("GET", "/api/v1/_/media/pairs?limit=1000", admin).body, &pairs)
	unmarshal(s.t, s.do("GET", "/api/v1/_/media/files?limit=1000", admin).body, &files)
	versions := map[string][]int64{}
	for _, r := range pairs.Items {
		versions[r.Pair] = append(versions[r.Pair], r.Version)
	}
	if len(versions) != len(least) || len(files.Items) != len(least) {
		s.t.Errorf("%s: %d pairs and %d files of %d", when, len(versions), len(files.Items), len(least))
	}
	for _, r := range files.Items {
		both := versions[r.Pair]
		if len(both) != 2 || both[0] != both[1] {
			s.t.Errorf("%s: the records of the pair %s have the versions %v", when, r.Pair, both)
			continue
		}
		if v := both[0]; r.Version != v && r.Version != v-1 {
			s.t.Errorf("%s: the pair %s has version %d, and its file %d", when, r.Pair, v, r.Version)
		}
		if r.Version < least[r.Pair] || both[0] > most[r.Pair] {
			s.t.Errorf("%s: the pair %s has the versions %d and %d, and %d was written before, %d sent by then", when, r.Pair, both[0], r.Version, least[r.Pair], most[r.Pair])
		}
		if got := s.do("GET", r.File.Src, admin); got.status != http.StatusOK || sha(got.body) != r.Hash {
			s.t.Errorf("%s: the file of the pair %s is not what its record says: %d %.40q", when, r.Pair, got.status, got.body)
		}
	}
}

// S53: a backup that is made while writers write, and is restored onto another server with another store, while writers write there, has what these
// keep at each moment; so has the snapshot of what was there before. SOAK=1 does it more often, with more writers.
func TestBackupOfWriters(t *testing.T) {
	rounds, writers := 2, 4
	if os.Getenv("SOAK") != "" {
		rounds, writers = 25, 12
	}
	onStore := func(t *testing.T, name string) mediaService {
		t.Helper()
		s := mediaService{data: t.TempDir()}
		uri := ""
		if name == "mongodb" {
			uri = emptyMongo(t, "svc_media")
		}
		s.service = run(t, func(c *app.Config) { c.StoreURI, c.DataDir = uri, s.data })
		s.register("media", writersConfig)
		return s
	}
	for from, to := range map[string]string{"embedded": "mongodb", "mongodb": "embedded"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			here, there := onStore(t, from), onStore(t, to)
			mine, theirs := newPairWriters(here.service, "here", writers), newPairWriters(there.service, "there", writers)
			restore := func(what string, begin func() answer) api.SnapshotResult {
				t.Helper()
				begun := begin()
				begun.want(t, http.StatusAccepted)
				var ended api.Run
				unmarshal(t, there.ended(begun.header.Get("Location"), admin), &ended)
				if ended.Status != "succeeded" {
					t.Fatalf("%s: %+v", what, ended)
				}
				return resultOf(t, ended)
			}
			for round := range rounds {
				end := runPairWriters(here.service, mine)
				somewhat(t, mine)
				least := versionsOf(mine, written)
				backup := here.do("GET", backups+"/download", admin)
				most := versionsOf(mine, tried)
				backup.want(t, http.StatusOK)
				end()

				end = runPairWriters(there.service, theirs)
				somewhat(t, theirs)
				leastThere := versionsOf(theirs, written)
				done := restore("the backup", func() answer { return there.do("POST", backups+"/restore", admin, archived(backup.body)) })
				end()
				mostThere := versionsOf(theirs, tried)
				checkPairs(there.service, fmt.Sprint("restored, round ", round), least, most)
				restore("what was before", func() answer { return there.do("POST", snaps+"/"+done.Restored.Safety+"/restore", admin, text(``)) })
				checkPairs(there.service, fmt.Sprint("taken back, round ", round), leastThere, mostThere)
				for _, w := range theirs { // it may be of before its last write
					w.written.Store(mostThere[w.name])
				}
			}
			var refused int64
			for _, w := range theirs {
				refused += w.refused.Load()
			}
			t.Logf("%d writes were told to come again", refused)
		})
	}
}

// somewhat waits until each has written a few times.
func somewhat(t *testing.T, all []*pairWriter) {
	t.Helper()
	before := versionsOf(all, written)
	eventually(t, func() string {
		for _, w := range all {
			if n := w.written.Load(); n < before[w.name]+3 {
				return fmt.Sprint(w.name, " has come to ", n)
			}
		}
		return ""
	})
}
