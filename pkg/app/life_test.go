package app_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should come: generous, since a loaded machine is no failure.
const patience = 2 * time.Minute

// config is a project whose articles have a field with a rule.
const config = `
namespace: blog
collections:
  - name: articles
    strictFields: true
    fields:
      - {name: title, type: string, index: [unique], validator: "required,max=20"}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {}}
`

// newConfig gives the settings of an instance with directories of its own.
func newConfig(t *testing.T) app.Config {
	t.Helper()
	dir := t.TempDir()
	cfg := app.Config{
		Host: "127.0.0.1", MaxBodySize: 1 << 20, AdminToken: adminToken, JWTTTL: time.Hour, DataDir: filepath.Join(dir, "data"),
		ProjectsDir: filepath.Join(dir, "projects"), Watch: controllers.WatchReload, ShutdownGrace: patience,
		Version: "1.2.3", Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Env:     func(string) (string, bool) { return "", false },
		OnFatal: func(err error) { t.Error(err) }, PasswordCost: cheap,
	}
	edit(t, cfg, config)
	return cfg
}

// onStores runs a test on the embedded store and on MongoDB, where it has the databases to itself.
func onStores(t *testing.T, test func(t *testing.T, cfg app.Config)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, newConfig(t)) })
	t.Run("mongodb", func(t *testing.T) { test(t, onMongo(t)) })
}

func onMongo(t *testing.T) app.Config {
	t.Helper()
	cfg := newConfig(t)
	cfg.StoreURI = emptyMongo(t, "svc_blog", "svc_desk")
	return cfg
}

// edit changes the project's file.
func edit(t *testing.T, cfg app.Config, content string) {
	t.Helper()
	path := filepath.Join(cfg.ProjectsDir, "blog", "project.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// instance is a running App with a client of it.
type instance struct {
	*client.Client

	addr  string
	mongo string // address of the MongoDB endpoint
	stop  func() // ends it and waits; more than once is no harm
}

// start runs an App until the end of the test, or until it is stopped before.
func start(t *testing.T, cfg app.Config) *instance {
	t.Helper()
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return &instance{Client: newClient(t, a.Addr()), addr: a.Addr(), mongo: a.MongoAddr(), stop: stop}
}

func newClient(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: "http://" + addr, AdminToken: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (i *instance) register(t *testing.T) string {
	t.Helper()
	p, err := i.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("blog")})
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func (i *instance) create(t *testing.T, record string) error {
	t.Helper()
	_, err := i.CreateRecord(t.Context(), "blog", "articles", api.Record(record))
	return err
}

// wantStatus waits until a project is in a phase and its problems are at these places.
func (i *instance) wantStatus(t *testing.T, id string, phase api.Phase, problems ...string) {
	t.Helper()
	eventually(t, func() string {
		st, err := i.ProjectStatus(t.Context(), id)
		if err != nil {
			return err.Error()
		}
		got := []string{string(st.Phase)}
		for _, p := range st.Problems {
			got = append(got, fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column))
		}
		return cmp.Diff(append([]string{string(phase)}, problems...), got)
	})
}

// eventually waits until a check says nothing any more.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	for giveUp := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("after %s: %s", patience, problem)
		}
	}
}

// A day in the life of a project, told by its client.
func TestProjectLife(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		t.Helper()
		svc := start(t, cfg)
		if err := svc.create(t, `{"title":"a"}`); !client.IsStatus(err, 404) {
			t.Errorf("before registration: %v", err)
		}
		id := svc.register(t)
		svc.wantStatus(t, id, api.PhaseReady)
		if err := svc.create(t, `{"title":"a"}`); err != nil {
			t.Fatal(err)
		}
		if err := svc.create(t, `{"title":"a"}`); !client.IsStatus(err, 409) {
			t.Errorf("a title that is taken: %v", err)
		}
		if err := svc.create(t, `{"title":"b","teaser":"short"}`); !client.IsStatus(err, 400) {
			t.Errorf("a field that is not declared: %v", err)
		}

		withTeaser := strings.Replace(config, "    permissions:", "      - {name: teaser, type: string}\n    permissions:", 1)
		edit(t, cfg, withTeaser)
		eventually(t, func() string {
			if err := svc.create(t, `{"title":"b","teaser":"short"}`); err != nil {
				return err.Error()
			}
			return ""
		})

		edit(t, cfg, strings.Replace(withTeaser, "type: string}", "type: strnig}", 1))
		svc.wantStatus(t, id, api.PhaseDegraded, "project.yaml:8:30")
		if err := svc.create(t, `{"title":"c","teaser":"the old one goes on"}`); err != nil {
			t.Error(err)
		}
		if _, err := svc.Reload(t.Context(), "blog"); !client.IsStatus(err, 422) {
			t.Errorf("a reload of a broken config: %v", err)
		}

		edit(t, cfg, config)
		svc.wantStatus(t, id, api.PhaseReady)
		if err := svc.create(t, `{"title":"d","teaser":"gone"}`); !client.IsStatus(err, 400) {
			t.Errorf("after the field went: %v", err)
		}
		reload, err := svc.Reload(t.Context(), "blog")
		if err != nil || reload.Generation != 3 || reload.Changed {
			t.Errorf("reload: %+v, %v", reload, err)
		}
		svc.stop()

		svc = start(t, cfg) // the second start goes on with the data
		svc.wantStatus(t, id, api.PhaseReady)
		if n, err := svc.CountRecords(t.Context(), "blog", "articles", ""); n != 3 || err != nil {
			t.Errorf("%d records, %v; want 3", n, err)
		}
		if again, err := svc.Reload(t.Context(), "blog"); err != nil || again.Generation != 3 {
			t.Errorf("generation %+v, %v; want 3 still", again, err)
		}
		if _, err := svc.Projects().Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := svc.CountRecords(t.Context(), "blog", "articles", ""); !client.IsStatus(err, 404) {
			t.Errorf("after the registration: %v", err)
		}
	})
}

// Requests that were accepted are answered, whatever else happens; and what was answered is there afterwards.
func TestShutdownUnderLoad(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		t.Helper()
		svc := start(t, cfg)
		svc.register(t)
		var created, failed atomic.Int64
		var writers sync.WaitGroup
		for i := range 8 {
			// Without retries, and each with connections of its own.
			c := newClient(t, svc.addr)
			writers.Go(func() {
				for n := range 100_000 {
					_, err := c.CreateRecord(t.Context(), "blog", "articles", api.Record(fmt.Sprintf(`{"title":"%d-%d"}`, i, n)))
					switch {
					case err == nil:
						created.Add(1)
					case strings.Contains(err.Error(), "connection refused"), strings.Contains(err.Error(), "connection reset"),
						strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "server closed idle connection"):
						return // it was not accepted any more
					default:
						failed.Add(1)
						t.Errorf("a request failed: %v", err)
						return
					}
				}
			})
		}
		eventually(t, func() string {
			if created.Load() < 50 {
				return "too little load"
			}
			return ""
		})
		svc.stop()
		writers.Wait()
		svc = start(t, cfg)
		n, err := svc.CountRecords(t.Context(), "blog", "articles", "")
		if err != nil || n != created.Load() || failed.Load() > 0 {
			t.Errorf("%d records, %v; %d were acknowledged", n, err, created.Load())
		}
	})
}

func TestTwoInstancesOnOneDirectory(t *testing.T) {
	cfg := newConfig(t)
	cfg.AdminToken = "" // so that one is generated
	first := start(t, cfg)
	generated, err := os.ReadFile(app.AdminTokenFile(cfg.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	second, err := app.New(t.Context(), cfg)
	if err == nil {
		t.Fatal(second.Close())
	}
	if want := "the store in " + cfg.DataDir + "/store is in use by another process: stop that one first, or use another directory"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if again, err := os.ReadFile(app.AdminTokenFile(cfg.DataDir)); err != nil || !bytes.Equal(again, generated) {
		t.Errorf("the admin token has changed, %v", err)
	}
	if _, err := first.Projects().List(t.Context(), client.Query{}); !client.IsStatus(err, 403) { // it answers
		t.Error(err)
	}
}

func TestTwoInstancesOnOneMongoDB(t *testing.T) {
	cfg := onMongo(t)
	cfg.Resync = 20 * time.Millisecond
	a := start(t, cfg)
	cfg.DataDir = t.TempDir() // another machine, with the same projects
	b := start(t, cfg)
	id := a.register(t)
	b.wantStatus(t, id, api.PhaseReady)
	if err := a.create(t, `{"title":"made on a"}`); err != nil {
		t.Fatal(err)
	}
	if n, err := b.CountRecords(t.Context(), "blog", "articles", `{"title":"made on a"}`); n != 1 || err != nil {
		t.Errorf("%d records on b, %v", n, err)
	}
	if err := b.create(t, `{"title":"made on a"}`); !client.IsStatus(err, 409) {
		t.Errorf("a title that a has: %v", err)
	}
	edit(t, cfg, strings.Replace(config, "max=20", "max=50", 1))
	for _, i := range []*instance{a, b} {
		eventually(t, func() string {
			st, err := i.ProjectStatus(t.Context(), id)
			if err != nil || st.ObservedGeneration != 2 || st.Phase != api.PhaseReady {
				return fmt.Sprintf("%+v, %v", st, err)
			}
			return ""
		})
	}
	if _, err := b.Projects().Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, err := a.CountRecords(t.Context(), "blog", "articles", ""); !client.IsStatus(err, 404) {
			return fmt.Sprintf("still served: %v", err)
		}
		return ""
	})
}

func TestGeneratedAdminToken(t *testing.T) {
	cfg := newConfig(t)
	cfg.AdminToken = ""
	var tokens []string
	for range 2 {
		svc := start(t, cfg)
		path := app.AdminTokenFile(cfg.DataDir)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %s, %v", info.Mode(), err)
		}
		tokens = append(tokens, strings.TrimSpace(string(data)))
		c, err := client.New(client.Options{Server: "http://" + svc.addr, AdminToken: tokens[0]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Projects().List(t.Context(), client.Query{}); err != nil {
			t.Error(err)
		}
		if _, err := svc.Projects().List(t.Context(), client.Query{}); !client.IsStatus(err, 403) {
			t.Errorf("another token: %v", err)
		}
		svc.stop()
	}
	if tokens[0] != tokens[1] || len(tokens[0]) < 40 {
		t.Errorf("tokens: %q", tokens)
	}
	if err := os.WriteFile(app.AdminTokenFile(cfg.DataDir), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := app.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is empty: delete it") {
		t.Error(err, a)
	}
}

func TestAnAppThatIsNotRun(t *testing.T) {
	cfg := newConfig(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port, err = strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "set another api.port") {
		t.Errorf("on a port that is taken: %v", err)
	}
	cfg.Port = 0
	for range 2 { // Close has released what New held
		a, err := app.New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A service that has no room for projects yet starts all the same, and says so.
func TestProjectsDirectoryMayComeLater(t *testing.T) {
	cfg := newConfig(t)
	var log lockedBuffer
	cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	if err := os.Rename(cfg.ProjectsDir, cfg.ProjectsDir+".away"); err != nil {
		t.Fatal(err)
	}
	svc := start(t, cfg)
	if !strings.Contains(log.String(), "set projects.dir to the directory") {
		t.Errorf("no warning: %s", log.String())
	}
	if _, err := svc.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("blog")}); !client.IsStatus(err, 503) {
		t.Errorf("got %v", err)
	}
	if _, err := app.Check(t.Context(), cfg); err == nil {
		t.Error("Check finds nothing wrong")
	}
	if err := os.Rename(cfg.ProjectsDir+".away", cfg.ProjectsDir); err != nil {
		t.Fatal(err)
	}
	svc.register(t)
}
