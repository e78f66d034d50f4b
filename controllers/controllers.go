package controllers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/due"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
	"github.com/svcctl/svc/pkg/system"
)

// WatchMode says what a change of a project's files does (setting projects.watch).
type WatchMode string

// The watch modes.
const (
	WatchReload WatchMode = "reload" // valid changes are served at once
	WatchNotify WatchMode = "notify" // the condition OutOfDate tells of them; a reload call serves them
	WatchOff    WatchMode = "off"    // files are read at start and on reload calls only
)

// Names of the controllers, for Manager calls.
const (
	projectController = "project"
	indexController   = "index"
	jobController     = "job"
	searchController  = "search"
	snapController    = "snapshot"
	keepController    = "retention"
	eventController   = "event"
)

// DefaultResync is how often every registration is looked at again, to repair what an event missed.
const DefaultResync = time.Minute

// indexResyncs is how many times longer the time between two looks at a project's indexes is.
const indexResyncs = 5

// Deps is what the reconcilers work with. All members are required but those that name a default.
type Deps struct {
	Store       store.Store
	Instance    string // names this process in leases; "": no other one can work on the store
	Projects    *system.Projects
	Generations *system.Generations
	Events      *system.Events // nil: none are told
	Registry    *project.Registry
	Jobs        *jobs.Jobs
	Media       Media // nil: there are no files
	Searches    Searches
	Restores    Restores // nil: there are none
	Snapshots   *due.Due
	Board       *status.Board
	Manager     *controller.Manager
	Watcher     *dirwatch.Watcher
	Watch       WatchMode
	ProjectsDir string     // every config file is inside it
	Env         schema.Env // environment variables that configs may refer to
	Compile     project.Compile
	// PrivateFiles hold secrets of the service, which configs may not read; it may be empty.
	PrivateFiles []string
	Logger       *slog.Logger
	Resync       time.Duration // 0: DefaultResync
	// PlanTime is how long a plan looks at records; 0: plan.DefaultBox. It is for tests and no setting: a client waits for the plan
	// meanwhile, and more time would find nothing worse, since what there was no time for is taken for the worst already.
	PlanTime time.Duration
	// FoundingFault is asked before each operation on folders that restores make, as folder.Fault, for tests; nil: none fails.
	FoundingFault folder.Fault

	Judge plan.Judge // asks golden queries for plans; nil: they count as if they failed
	Now   func() time.Time

	events *recorder // nil: none are told
}

// Media tells of the files of a project's records.
type Media interface {
	// Orphans calls found for each file that no record names, until that fails, with the folder of its collection
	// (project.Uploads.Dir) and its record. It writes nothing.
	Orphans(ctx context.Context, p *project.Project, found func(dir, record string, bytes int64) error) error
}

// Restores are those of snapshots.
type Restores interface {
	// Recover ends what a crash has left of one, before the project is served.
	Recover(ctx context.Context, p *project.Project) error
	// EndFounding ends what a crash has left of one that was making a project: by f it is kept, or nothing stays of it. snapshot.ErrBusy
	// says that it goes on.
	EndFounding(ctx context.Context, p *project.Project, f snapshot.Founder) error
}

// projectWorkers is how many projects are loaded at once. Who has few slow scripts does not wait for who has many: what
// takes long is compiled by other processes, for which projects take turns.
const projectWorkers = 8

// New adds every reconciler to the manager and gives the calls that doors make. Adding one is a file and a line here.
func New(d Deps) (*Control, error) {
	if d.Resync <= 0 {
		d.Resync = DefaultResync
	}
	if d.Events != nil {
		d.events = &recorder{Deps: d, pending: map[string][]system.Note{}, states: map[string]map[string]system.Note{}, written: map[string]time.Time{}}
		if err := d.Manager.Add(controller.Controller{Name: eventController, Reconciler: d.events, Workers: 2}); err != nil {
			return nil, err
		}
		d.Jobs.OnFailed(d.events.tellFailed)
		d.Jobs.OnLost(d.events.tellLost)
	}
	projects := &projectReconciler{
		Deps: d, requested: map[string]asked{}, seen: map[string]string{}, expected: map[string][]*step{}, snapshotDirs: map[string]string{},
		loader: &project.Loader{Env: d.Env, Private: d.PrivateFiles, Scripts: project.NewScripts(d.Compile)},
	}
	indexes := &indexReconciler{Deps: d, refused: map[string]*refusals{}, requests: map[string]request{}, runs: map[string]bool{}, leases: map[string]*lease.Leases{}}
	due := &jobReconciler{Deps: d, namespaces: map[string]string{}}
	searches := &searchReconciler{Deps: d, namespaces: map[string]string{}}
	d.Snapshots.OnEnded(d.snapshotsChanged)
	snapshots := &snapshotReconciler{Deps: d, namespaces: map[string]string{}}
	for _, c := range []controller.Controller{
		{
			Name: projectController, Reconciler: projects, Workers: projectWorkers,
			Sources: []controller.Source{controller.SourceFunc(d.watch), controller.SourceFunc(d.follow)}, List: d.registered, Resync: d.Resync,
		},
		{Name: indexController, Reconciler: indexes, Workers: 2, List: d.served, Resync: indexResyncs * d.Resync},
		{Name: jobController, Reconciler: due, Workers: 2, List: d.served, Resync: d.Resync},
		{Name: searchController, Reconciler: searches, Workers: 2, List: d.served, Resync: d.Resync},
		{Name: snapController, Reconciler: snapshots, Workers: 2, List: d.served, Resync: d.Resync},
		{Name: keepController, Reconciler: &retentionReconciler{d}, Workers: 2, List: d.served, Resync: d.Resync},
	} {
		if err := d.Manager.Add(c); err != nil {
			return nil, err
		}
	}
	return &Control{
		Deps: d, projects: projects, indexes: indexes,
		planning: make(chan struct{}, plansAtOnce), drifting: make(chan struct{}, plansAtOnce),
	}, nil
}

// snapshotsChanged has the snapshots of a project be looked at.
func (d Deps) snapshotsChanged(id string) {
	_ = errors.Join(d.Manager.Trigger(snapController, id), d.Manager.Trigger(keepController, id)) // they are there: New adds both
}

// watch is the source of changed project directories.
func (d Deps) watch(ctx context.Context, enqueue func(key string)) error {
	if d.Watch == WatchOff {
		return nil
	}
	return d.Watcher.Start(ctx, enqueue)
}

// follow is the source of registrations that were written, and of projects that got another generation, by whichever instance.
func (d Deps) follow(ctx context.Context, enqueue func(key string)) error {
	return d.Projects.Watch(ctx, enqueue, func() error { // what came before the feed
		ids, err := d.registered(ctx)
		for _, id := range ids {
			enqueue(id)
		}
		return err
	})
}

// registered lists the ids of all registrations, and of what is served without one any more.
func (d Deps) registered(ctx context.Context) ([]string, error) {
	all, err := d.Projects.All(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(all))
	ids := make([]string, 0, len(all))
	for _, p := range all {
		ids = append(ids, p.ID.Hex())
		seen[p.ID.Hex()] = true
	}
	for _, id := range d.Board.Keys() {
		if !seen[id] {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// served lists the ids of the projects that are served.
func (d Deps) served(context.Context) ([]string, error) {
	var ids []string
	for _, p := range d.Registry.List() {
		ids = append(ids, p.ID)
	}
	return ids, nil
}
