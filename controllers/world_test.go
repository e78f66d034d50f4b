package controllers_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/snapshot"
	keep "github.com/svcctl/svc/pkg/snapshot/due"
	snapshots "github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should come: generous, since a loaded machine is no failure.
const patience = 2 * time.Minute

// spy is a store that notes what changes, can be told to fail, and has databases of its own on a shared server.
type spy struct {
	store.Store
	prefix string

	mu    sync.Mutex
	calls []string
	fail  map[string]error  // by collection; writes alone by "write " and it
	build func(name string) // is called before an index is created; nil: nothing is
}

func (s *spy) Database(name string) store.Database {
	return spyDatabase{s.Store.Database(s.prefix + name), s, name}
}

func (s *spy) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// take gives the calls since the last take.
func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// takeIndexCalls is take without the writes of documents.
func (s *spy) takeIndexCalls() []string {
	var out []string
	for _, c := range s.take() {
		if !strings.HasPrefix(c, "write ") {
			out = append(out, c)
		}
	}
	return out
}

func (s *spy) failOn(collection string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[collection] = err
}

type spyDatabase struct {
	store.Database
	s    *spy
	name string
}

func (d spyDatabase) Collection(name string) store.Collection {
	return spyCollection{d.Database.Collection(name), d.s, name}
}

type spyCollection struct {
	store.Collection
	s    *spy
	name string
}

func (c spyCollection) failure() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.fail[c.name]
}

func (c spyCollection) writeFailure() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.fail["write "+c.name]
}

func (c spyCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	return c.Collection.Get(ctx, id)
}

func (c spyCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if err := c.failure(); err != nil {
		return err
	}
	return c.Collection.Find(ctx, q, fn)
}

func (c spyCollection) Indexes(ctx context.Context) ([]store.Index, error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	return c.Collection.Indexes(ctx)
}

func (c spyCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	c.s.note("write %s", c.name)
	if err := c.writeFailure(); err != nil {
		return nil, err
	}
	return c.Collection.Write(ctx, ops, atomic)
}

func (c spyCollection) CreateIndex(ctx context.Context, ix store.Index) error {
	c.s.note("create %s.%s", c.name, ix.Name)
	c.s.mu.Lock()
	build := c.s.build
	c.s.mu.Unlock()
	if build != nil {
		build(ix.Name)
	}
	return c.Collection.CreateIndex(ctx, ix)
}

func (c spyCollection) DropIndex(ctx context.Context, name string) error {
	c.s.note("drop %s.%s", c.name, name)
	return c.Collection.DropIndex(ctx, name)
}

// onStores runs a test on an embedded store and on MongoDB.
func onStores(t *testing.T, test func(t *testing.T, s *spy)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, newEmbedded(t)) })
	t.Run("mongodb", func(t *testing.T) {
		st, err := mongo.Open(t.Context(), mongo.Options{URI: mongotest.URI(t)})
		if err != nil {
			t.Fatal(err)
		}
		s := &spy{Store: st, prefix: "test_" + bson.NewObjectID().Hex() + "_", fail: map[string]error{}}
		t.Cleanup(func() {
			for _, name := range []string{"svc", "svc_blog"} {
				if err := st.DropDatabase(context.WithoutCancel(t.Context()), s.prefix+name); err != nil {
					t.Error(err)
				}
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, s)
	})
}

// newEmbedded makes an embedded store.
func newEmbedded(t *testing.T) *spy {
	t.Helper()
	st := teststore.Memory(t)
	return &spy{Store: st, fail: map[string]error{}}
}

// world is one instance of the control plane.
type world struct {
	*testing.T
	*controllers.Control

	store   *spy
	models  *system.System
	metrics *prometheus.Registry
	taken   *snapshot.Snapshots
}

// newWorld starts an instance on a store and a projects directory, which must be there.
func newWorld(t *testing.T, s *spy, projectsDir string, set func(d *controllers.Deps)) *world {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	metrics := prometheus.NewRegistry()
	manager, err := controller.New(controller.Options{
		Logger: log, Registerer: metrics, BackoffMin: time.Millisecond, BackoffMax: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	models := system.New(s, system.Options{Now: time.Now})
	if err := models.EnsureIndexes(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs, err := operation.New(operation.Options{Store: s, Now: time.Now, Registerer: metrics})
	if err != nil {
		t.Fatal(err)
	}
	due, err := jobs.New(jobs.Options{Store: s, Runs: runs, Runner: ran{}, Now: time.Now, Registerer: metrics})
	if err != nil {
		t.Fatal(err)
	}
	searches, err := engine.Open(t.Context(), engine.Options{Store: s, Dir: t.TempDir(), Logger: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, store: s, models: models, metrics: metrics}
	taken := snapshot.New(snapshot.Options{Store: s, Holder: rand.Text(), Now: time.Now, Logger: log, Changed: func(p *project.Project) { w.SnapshotsChanged(p.ID) }})
	followed := snapshots.New(taken, runs, log)
	t.Cleanup(followed.Close)
	kept, err := keep.New(keep.Options{Store: s, Runs: followed, Snapshots: taken, Now: time.Now, Registerer: metrics})
	if err != nil {
		t.Fatal(err)
	}
	d := controllers.Deps{
		Jobs:      due,
		Searches:  searches,
		Snapshots: kept,
		Store:     s, Instance: "this one", Projects: models.Projects, Generations: models.Generations, Registry: project.NewRegistry(),
		Board: status.NewBoard(time.Now), Manager: manager, Watch: controllers.WatchReload, ProjectsDir: projectsDir,
		Watcher: dirwatch.New(dirwatch.Options{Logger: log, Debounce: 10 * time.Millisecond}),
		Env:     func(string) (string, bool) { return "", false }, Logger: log, Now: time.Now,
	}
	if set != nil {
		set(&d)
	}
	control, err := controllers.New(d)
	if err != nil {
		t.Fatal(err)
	}
	w.Control, w.taken = control, taken
	if err := control.ServeRegistered(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		runs.Close(ctx)
		if err := searches.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// ran is a Runner of jobs that do nothing.
type ran struct{}

func (ran) RunJob(context.Context, jobs.Call, *operation.Live) (any, error) { return "ran", nil }

// logLines is a log that tests read.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// count gives how many lines contain a text.
func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// reconcile runs a controller once and gives its error.
func (w *world) reconcile(name, id string) error {
	w.Helper()
	return w.Manager.ReconcileNow(w.Context(), name, id)
}

// eventually waits until a check says nothing any more.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	for giveUp := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("after %s: %s", patience, problem)
		}
	}
}

// served gives the generation that a namespace is served from, 0 for none.
func (w *world) served(namespace string) int64 {
	p, err := w.Registry.Get(namespace)
	if err != nil {
		return 0
	}
	return p.Generation
}

func (w *world) eventuallyServed(generation int64) {
	w.Helper()
	eventually(w.T, func() string {
		if got := w.served("blog"); got != generation {
			return fmt.Sprintf("generation %d is served, want %d", got, generation)
		}
		return ""
	})
}

// condition gives "Status Reason" of a condition, or "".
func (w *world) condition(id, typ string) string {
	s, _ := w.Board.Get(id)
	c, ok := s.Condition(typ)
	if !ok {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (w *world) wantConditions(id string, want map[string]string) {
	w.Helper()
	eventually(w.T, func() string {
		got := map[string]string{}
		for typ := range want {
			got[typ] = w.condition(id, typ)
		}
		return cmp.Diff(want, got)
	})
}

// problems gives what the Board has against a project's files.
func (w *world) problems(id string) []string {
	s, _ := w.Board.Get(id)
	var out []string
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("%s:%d:%d %s", p.File, p.Line, p.Column, p.Path))
	}
	return out
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is a project with one collection, which has one field and these indexes.
func config(namespace, field, indexes string) string {
	return `
namespace: ` + namespace + `
collections:
  - name: articles
    fields:
      - {name: ` + field + `, type: string}
    indexes: [` + indexes + `]
    permissions:
      public: {methods: {}}
      user: {methods: {}}
`
}
