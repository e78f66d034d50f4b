package due

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schedule"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
)

// Runs start what is done with snapshots, as runs, and tell of them. *runs.Service does.
type Runs interface {
	Start(ctx context.Context, p *project.Project, what runs.Start) (*operation.Run, error)
	// Get gives a run of whatever kind; operation.ErrNotFound if there is none.
	Get(ctx context.Context, p *project.Project, id string) (*operation.Run, error)
	// Runs gives runs, newest first.
	Runs(ctx context.Context, p *project.Project, q operation.Query) (*operation.Page, error)
}

// Snapshots are what Due asks about the snapshots that this instance has. *snapshot.Snapshots are.
type Snapshots interface {
	List(ctx context.Context, p *project.Project) ([]snapshot.Info, error)
	Prune(ctx context.Context, p *project.Project, profile string, policy snapshot.Policy, o snapshot.PruneOptions) (*snapshot.Pruned, error)
	Sweep(ctx context.Context, p *project.Project) error
}

// Options are what Due needs from outside. All members but Logger are required.
type Options struct {
	Store      store.Store
	Runs       Runs
	Snapshots  Snapshots
	Now        func() time.Time
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: nothing is logged
}

// Due does what is due in all projects. It is safe for concurrent use.
type Due struct {
	opts    Options
	log     *slog.Logger
	now     func() time.Time // as dates in the store are
	metrics *metrics

	mu       sync.Mutex
	followed map[taskKey]string // the schedules that this instance has begun with
	swept    map[string]bool    // namespaces
	resting  map[string]bool    // namespaces for which nothing is done by itself
	onEnded  func(projectID string)
}

type taskKey struct{ namespace, task string }

// New makes it.
func New(opts Options) (*Due, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, err
	}
	return &Due{
		opts: opts, log: opts.Logger, metrics: m, followed: map[taskKey]string{}, swept: map[string]bool{}, resting: map[string]bool{},
		now: func() time.Time { return opts.Now().UTC().Truncate(time.Millisecond) },
	}, nil
}

// OnEnded has fn called when a run that Due has started here has ended. It is to be set before the first Pass.
func (d *Due) OnEnded(fn func(projectID string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onEnded = fn
}

// Standing is how a task stands.
type Standing struct {
	Kind      operation.Kind // operation.Snapshot, Verify, Drill or Prune
	Profile   string
	Running   bool
	Next      time.Time // the next slot, or the next try; zero: none
	Succeeded time.Time // zero: never yet
	// Of a run that has failed, until one succeeds:
	Code, Why string
}

// Failing says that the last run has failed. That another one went on in the project is no failure: it is waited for.
func (s *Standing) Failing() bool { return s.Why != "" && s.Code != snapshot.ErrBusy.Code }

// task is something that is done for a profile.
type task struct {
	kind     operation.Kind
	profile  *project.SnapshotProfile
	schedule schedule.Schedule // nil: of Prune
}

func (t *task) name() string { return string(t.kind) + "/" + t.profile.Name }

// tasks are those of the profiles that are enabled. Those of one lane follow each other.
func tasks(p *project.Project) (exclusive, reading []*task) {
	for _, profile := range p.Snapshots {
		if !profile.Enabled() {
			continue
		}
		if profile.Take != nil {
			exclusive = append(exclusive, &task{operation.Snapshot, profile, profile.Take})
		}
		if profile.Verify != nil {
			reading = append(reading, &task{operation.Verify, profile, profile.Verify})
		}
		if profile.Drill != nil {
			reading = append(reading, &task{operation.Drill, profile, profile.Drill})
		}
	}
	return exclusive, reading
}

func (d *Due) database(p *project.Project) store.Database {
	return d.opts.Store.Database(project.DatabaseName(p.Namespace))
}
