package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	scripts "github.com/svcctl/svc/pkg/script/traced"
	"github.com/svcctl/svc/pkg/search/engine"
	searches "github.com/svcctl/svc/pkg/search/runs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/due"
	snapshots "github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/barrier"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/lease"
	"github.com/svcctl/svc/pkg/store/wire"
	"github.com/svcctl/svc/pkg/system"
	"github.com/svcctl/svc/pkg/tracing"
)

// App is the service, put together. Run it once.
type App struct {
	cfg      Config
	opened   store.Store // by itself, without spans
	store    store.Store
	tracer   *tracing.Tracer  // nil: nothing is traced
	gate     *gate.Gate       // before store, for whoever uses records
	barrier  *barrier.Barrier // of all instances that share the store; nil: there is one
	registry *project.Registry
	board    *status.Board
	manager  *controller.Manager
	control  *controllers.Control
	auth     *auth.Auth
	server   *http.Server
	listener net.Listener
	endpoint *wire.Server // MongoDB's protocol; nil: none
	logs     *audit.Logs
	engine   *script.Engine
	runs     *operation.Runs
	// snapshots is nil until there is something of it to close.
	taken     *snapshot.Snapshots
	snapshots *snapshots.Service
	images    *media.Images
	sweeper   *sweeper
	files     *media.Library
	search    *engine.Engine
	groups    *embedding.Groups // what search asks for vectors; none of the settings: without groups
	projects  *system.Projects
	// databases names those that have logs of changes and of runs.
	databases func(ctx context.Context) ([]string, error)
	stopping  atomic.Bool
	stop      chan struct{} // has Run end as the end of its context does; holds one, so that who asks need not wait
}

// New opens the store, wires everything and listens; it serves nothing yet. Close or Run releases what it holds. Its
// errors tell whoever runs the service what to do.
func New(ctx context.Context, cfg Config) (*App, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: set data.dir to a directory that svcd may write", err)
	}
	if err := checkProjectsDir(cfg.ProjectsDir); err != nil {
		cfg.Logger.WarnContext(ctx, "no project can be loaded", "error", err)
	}
	st, err := openStore(ctx, cfg, embedded.Options{})
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, opened: st, store: st, registry: project.NewRegistry(), stop: make(chan struct{}, 1)}
	if err := a.wire(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// checkProjectsDir says what keeps projects from being loaded at all.
func checkProjectsDir(dir string) error {
	entries, err := os.Open(dir) //nolint:gosec // whoever sets the service up names it
	if err == nil {
		_, err = entries.Readdirnames(1)
		err = errors.Join(err, entries.Close())
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("%w: set projects.dir to the directory that holds the projects' config files", err)
}

// wire makes the parts, from the store up to the door.
func (a *App) wire(ctx context.Context) error {
	cfg := a.cfg
	adminToken, err := adminToken(ctx, cfg) // now that the store is ours: a second svcd must not make another one
	if err != nil {
		return err
	}
	registerer := prometheus.NewRegistry()
	registerer.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := a.openTracer(registerer); err != nil {
		return err
	}
	cfg = a.cfg

	hasher := cfg.newHasher()
	a.logs = audit.New(audit.Options{
		Store: a.store, Now: cfg.Now, Logger: cfg.Logger, Holder: holder(), SystemDatabase: system.DatabaseName, SystemRetention: cfg.AuditRetention,
	})
	models := system.New(a.store, system.Options{
		HashPassword: hasher.Hash, Now: cfg.Now, PATDefaultTTL: cfg.PATDefaultTTL, PATMaxTTL: cfg.PATMaxTTL, Audit: a.logs,
	})
	if err := models.EnsureIndexes(ctx); err != nil {
		return err
	}
	a.projects, a.databases = models.Projects, databases(models.Projects)
	authn, err := auth.New(ctx, auth.Options{
		System: models, Hasher: hasher, Logger: cfg.Logger, Now: cfg.Now,
		JWTSecret: cfg.JWTSecret, JWTTTL: cfg.JWTTTL, AdminToken: adminToken,
	})
	if err != nil {
		return err
	}
	a.auth = authn
	if err := cfg.firstAdmin(ctx, models.Users); err != nil {
		return err
	}
	a.manager, err = controller.New(controller.Options{Logger: cfg.Logger, Registerer: registerer, Tracer: a.tracer})
	if err != nil {
		return err
	}
	counts, err := newScriptMetrics(registerer)
	if err != nil {
		return err
	}
	if err := a.openFiles(ctx, registerer); err != nil {
		return err
	}
	if err := a.openEmbedding(ctx, registerer); err != nil {
		return err
	}
	a.engine = script.NewEngine(script.Options{Now: cfg.Now, Log: cfg.Logger, Metrics: counts, WorkerCommand: cfg.WorkerCommand})
	_, alone := cfg.embeddedDir()
	a.search, err = engine.Open(ctx, engine.Options{Store: a.store, Dir: filepath.Join(cfg.DataDir, "search"), Logger: cfg.Logger, Now: cfg.Now, Registerer: registerer, Groups: a.groups, Holder: holder(), Alone: alone, SmallVectors: cfg.SmallVectors})
	if err != nil {
		return fmt.Errorf("%w: svcd must be able to read and write there; data.dir names the place", err)
	}
	parts, err := newCore(coreOptions{
		store: a.store, gate: a.gate, shuts: a.openGates(alone), replaced: a.replaced, left: a.restoreLeft, changed: a.snapshotsChanged, now: cfg.Now, env: cfg.Env, log: cfg.Logger, registerer: registerer, logs: a.logs, alone: alone, version: cfg.Version, fault: cfg.SnapshotFault,
		tracer: a.tracer, engine: scripts.New(a.engine, a.tracer), files: a.files, search: a.search, modules: newModules(cfg.Now, cfg.privateFiles(), a.groups.Group).host,
	})
	if err != nil {
		return err
	}
	a.runs, a.taken, a.snapshots = parts.runs, parts.taken, parts.snapshots
	a.snapshots.Inherit(a.abandoned)
	registry, board := a.registry, status.NewBoard(cfg.Now)
	a.board = board
	if err := newServiceMetrics(registerer, &serviceMetrics{version: cfg.Version, store: storeKind(alone), registry: registry, board: board, engine: a.engine}); err != nil {
		return err
	}
	a.sweeper = &sweeper{app: a, records: parts.records, projects: registry, after: cfg.SweepAfter, leases: map[string]*lease.Leases{}}
	if a.sweeper.after == 0 {
		a.sweeper.after = DefaultSweepAfter
	}
	instance := holder()
	if alone {
		instance = ""
	}
	kept, err := due.New(due.Options{Store: a.store, Runs: parts.snapshots, Snapshots: parts.taken, Now: cfg.Now, Registerer: registerer, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	a.control, err = controllers.New(controllers.Deps{
		Store: a.store, Instance: instance, Projects: models.Projects, Generations: models.Generations, Events: models.Events, Registry: registry, Board: board, Jobs: parts.jobs, Media: a.sweeper, Searches: a.search, Restores: parts.taken, Snapshots: kept,
		Manager: a.manager, Watcher: dirwatch.New(dirwatch.Options{Logger: cfg.Logger}), Watch: cfg.Watch,
		ProjectsDir: cfg.ProjectsDir, Env: cfg.Env, Compile: a.engine.Compile, PrivateFiles: cfg.privateFiles(), Logger: cfg.Logger, Resync: cfg.Resync, Judge: cfg.Judge, Now: cfg.Now,
	})
	if err != nil {
		return err
	}
	door, err := httpapi.New(httpapi.Config{
		Records: parts.records, Actions: parts.actions, System: models, Audit: a.logs, Registry: registry, Auth: authn,
		Control: a.control, Jobs: parts.jobs, Searches: searches.New(a.search, parts.runs), Snapshots: parts.snapshots, Keys: parts.keys, Assets: assets.New(cfg.Now, cfg.privateFiles()), Embedding: a.groups, Status: board, Ready: a.ready, Shutdown: a.shutdown, Logger: cfg.Logger, Now: cfg.Now,
		Registerer: registerer, Gatherer: servedOnly(registerer, a.registry), Tracer: a.tracer, Version: cfg.Version,
		MaxBodySize: cfg.MaxBodySize, MaxImport: cfg.MaxImport, BodyMemory: bodiesFor(memory(), cfg.MaxBodySize), AdminHosts: cfg.AdminHosts, Fronts: cfg.Fronts,
		TrustedProxies: cfg.TrustedProxies, MetricsPublic: cfg.MetricsPublic, MCP: cfg.MCP, Moment: a.gate.Moment,
	})
	if err != nil {
		return err
	}
	if a.barrier != nil { // what others replace right now is not served
		if err := a.barrier.Start(ctx); err != nil {
			return err
		}
	}
	if err := a.control.ServeRegistered(ctx); err != nil {
		return err
	}
	if err := a.listenMongo(ctx, adminToken); err != nil {
		return err
	}
	if err := a.listen(ctx, door); err != nil {
		return err
	}
	a.server.RegisterOnShutdown(door.EndStreams)
	return nil
}

// storeKind names the kind of store that is alone with this process, or shared.
func storeKind(alone bool) string {
	if alone {
		return "embedded"
	}
	return "mongodb"
}

// databases lists the database of the system models, and that of every registered project.
func databases(projects *system.Projects) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		names := []string{system.DatabaseName}
		all, err := projects.All(ctx)
		for _, p := range all {
			names = append(names, project.DatabaseName(p.Namespace))
		}
		return names, err
	}
}

// holder names this process to people who look at the leases in the store.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "svcd"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}

// Close releases what New holds, for an App that is not run.
func (a *App) Close() error {
	var err error
	if a.listener != nil {
		err = a.listener.Close()
	}
	if a.manager != nil {
		a.manager.Close()
	}
	if a.endpoint != nil {
		err = errors.Join(err, a.endpoint.Shutdown(context.Background())) //nolint:forbidigo // it serves nobody: there is nothing to wait for
	}
	if a.snapshots != nil {
		a.snapshots.Close()
	}
	if a.search != nil {
		err = errors.Join(err, a.search.Close(context.Background())) //nolint:forbidigo // nothing is left of what New was given
	}
	if a.engine != nil {
		err = errors.Join(err, a.engine.Close())
	}
	return errors.Join(err, a.groups.Close(), a.closeFiles(), a.store.Close(), a.closeTracer(context.Background())) //nolint:forbidigo // nothing is left of what New was given
}
