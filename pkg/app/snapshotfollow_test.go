package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/store"
)

const followConfig = `
namespace: media
snapshots:
  - {name: daily, retention: {keepLast: 1}}
collections:
  - name: open
    fields: [{name: n, type: number}, {name: file, type: file}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - {name: other, fields: [{name: n, type: number}], permissions: {public: {methods: {get: true}}, user: {methods: {}}}}
`

// holding stops whoever does something with a file of a snapshot, once, until it is let go.
type holding struct {
	mu        sync.Mutex
	op, match string // what is held: at the nth such
	nth       int
	held      chan struct{} // closed when it is
	free      chan struct{} // closed to let go
	seen      int           // such operations
}

func (h *holding) arm(op, match string, nth int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.op, h.match, h.nth, h.seen, h.held, h.free = op, match, nth, 0, make(chan struct{}), make(chan struct{})
}

// await waits until somebody is held.
func (h *holding) await(t *testing.T) {
	t.Helper()
	select {
	case <-h.held:
	case <-time.After(patience):
		t.Fatalf("nobody comes to %s %s", h.op, h.match)
	}
}

func (h *holding) letGo() { close(h.free) }

// after is how many such operations there were behind the one that was held.
func (h *holding) after() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.seen-h.nth)
}

func (h *holding) fault(op, name string) error {
	h.mu.Lock()
	if ok, _ := path.Match(h.match, name); !ok || op != h.op {
		h.mu.Unlock()
		return nil
	}
	h.seen++
	seen, held, free := h.seen, h.held, h.free
	h.mu.Unlock()
	switch {
	case seen == h.nth:
		close(held)
		<-free
	case seen > h.nth:
		time.Sleep(5 * time.Millisecond) // so that a run which is cancelled would not be at its end before it can know
	}
	return nil
}

// follower is a service whose runs can be held.
type follower struct {
	mediaService

	hold *holding
}

const followedFiles = 40

// onFollowed runs a test with a project that has some files and records.
func onFollowed(t *testing.T, config string, test func(t *testing.T, s follower)) {
	t.Helper()
	for _, name := range []string{"embedded", "mongodb"} {
		t.Run(name, func(t *testing.T) {
			uri := ""
			if name == "mongodb" {
				uri = emptyMongo(t, "svc_media")
			}
			s := follower{mediaService{data: t.TempDir()}, &holding{}}
			s.service = run(t, func(c *app.Config) { c.StoreURI, c.DataDir, c.SnapshotFault = uri, s.data, s.hold.fault })
			s.register("media", config)
			for i := range followedFiles {
				s.do("POST", "/api/v1/_/media/open", admin, form(
					part{name: "data", content: fmt.Sprintf(`{"n": %d}`, i)}, part{name: "file", file: "a.txt", content: fmt.Sprint("file ", i)},
				)).want(t, http.StatusCreated)
			}
			s.do("POST", "/api/v1/_/media/other", admin, text(`{"n": 1}`)).want(t, http.StatusCreated)
			test(t, s)
		})
	}
}

// attached is a reader of a run's events.
type attached struct {
	t     *testing.T
	lines *bufio.Scanner
	leave func()
	read  strings.Builder
}

// attach reads a run's events behind one. When it returns, the stream has begun.
func (s follower) attach(run string, after string) *attached {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+snaps+"/"+run+"/events", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	admin(req)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%v, %v", res, err)
	}
	return &attached{t: s.t, lines: bufio.NewScanner(res.Body), leave: func() {
		cancel()
		_ = res.Body.Close()
	}}
}

// until reads whole events to the first that has a text; "": all that come. It gives them, without comments.
func (a *attached) until(text string) string {
	a.t.Helper()
	seen := false
	for a.lines.Scan() {
		line := a.lines.Text()
		a.read.WriteString(line + "\n")
		if seen = seen || text != "" && strings.Contains(line, text); seen && line == "" {
			break
		}
	}
	if a.lines.Err() != nil || text != "" && !seen {
		a.t.Fatalf("no event has %q, %v: %s", text, a.lines.Err(), a.read.String())
	}
	return events(a.read.String())
}

// lasting is a run that can be held on its way.
type lasting struct {
	kind          string
	start         func() (id string) // of the run, which goes on
	op, match     string             // where it is held
	nth           int
	phase         string   // in which that is
	after         int      // operations of that kind at most behind where it was cancelled
	phases        []string // all of a run that goes to its end
	says          []string // messages of its events
	prepare, tidy func()   // before each run, and behind one that has gone to its end
}

// begun gives the id of a run that was started.
func (s follower) begun(path, body string) string {
	s.t.Helper()
	got := s.do("POST", path, admin, text(body))
	got.want(s.t, http.StatusAccepted)
	return got.field("id")
}

// running gives the id of the run that goes on.
func (s follower) running() (id string) {
	s.t.Helper()
	eventually(s.t, func() string {
		var list api.List[api.Run]
		got := s.do("GET", snaps+"/runs?status=running", admin)
		unmarshal(s.t, got.body, &list)
		if len(list.Items) != 1 {
			return got.body
		}
		id = list.Items[0].ID
		return ""
	})
	return id
}

// Each kind of run can be followed while it goes on, left, and followed on from where one was; and it can be cancelled, ends then without
// doing the rest, and leaves nothing.
func TestSnapshotRunsFollowed(t *testing.T) {
	onFollowed(t, followConfig, func(t *testing.T, s follower) {
		const backup = "/api/v1/_/media/_/admin/backup"
		id := s.take("daily").ID
		archive := s.download(id, admin)
		drop := func() { s.do("DELETE", snaps+"/"+id, admin).want(t, http.StatusNoContent) }
		body := func(more string) string { return `{"collections": ["open", "other"]` + more + `}` }
		restored := []string{"verify", "load", "index", "load", "index", "safety", "media", "swap"}
		imports := lasting{
			kind: "import", op: "open", match: "media/*", nth: 2, phase: "verify", after: 5,
			phases: []string{"import", "verify"}, says: []string{"unpacks the archive", "reads the files of the snapshot"},
		}
		for _, run := range []lasting{
			{
				kind: "snapshot", start: func() string { return s.begun(snaps, `{"profile": "daily"}`) }, op: "link", match: "media/*", nth: 2, phase: "collections", after: 20,
				phases: []string{"plan", "collections", "media", "manifest"}, says: []string{"looks at what there is", "exports records", "goes through files of records", "writes to disk what is not there yet"},
			},
			{
				kind: "backup", start: func() string { return s.begun(backup, ``) }, op: "link", match: "media/*", nth: 2, phase: "collections", after: 20,
				phases: []string{"plan", "collections", "media", "manifest"}, says: []string{"goes through files of records"},
			},
			{
				kind: "verify", start: func() string { return s.begun(snaps+"/"+id+"/verify", ``) }, op: "open", match: "media/*", nth: 2, phase: "verify", after: 5,
				phases: []string{"verify"}, says: []string{"reads the files of the snapshot"},
			},
			{
				kind: "restore", start: func() string { return s.begun(snaps+"/"+id+"/restore", body(`, "dryRun": true`)) }, op: "open", match: "collections/open.jsonl.zst", nth: 2, phase: "compare",
				phases: []string{"verify", "compare"}, says: []string{"reads the files of the snapshot", "compares records"},
			},
			{
				kind: "restore", start: func() string { return s.begun(snaps+"/"+id+"/restore", body(``)) }, op: "open", match: "media/*", nth: 2, phase: "verify", after: 5,
				phases: restored, says: []string{"reads the files of the snapshot", "loads open", "makes the indexes of other", "takes a snapshot of what is there", "puts what was loaded in its place"},
			},
			{ // when what is to come is loaded
				kind: "restore", start: func() string { return s.begun(snaps+"/"+id+"/restore", body(``)) }, op: "mkdir", match: "collections", nth: 1, phase: "safety",
				phases: restored, says: []string{"takes a snapshot of what is there"},
			},
			{
				kind: "import", op: imports.op, match: imports.match, nth: imports.nth, phase: imports.phase, after: imports.after, phases: imports.phases, says: imports.says,
				start: func() string {
					done := make(chan answer, 1)
					go func() { done <- s.do("POST", snaps+"/import", admin, archived(archive)) }()
					t.Cleanup(func() { <-done })
					return s.running()
				},
				prepare: drop,
			},
			{
				kind: "prune", start: func() string { return s.begun(snaps+"/prune", `{"profile": "daily"}`) }, op: "rename", match: "daily/.trash-*", nth: 1, phase: "prune", after: 3,
				phases: []string{"prune"}, says: []string{"removes snapshots that are not kept"},
				prepare: func() {
					for range 8 {
						s.take("daily")
					}
				},
			},
		} {
			t.Run(run.kind+" "+run.phase, func(t *testing.T) {
				s := s
				service := *s.service
				service.t, s.service = t, &service
				s.followed(run)
				s.cancelled(run)
			})
		}
	})
}

// followed follows a run from its beginning, leaves, and follows on.
func (s follower) followed(l lasting) {
	t := s.t
	if l.prepare != nil {
		l.prepare()
	}
	s.hold.arm(l.op, l.match, l.nth)
	id := l.start()
	s.hold.await(t)
	reader := s.attach(id, "")
	first := reader.until(`"phase":"` + l.phase + `"`)
	reader.leave()
	ids, _ := readEvents(t, first)
	if run := s.do("GET", snaps+"/runs/"+id, admin); run.field("status") != "running" || run.field("kind") != l.kind {
		t.Fatal(run.body)
	}
	reader = s.attach(id, ids[len(ids)-1])
	s.hold.letGo()
	rest := reader.until("")
	reader.leave()
	var run api.Run
	unmarshal(t, s.ended(snaps+"/runs/"+id, admin), &run)
	if run.Status != "succeeded" {
		t.Fatalf("%+v", run)
	}
	whole := events(s.do("GET", snaps+"/"+id+"/events", admin).body)
	if diff := cmp.Diff(whole, first+rest); diff != "" {
		t.Error(diff)
	}
	ids, kinds := readEvents(t, whole)
	for i, id := range ids {
		if id != fmt.Sprint(i+1) {
			t.Errorf("events %v", ids)
			break
		}
	}
	if kinds[len(kinds)-1] != "done" || slices.Index(kinds, "done") != len(kinds)-1 || strings.Contains(whole, ` "`) {
		t.Error(whole)
	}
	for _, text := range l.says {
		if !strings.Contains(whole, `"message":"`+text+`"`) {
			t.Errorf("no event says that it %s: %s", text, whole)
		}
	}
	var phases []string
	for _, p := range run.Phases {
		if phases = append(phases, p.Phase); p.Total > 0 && p.Done != p.Total {
			t.Errorf("of the phase %s %d of %d are done", p.Phase, p.Done, p.Total)
		}
	}
	if diff := cmp.Diff(l.phases, phases); diff != "" {
		t.Error(diff)
	}
	if l.tidy != nil {
		l.tidy()
	}
}

// cancelled cancels a run on its way.
func (s follower) cancelled(l lasting) {
	t := s.t
	if l.prepare != nil {
		l.prepare()
	}
	before, files := s.contentsOf("media"), s.snapshotFiles("media")
	s.hold.arm(l.op, l.match, l.nth)
	id := l.start()
	s.hold.await(t)
	scratch := s.scratch()
	reader := s.attach(id, "")
	s.do("POST", snaps+"/"+id+"/cancel", admin).contains(t, http.StatusAccepted, `"cancelRequested":true`)
	s.hold.letGo()
	all := reader.until("")
	reader.leave()
	if run := s.ended(snaps+"/runs/"+id, admin); !strings.Contains(run, `"status":"cancelled"`) {
		t.Error(run)
	}
	if !strings.Contains(all, "event: error\n") || !strings.Contains(all, `"status":"cancelled"`) {
		t.Error(all)
	}
	if n := s.hold.after(); n > l.after {
		t.Errorf("it went on for %d files", n)
	}
	if s.contentsOf("media") != before {
		t.Error("records have changed")
	}
	s.noScratch(scratch)
	now := s.snapshotFiles("media")
	if l.kind == "prune" { // what it came to is gone, whole; the others stay
		gone := map[string]bool{}
		for _, name := range files {
			if !slices.Contains(now, name) {
				gone[snapshotOf(name)] = true
			}
		}
		files = slices.DeleteFunc(files, func(name string) bool { return gone[snapshotOf(name)] })
		if len(gone) == 0 || len(gone) > 1+l.after {
			t.Errorf("%d snapshots are gone", len(gone))
		}
	}
	if diff := cmp.Diff(files, now); diff != "" {
		t.Error(diff)
	}
}

// snapshotOf is the id of the snapshot that a file is of.
func snapshotOf(name string) string {
	_, at, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	id, _, _ := strings.Cut(at, "/")
	return strings.TrimSuffix(id, ".state.json")
}

// scratch are the collections, by database, that a restore or drill which goes on has noted that it makes.
func (s follower) scratch() map[string][]string {
	s.t.Helper()
	out := map[string][]string{}
	err := s.app.Store().Database("svc_media").Collection("svc.restores").Find(s.t.Context(), store.Query{}, func(doc bson.Raw) error {
		if database, ok := doc.Lookup("database").StringValueOK(); ok {
			short := strings.TrimPrefix(database, "svc-drill-")
			out[database] = []string{"open", "other", "svc.restore." + short + ".0", "svc.restore." + short + ".1"}
			return nil
		}
		swaps, err := doc.Lookup("swaps").Array().Values()
		for _, swap := range swaps {
			out["svc_media"] = append(out["svc_media"], swap.Document().Lookup("from").StringValue())
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// noScratch wants nothing to be left of such collections, and of the notes.
func (s follower) noScratch(made map[string][]string) {
	s.t.Helper()
	for database, collections := range made {
		for _, name := range collections {
			if n, err := s.app.Store().Database(database).Collection(name).Count(s.t.Context(), nil, 0); n != 0 || err != nil {
				s.t.Errorf("%s.%s has %d records, %v", database, name, n, err)
			}
		}
	}
	if n, err := s.app.Store().Database("svc_media").Collection("svc.restores").Count(s.t.Context(), nil, 0); n != 0 || err != nil {
		s.t.Errorf("%d notes are left, %v", n, err)
	}
}

// A drill is one of them, begun by its schedule.
func TestSnapshotDrillFollowed(t *testing.T) {
	const daily = "{name: daily, retention: {keepLast: 1}}"
	onFollowed(t, followConfig, func(t *testing.T, s follower) {
		s.take("daily")
		reload := func(config string) {
			s.configure("media", config)
			s.do("POST", "/api/v1/_/media/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		}
		scheduled := func() (id string) { // one, which is held: on a slow machine the next would be there before this one is looked at
			reload(strings.Replace(followConfig, daily, "{name: daily, enabled: true, drill: {schedule: every 1s}}", 1))
			s.hold.await(t)
			reload(followConfig)
			return s.running()
		}
		drill := lasting{
			kind: "drill", start: scheduled, op: "open", match: "collections/other.jsonl.zst", nth: 2, phase: "load",
			phases: []string{"verify", "load", "index", "load", "index"}, says: []string{"reads the files of the snapshot", "loads open", "makes the indexes of other"},
		}
		s.followed(drill)
		s.cancelled(drill)
	})
}
