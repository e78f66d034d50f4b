package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
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
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/wire"
	"github.com/svcctl/svc/pkg/system"
)

// embeddedScheme begins the store URI of the embedded store; the rest is its directory.
const embeddedScheme = "embedded:"

// Config is what the service is told by its settings. docs/settings.md describes each one. New checks it.
type Config struct {
	Host           string // listen address
	Port           int    // 0: any free one, for tests
	MaxBodySize    int64
	MaxImport      int64 // bytes of an archive of a snapshot, unpacked; 0: archive.DefaultLimits
	AdminHosts     []string
	Fronts         map[string]string
	TrustedProxies []netip.Prefix
	MetricsPublic  bool

	AdminToken string // "": generated, in <DataDir>/admin.token
	// AdminUser and AdminPassword are of the user that is made when there is none; "": none is made.
	AdminUser, AdminPassword string

	JWTSecret []byte // empty: generated, in the store
	JWTTTL    time.Duration

	PATDefaultTTL, PATMaxTTL time.Duration // 0: no end

	StoreURI string // "": embedded:<DataDir>/store
	// MongoListen is the address of the MongoDB endpoint of the embedded store; "": there is none. CheckMongoListen checks it.
	MongoListen   string
	MongoReadOnly bool          // it refuses writes
	MongoMaxTime  time.Duration // of a read by it that does not say; 0: as long as it takes
	CacheSize     int64         // bytes of the embedded store's data that are kept in memory; 0: by the memory there is
	SweepAfter    time.Duration // how old a file that no record names is when it is swept; 0: DefaultSweepAfter
	PictureCache  int64         // bytes on the disk of pictures that filters made; 0: DefaultPictureCache
	PictureMemory int64         // bytes that filters of pictures take at once; 0: DefaultPictureMemory
	DataDir       string
	ProjectsDir   string
	Watch         controllers.WatchMode
	Resync        time.Duration // how often all registrations are looked at again; 0: controllers.DefaultResync
	ShutdownDelay time.Duration // how long requests are still taken once it is to stop and is not ready any more
	ShutdownGrace time.Duration // how long those in flight may take then
	// AuditRetention is how long entries about the service itself are kept in the audit log; 0: for ever.
	AuditRetention time.Duration

	// SmallVectors has searches keep their vectors in memory by a byte for each dimension.
	SmallVectors bool
	// Embedding is what makes vectors of texts; none by default.
	Embedding embedding.Config

	Version string
	Logger  *slog.Logger
	Now     func() time.Time
	Env     schema.Env // environment variables that configs may refer to
	// SecretFiles are the files that settings were read from and configs may not read.
	SecretFiles []string
	// WorkerCommand is the command line of a process that runs scripts apart; nil: all run in this one.
	WorkerCommand []string
	Judge         plan.Judge      // asks golden queries for plans; nil: they count as if they failed
	OnFatal       func(err error) // the embedded store can't go on; the process should log and exit

	// PasswordCost is that of password hashes, for tests, which make many. No setting has it: zero is auth.DefaultParams.
	PasswordCost auth.Params
	// SnapshotFault is asked before each operation on the files of snapshots, as folder.Fault, for tests. No setting has it.
	SnapshotFault func(op, name string) error
	// HashCommand starts a process that runs auth.ServeHash, for each password hash. Empty: hashes are made in this one.
	HashCommand []string
}

// CheckAdminHosts says what is wrong with AdminHosts, for whoever set it.
func (cfg Config) CheckAdminHosts() error { return httpapi.CheckHosts(cfg.AdminHosts, nil) }

// CheckFronts says what is wrong with Fronts, for whoever set it.
func (cfg Config) CheckFronts() error { return httpapi.CheckHosts(cfg.AdminHosts, cfg.Fronts) }

// App is the service, put together. Run it once.
type App struct {
	cfg      Config
	store    store.Store
	gate     *gate.Gate       // before store, for whoever uses records
	barrier  *barrier.Barrier // of all instances that share the store; nil: there is one
	registry *project.Registry
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
	a := &App{cfg: cfg, store: st, gate: gate.New(st), registry: project.NewRegistry(), stop: make(chan struct{}, 1)}
	if err := a.wire(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// openStore opens the store that the settings name. how says whether an embedded one is only to be read, or has to be
// there.
func openStore(ctx context.Context, cfg Config, how embedded.Options) (store.Store, error) {
	if dir, ok := cfg.embeddedDir(); ok {
		how.Dir, how.Logger, how.OnFatal = dir, cfg.Logger, cfg.OnFatal
		if how.CacheSize = cfg.CacheSize; how.CacheSize == 0 {
			how.CacheSize = cacheFor(memory())
		}
		how.MemTableSize = memTableFor(how.CacheSize)
		st, err := embedded.Open(ctx, how)
		if e := errs.From(err); e != nil && e.Code == "store_open" {
			return nil, fmt.Errorf("%w: svcd must be able to read and write there; data.dir and store.uri name the place", err)
		} else if err != nil {
			return nil, err
		}
		return st, nil
	}
	st, err := mongo.Open(ctx, mongo.Options{URI: cfg.StoreURI, Logger: cfg.Logger})
	if e := errs.From(err); e != nil && e.Code == "store_unavailable" {
		return nil, fmt.Errorf("MongoDB can't be reached: check that it runs, that its replica set was initiated (rs.initiate()), and the setting store.uri with its user and password: %w", err)
	} else if err != nil {
		return nil, err
	}
	return st, nil
}

// embeddedDir gives the directory of the embedded store; ok is false when the store is another one.
func (cfg Config) embeddedDir() (dir string, ok bool) {
	if cfg.StoreURI == "" {
		return filepath.Join(cfg.DataDir, "store"), true
	}
	return strings.CutPrefix(cfg.StoreURI, embeddedScheme)
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

// newHasher makes what hashes passwords. Logins leave cores for the rest.
func (cfg *Config) newHasher() *auth.Hasher {
	cost, parallel := cfg.PasswordCost, max(1, runtime.GOMAXPROCS(0)/2)
	if cost == (auth.Params{}) {
		cost = auth.DefaultParams()
	}
	if len(cfg.HashCommand) == 0 {
		return auth.NewHasher(cost, parallel)
	}
	return auth.NewProcessHasher(cost, parallel, cfg.HashCommand, cfg.Logger)
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
	a.databases = databases(models.Projects)
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
	a.manager, err = controller.New(controller.Options{Logger: cfg.Logger, Registerer: registerer})
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
		store: a.store, gate: a.gate, shuts: a.openGates(alone), replaced: a.replaced, now: cfg.Now, env: cfg.Env, log: cfg.Logger, registerer: registerer, logs: a.logs, alone: alone, version: cfg.Version, fault: cfg.SnapshotFault,
		engine: a.engine, files: a.files, search: a.search, modules: newModules(cfg.Now, cfg.privateFiles(), a.groups.Group).host,
	})
	if err != nil {
		return err
	}
	a.runs, a.taken, a.snapshots = parts.runs, parts.taken, parts.snapshots
	registry, board := a.registry, status.NewBoard(cfg.Now)
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
		Registerer: registerer, Gatherer: registerer, Version: cfg.Version,
		MaxBodySize: cfg.MaxBodySize, MaxImport: cfg.MaxImport, BodyMemory: bodiesFor(memory(), cfg.MaxBodySize), AdminHosts: cfg.AdminHosts, Fronts: cfg.Fronts,
		TrustedProxies: cfg.TrustedProxies, MetricsPublic: cfg.MetricsPublic, Moment: a.gate.Moment,
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

// Limits of a connection (rows S55 and R14 of the fault list in docs/security.md). Bodies have limits of their own in
// pkg/httpapi, which also gives large answers more time.
const (
	readHeaderTimeout = 5 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 512 << 10 // httpapi refuses less than that in its own words
)

func (a *App) listen(ctx context.Context, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(a.cfg.Host, strconv.Itoa(a.cfg.Port)))
	if err != nil {
		hint := "check api.host and api.port"
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			hint = "stop the program that uses the port, or set another api.port"
		case errors.Is(err, syscall.EACCES):
			hint = "set an api.port above 1023, or allow svcd to use lower ones"
		}
		return fmt.Errorf("%w: %s", err, hint)
	}
	a.listener = listener
	a.server = &http.Server{
		Handler:           a.parting(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.cfg.Logger.Handler(), slog.LevelDebug), // broken connections
	}
	return nil
}

// parting has clients go to another instance with their next request once this one is stopping.
func (a *App) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Addr is the address that the service listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// closeTime is how long the search indexes may take to be written at the end. What is not is read from the feed again.
const closeTime = 10 * time.Second

// readyTime is how long the store may take to say that it is there.
const readyTime = 1500 * time.Millisecond

// ready tells what keeps this instance from taking traffic.
func (a *App) ready(ctx context.Context) []string {
	if a.stopping.Load() {
		return []string{"the service is stopping"}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := a.store.Ping(ctx)
	behind := 0
	if _, alone := a.cfg.embeddedDir(); err == nil && !alone {
		behind, err = a.control.Behind(ctx)
	}
	switch {
	case err == nil && behind > 0: // which ones is not everybody's affair
		return []string{fmt.Sprintf("%d of the projects are behind: other instances serve a newer generation; "+
			"their condition OutOfDate says why (svcctl project status)", behind)}
	case err == nil:
		return nil
	case errs.From(err).Kind == errs.Full:
		return []string{"the disk of the store is full or nearly so: writes are refused, reads go on"}
	default:
		return []string{"the store can't be reached"}
	}
}

// shutdown has Run end.
func (a *App) shutdown() {
	select {
	case a.stop <- struct{}{}:
	default: // somebody else has asked
	}
}

// Run serves until ctx ends or a caller of the API has it stop, then finishes what is in flight within the grace time and releases everything.
func (a *App) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	tidy, stopTidying := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTidying()
	managed, served, tidied := make(chan error, 1), make(chan error, 2), sync.WaitGroup{}
	tidied.Go(func() { a.logs.Run(tidy, a.databases) })
	tidied.Go(func() { a.runs.Run(tidy, a.databases) })
	tidied.Go(func() { a.sweeper.run(work) })
	tidied.Go(func() { a.taken.Run(tidy, a.registry.List) })
	if a.barrier != nil {
		tidied.Go(func() { a.barrier.Run(tidy) })
	}
	go func() { managed <- a.manager.Start(work) }()
	go func() { served <- a.server.Serve(a.listener) }()
	mongoServed := a.serveMongo(served)

	var err error
	select {
	case <-ctx.Done():
	case <-a.stop:
	case err = <-served: // the listener broke
	}
	a.stopping.Store(true)
	if err == nil && a.cfg.ShutdownDelay > 0 {
		a.cfg.Logger.InfoContext(ctx, "stopping, requests are still taken", "for", a.cfg.ShutdownDelay.String())
		select {
		case <-time.After(a.cfg.ShutdownDelay):
		case err = <-served:
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.ShutdownGrace)
	defer cancel()
	if shutdownErr := a.server.Shutdown(grace); shutdownErr != nil {
		a.cfg.Logger.WarnContext(ctx, "requests were cut off at the end of the grace time", "error", shutdownErr)
		err = errors.Join(err, a.server.Close())
	}
	err = errors.Join(err, a.stopMongo(grace, mongoServed))
	a.auth.Close(grace)
	stopWork() // no job is started any more
	err = errors.Join(err, <-managed)
	a.runs.Close(grace)
	a.snapshots.Close()
	stopTidying()
	tidied.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime) // the grace is for requests, and may be over
	defer cancel()
	return errors.Join(err, a.search.Close(closing), a.engine.Close(), a.groups.Close(), a.closeFiles(), a.store.Close())
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
	return errors.Join(err, a.groups.Close(), a.closeFiles(), a.store.Close())
}
