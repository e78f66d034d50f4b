package tui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

// TestMain gives the tests a folder for temporary files: drafts that were not saved stay there.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tui-test-*")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// service answers as svcd does, with what a test has put into it.
type service struct {
	mu          sync.Mutex
	down        bool                   // nobody answers
	fail        map[string]api.Problem // by path below /api/v1
	projects    []api.Project
	statuses    map[string]api.ProjectStatus // by id
	collections []api.CollectionDescription
	worker      api.SearchWorker
	groups      []api.EmbeddingGroup // as the service sees them
	records     []string             // what every search finds
	more        bool                 // there are always more of them
	reloaded    api.ReloadResult
	asked       []string // requests that change something, and searches
	profiles    []api.SnapshotProfile
	snapshots   []api.Snapshot
	snapRuns    []api.Run // newest first; one that is started comes before them
	diff        api.SnapshotDiff
	me          *api.Me          // nil: a user who may do everything
	audit       []api.AuditEntry // of every log, newest first
	report      api.AuditReport
	tokens      []api.Token
	users       []api.User
	scopes      []string
	orgs        []api.Org
	teams       []api.Team
	user        api.UserWrite // how a user was written last
	jobs        []api.Job
	jobRuns     []api.Run // of every job, newest first
	plan        api.Plan
	drift       api.Drift
	docs        []string // records of every collection, for lists without words
	editor      func(file string) error

	events chan api.ProjectEvent // of all projects
	run    chan api.RunEvent     // of all runs that make indexes anew
	snaps  chan api.RunEvent     // of all runs of snapshots
	feed   chan api.Change       // of all collections
	job    chan api.RunEvent     // of all runs of jobs
}

// RoundTrip implements http.RoundTripper.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, fmt.Errorf("dial tcp 127.0.0.1:8080: connect: connection refused")
	}
	return frametest.Transport{Handler: s.handler()}.RoundTrip(r)
}

func (s *service) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// note keeps a request that changes something, or looks for something.
func (s *service) note(r *http.Request) {
	q := r.URL.Query()
	if r.Method == http.MethodGet && q.Get("q")+q.Get("filter")+q.Get("sort")+q.Get("after") == "" {
		return
	}
	text := r.Method + " " + strings.TrimPrefix(r.URL.String(), "http://127.0.0.1:8080"+api.Prefix)
	if match := r.Header.Get(api.HeaderIfMatch); match != "" {
		text += " if " + match
	}
	s.asked = append(s.asked, text)
}

func (s *service) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

// refuses answers a request for a stream that is refused.
func (s *service) refuses(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	problem, refused := s.fail[strings.TrimPrefix(r.URL.Path, api.Prefix)]
	s.mu.Unlock()
	if refused {
		w.Header().Set("Content-Type", api.MediaProblem)
		w.WriteHeader(problem.Status)
		_ = json.NewEncoder(w).Encode(problem) // the client may have gone
	}
	return refused
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	give := func(pattern string, fn func(r *http.Request) any) {
		mux.HandleFunc(strings.Replace(pattern, " /", " "+api.Prefix+"/", 1), func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			problem, failed := s.fail[strings.TrimPrefix(r.URL.Path, api.Prefix)]
			s.note(r)
			var value any
			if value = problem; !failed {
				value = fn(r)
			}
			body, _ := json.Marshal(value) // it can be: what is in it changes when others ask
			s.mu.Unlock()
			w.Header().Set("Content-Type", api.MediaJSON)
			if failed {
				w.Header().Set("Content-Type", api.MediaProblem)
				w.WriteHeader(problem.Status)
			}
			_, _ = w.Write(body) // the client may have gone
		})
	}
	mux.HandleFunc("GET "+api.RootReady, func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if problem, failed := s.fail[api.RootReady]; failed {
			w.Header().Set("Content-Type", api.MediaProblem)
			w.WriteHeader(problem.Status)
			_ = json.NewEncoder(w).Encode(problem) // the client may have gone
			return
		}
		fmt.Fprint(w, `{"status":"ok"}`)
	})
	give("GET /version", func(*http.Request) any { return api.Version{Version: "v1.2.3"} })
	give("GET /me", func(*http.Request) any {
		if s.me != nil {
			return *s.me
		}
		return api.Me{Kind: "user", ID: "u1", Username: "ann", IsAdmin: true}
	})
	give("GET /project", func(*http.Request) any { return api.List[api.Project]{Items: s.projects} })
	give("GET /project/{id}/status", func(r *http.Request) any { return s.statuses[r.PathValue("id")] })
	give("POST /_/{p}/_/admin/reload", func(*http.Request) any { return s.reloaded })
	give("GET /_/{p}/_/collections", func(*http.Request) any { return api.List[api.CollectionDescription]{Items: s.collections} })
	give("GET /_/{p}/_/admin/search-worker/status", func(*http.Request) any { return s.worker })
	give("GET /_/{p}/{c}/_queue", func(r *http.Request) any {
		for _, c := range s.worker.Collections {
			if c.Collection == r.PathValue("c") {
				return c.SearchQueue
			}
		}
		return api.SearchQueue{}
	})
	give("GET /admin/embedding/status", func(*http.Request) any { return api.EmbeddingStatus{Groups: s.groups} })
	give("GET /_/{p}/_/admin/embedding/status", func(*http.Request) any {
		var redacted []api.EmbeddingGroup
		for _, g := range s.groups {
			g.Error, g.Members = "", append([]api.EmbeddingMember(nil), g.Members...)
			for i := range g.Members {
				g.Members[i].Error = ""
			}
			redacted = append(redacted, g)
		}
		return api.EmbeddingStatus{Groups: redacted}
	})
	give("POST /_/{p}/_/admin/regenerate-search", func(*http.Request) any {
		return api.Run{ID: "6b01a2b3c4d5e6f708192a3b", Kind: "search", Status: api.RunRunning}
	})
	give("GET /_/{p}/{c}", func(r *http.Request) any {
		if r.URL.Query().Get("q") == "" {
			return s.listDocs(r)
		}
		list := api.List[api.Record]{Total: new(int64(len(s.records))), HasMore: s.more, Limit: 20}
		for _, r := range s.records {
			list.Items = append(list.Items, api.Record(r))
		}
		return list
	})
	s.giveFiles(give)
	s.giveSnapshots(give)
	s.giveRecords(mux, give)
	s.giveJobs(mux, give)
	s.giveAccounts(give)
	give("GET /audit", s.listAudit)
	give("GET /_/{p}/_/audit", s.listAudit)
	give("GET /audit/verify", func(*http.Request) any { return s.report })
	mux.HandleFunc("GET "+api.Prefix+"/_/{p}/_/admin/events", func(w http.ResponseWriter, r *http.Request) {
		stream(w, r, s.events, func(e api.ProjectEvent) (string, any) { return api.EventProject, e })
	})
	mux.HandleFunc("GET "+api.Prefix+"/_/{p}/_/admin/regenerate-search/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		if s.refuses(w, r) {
			return
		}
		stream(w, r, s.run, func(e api.RunEvent) (string, any) { return e.Event, e.Data })
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/admin/snapshots/") && strings.HasSuffix(r.URL.Path, "/events") {
			stream(w, r, s.snaps, func(e api.RunEvent) (string, any) { return e.Event, e.Data })
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// giveSnapshots answers what is asked of snapshots.
func (s *service) giveSnapshots(give func(pattern string, fn func(r *http.Request) any)) {
	const at = " /_/{p}/_/admin/snapshots"
	start := func(kind, name, subject string) any {
		run := api.Run{ID: fmt.Sprintf("6b01a2b3c4d5e6f708192c%02d", len(s.snapRuns)), Kind: kind, Name: name, Subject: subject, Status: api.RunRunning, Trigger: "manual", CreatedAt: ago(0), StartedAt: ago(0), Cancellable: true}
		s.snapRuns = append([]api.Run{run}, s.snapRuns...)
		return run
	}
	give("GET"+at+"/profiles", func(*http.Request) any { return api.List[api.SnapshotProfile]{Items: s.profiles} })
	give("GET"+at, func(*http.Request) any { return api.List[api.Snapshot]{Items: s.snapshots} })
	give("POST"+at, func(r *http.Request) any {
		var body api.SnapshotStart
		_ = json.NewDecoder(r.Body).Decode(&body) // it is the client's
		return start(api.RunKindSnapshot, body.Profile, "")
	})
	give("POST /_/{p}/_/admin/backup", func(*http.Request) any { return start(api.RunKindBackup, api.ProfileBackup, "") })
	give("POST"+at+"/{id}/drill", func(r *http.Request) any { return start(api.RunKindDrill, "daily", r.PathValue("id")) })
	give("POST"+at+"/{id}/verify", func(r *http.Request) any { return start(api.RunKindVerify, "daily", r.PathValue("id")) })
	give("POST"+at+"/{id}/restore", func(r *http.Request) any { return start(api.RunKindRestore, "daily", r.PathValue("id")) })
	give("POST"+at+"/{id}/cancel", func(r *http.Request) any { return s.snapRuns[0] })
	give("PUT"+at+"/{id}", func(r *http.Request) any {
		for i := range s.snapshots {
			if s.snapshots[i].ID == r.PathValue("id") {
				s.snapshots[i].Pinned = !s.snapshots[i].Pinned
			}
		}
		return api.Snapshot{}
	})
	give("GET"+at+"/runs", func(*http.Request) any {
		list := api.List[api.Run]{Items: append([]api.Run(nil), s.snapRuns...)}
		for i := range list.Items {
			list.Items[i].Events = nil
		}
		return list
	})
	give("GET"+at+"/{a}/{b}", func(r *http.Request) any { // runs/<id>, or <id>/diff
		for _, run := range s.snapRuns {
			if run.ID == r.PathValue("b") {
				return run
			}
		}
		return s.diff
	})
}

// stream sends what comes until the client leaves.
func stream[T any](w http.ResponseWriter, r *http.Request, from <-chan T, event func(T) (string, any)) {
	if w.Header().Get("Content-Type") == "" { // else it has begun
		w.Header().Set("Content-Type", api.MediaEvents)
		w.WriteHeader(http.StatusOK)
	}
	for id := 1; ; id++ {
		select {
		case <-r.Context().Done():
			return
		case x, ok := <-from:
			if !ok {
				return
			}
			name, data := event(x)
			text, err := json.Marshal(data)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, name, text)
		}
	}
}

// terminal is svcctl tui in a terminal of a test.
type terminal struct {
	*frametest.Driver
	*service
}

// inTerminal runs fn in a bubble, with a terminal of 80 columns and 24 lines in which svcctl tui has begun.
func inTerminal(t *testing.T, s *service, namespace string, color bool, fn func(t *testing.T, term terminal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.events, s.run, s.snaps = make(chan api.ProjectEvent, 10), make(chan api.RunEvent, 10), make(chan api.RunEvent, 10)
		s.feed, s.job = make(chan api.Change, 10), make(chan api.RunEvent, 10)
		vars := map[string]string{"SVCCTL_TOKEN": "a-token"}
		st := &command.State{
			InTTY: true, OutTTY: true, ErrTTY: true, Home: t.TempDir(), Version: "test", Now: time.Now, Transport: s,
			Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		}
		st.Flags.Color = map[bool]string{true: "always", false: "never"}[color]
		st.Flags.RequestTimeout = time.Minute
		model, closeAll, err := tui.New(t.Context(), st, testEditor{s}, namespace)
		if err != nil {
			t.Fatal(err)
		}
		d := frametest.Drive(t, model, 80, 24)
		fn(t, terminal{d, s})
		closeAll()
		d.Stop()
	})
}
