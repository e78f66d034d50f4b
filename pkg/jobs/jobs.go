package jobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// Runner runs a job's script.
type Runner interface {
	// RunJob returns what the script gave, soon after ctx has ended if that comes first. What the script writes to the
	// project's database goes through transactions that call run.Fence first. Its log lines go to run.Log, its progress
	// to run.Progress. The error is one that may be shown to whoever may read the project; where the script failed is
	// told by run.Log.
	RunJob(ctx context.Context, call Call, run *operation.Live) (result any, err error)
}

// Call is a run of a job.
type Call struct {
	Project *project.Project
	Job     *project.Job
	Trigger operation.Trigger
	Slot    time.Time // of Schedule: the time that it was due
}

// Options are what Jobs need from outside. All members but Logger are required.
type Options struct {
	Store      store.Store
	Runs       *operation.Runs
	Runner     Runner
	Now        func() time.Time
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: nothing is logged
}

// Jobs are the jobs of all projects. They are safe for concurrent use.
type Jobs struct {
	opts    Options
	log     *slog.Logger
	now     func() time.Time // as dates in the store are
	metrics *metrics

	mu       sync.Mutex
	followed map[jobKey]string // the schedules that this instance has begun with
	onFailed func(projectID, job, why string)
}

// OnFailed has fn called for each run of a job that fails here, with what its error says. It is to be set before the first run.
func (j *Jobs) OnFailed(fn func(projectID, job, why string)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.onFailed = fn
}

// OnLost has fn called for each run of a project, of whatever kind, that this instance has given up, as that which did it is gone. The project may not
// be served here, and is told by its namespace. It is to be set before runs are looked after.
func (j *Jobs) OnLost(fn func(ctx context.Context, namespace string, run *operation.Run)) {
	j.opts.Runs.OnLost(func(ctx context.Context, database string, run *operation.Run) {
		namespace, ok := strings.CutPrefix(database, project.DatabaseName(""))
		if ok && run.Error != nil {
			fn(ctx, namespace, run)
		}
	})
}

// ended is called with each run of a job of a project that has ended here.
func (j *Jobs) ended(p *project.Project, run *operation.Run) {
	j.metrics.ended(p.Namespace, run)
	j.mu.Lock()
	tell := j.onFailed
	j.mu.Unlock()
	if tell != nil && run.Status == operation.Failed && run.Error != nil {
		tell(p.ID, run.Name, run.Error.Message)
	}
}

type jobKey struct{ namespace, job string }

// New makes the jobs.
func New(opts Options) (*Jobs, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, err
	}
	return &Jobs{
		opts: opts, log: opts.Logger, metrics: m, followed: map[jobKey]string{},
		now: func() time.Time { return opts.Now().UTC().Truncate(time.Millisecond) },
	}, nil
}

// Errors, for errors.Is.
var (
	ErrNotFound = errs.New(errs.NotFound, "job_not_found", "job not found")
	ErrRunning  = errs.NewBusy("job_running", "a run of this job is active: two never overlap; wait for it or cancel it")

	errDone = errors.New("the slot is done")
)

// State is how a job stands.
type State struct {
	Job         *project.Job
	Suspended   bool
	SuspendedBy operation.Actor // zero unless it is suspended
	SuspendedAt time.Time
	Next        time.Time // zero: it has no schedule, or is suspended
	// What became of slots so far: see the fields of the same names of the job's state.
	Claimed, Skipped, Missed int64
	Last                     *operation.Run // without events; nil: there is none
}

// List tells how the jobs of a project stand, by name.
func (j *Jobs) List(ctx context.Context, p *project.Project) ([]State, error) {
	states, err := load(ctx, j.database(p))
	if err != nil {
		return nil, err
	}
	list := make([]State, 0, len(p.Jobs))
	for _, job := range p.Jobs {
		s, err := j.describe(ctx, p, job, states[job.Name])
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b State) int { return strings.Compare(a.Job.Name, b.Job.Name) })
	return list, nil
}

// Get tells how a job stands.
func (j *Jobs) Get(ctx context.Context, p *project.Project, name string) (State, error) {
	job, err := find(p, name)
	if err != nil {
		return State{}, err
	}
	s, err := read(ctx, j.database(p).Collection(collectionName), name)
	if err != nil {
		return State{}, err
	}
	return j.describe(ctx, p, job, s)
}

func (j *Jobs) describe(ctx context.Context, p *project.Project, job *project.Job, s state) (State, error) {
	out := State{
		Job: job, Suspended: s.Suspended, SuspendedBy: s.SuspendedBy, SuspendedAt: s.SuspendedAt,
		Claimed: s.Claimed, Skipped: s.Skipped, Missed: s.Missed,
	}
	if job.Schedule != nil && !s.Suspended {
		out.Next = s.Done.Next(job.Schedule, j.now())
	}
	page, err := j.opts.Runs.List(ctx, j.databaseName(p), operation.Query{Kind: operation.Job, Name: job.Name, Limit: 1})
	if err == nil && len(page.Items) > 0 {
		out.Last = page.Items[0]
	}
	return out, err
}

// Next gives the next n slots of a job. A suspended job has those that it would have.
func (j *Jobs) Next(ctx context.Context, p *project.Project, name string, n int) ([]time.Time, error) {
	job, err := find(p, name)
	if err != nil || job.Schedule == nil {
		return nil, err
	}
	s, err := read(ctx, j.database(p).Collection(collectionName), name)
	if err != nil {
		return nil, err
	}
	var times []time.Time
	for at := j.now(); len(times) < n; {
		if at = s.Done.Next(job.Schedule, at); at.IsZero() {
			break
		}
		times = append(times, at)
	}
	return times, nil
}

// History gives the runs of a job, newest first.
func (j *Jobs) History(ctx context.Context, p *project.Project, name string, query operation.Query) (*operation.Page, error) {
	if _, err := find(p, name); err != nil {
		return nil, err
	}
	query.Kind, query.Name = operation.Job, name
	return j.opts.Runs.List(ctx, j.databaseName(p), query)
}

// Run gives a run of a job with its events.
func (j *Jobs) Run(ctx context.Context, p *project.Project, name, id string) (*operation.Run, error) {
	if _, err := find(p, name); err != nil {
		return nil, err
	}
	return j.opts.Runs.Get(ctx, j.databaseName(p), operation.Ref{Kind: operation.Job, Name: name, ID: id})
}

// Follow is operation.Runs.Follow for a run of a job.
func (j *Jobs) Follow(ctx context.Context, p *project.Project, name, id string, after int64, fn func(operation.Event) error) error {
	if _, err := find(p, name); err != nil {
		return err
	}
	return j.opts.Runs.Follow(ctx, j.databaseName(p), operation.Ref{Kind: operation.Job, Name: name, ID: id}, after, fn)
}

// Cancel asks a run of a job to end.
func (j *Jobs) Cancel(ctx context.Context, p *project.Project, name, id string) error {
	if _, err := find(p, name); err != nil {
		return err
	}
	return j.opts.Runs.Cancel(ctx, j.databaseName(p), operation.Ref{Kind: operation.Job, Name: name, ID: id})
}

// Suspend keeps a job from being run by its schedule, until Resume. It can still be run by hand, and a run that is active
// goes on.
func (j *Jobs) Suspend(ctx context.Context, p *project.Project, name string, by operation.Actor) error {
	return j.change(ctx, p, name, func(s *state) bool {
		if s.Suspended {
			return false
		}
		s.Suspended, s.SuspendedBy, s.SuspendedAt = true, by, j.now()
		return true
	})
}

// Resume ends a Suspend, also that of a job which is no longer declared. The slots of the time between don't come any more.
func (j *Jobs) Resume(ctx context.Context, p *project.Project, name string) error {
	return j.change(ctx, p, name, func(s *state) bool {
		if !s.Suspended {
			return false
		}
		s.Suspended, s.SuspendedBy, s.SuspendedAt = false, operation.Actor{}, time.Time{}
		s.Done = s.Done.Through(j.now())
		return true
	})
}

// Left lists the jobs that are suspended and no longer declared: one that gets such a name begins suspended.
func (j *Jobs) Left(ctx context.Context, p *project.Project) ([]string, error) {
	states, err := load(ctx, j.database(p))
	var left []string
	for name, s := range states {
		if _, err := find(p, name); err != nil && s.Suspended {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left, err
}

// change writes a job's state if fn says so, and has fn look again when others write it at the same time. Of a job that is no longer
// declared only a suspension is left.
func (j *Jobs) change(ctx context.Context, p *project.Project, name string, fn func(s *state) bool) error {
	_, undeclared := find(p, name)
	states := j.database(p).Collection(collectionName)
	for {
		s, err := read(ctx, states, name)
		if err == nil && undeclared != nil && !s.Suspended {
			return undeclared
		}
		if err != nil || !fn(&s) {
			return err
		}
		if err = s.write(ctx, states); !errors.Is(err, store.ErrStale) {
			return err
		}
	}
}

func find(p *project.Project, name string) (*project.Job, error) {
	for _, job := range p.Jobs {
		if job.Name == name {
			return job, nil
		}
	}
	return nil, ErrNotFound
}

func (j *Jobs) databaseName(p *project.Project) string { return project.DatabaseName(p.Namespace) }

func (j *Jobs) database(p *project.Project) store.Database {
	return j.opts.Store.Database(j.databaseName(p))
}
