package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/tracing"
)

const (
	flushEvery  = time.Second     // at most once in this time a run's record is written
	defaultBeat = 4 * time.Second // at least once in this time it is
	silentBeats = 3               // for so long its record may stay as it is, then the run is lost
	looksABeat  = 5               // how often others look meanwhile, so that it is lost soon after that

	pollEvery  = 500 * time.Millisecond // how often the followers of another instance's run look at its record
	pruneEvery = time.Hour              // how often old runs are looked for

	keepRuns = 100                 // of one action or job
	keepAge  = 30 * 24 * time.Hour // of any

	defaultParallel = 4   // runs of one kind in one database at once
	maxWaiting      = 100 // runs of one kind in one database that wait for that
	leastPlaces     = 8   // runs of one kind in all databases
	corePlaces      = 4   // the same for each core, if that is more

	stopTime = 5 * time.Second // that runs have to end in once they are told to, beside the time to write that
)

// Options are what Runs need from outside.
type Options struct {
	Store      store.Store           // required
	Now        func() time.Time      // required: what is recorded as time
	Registerer prometheus.Registerer // required
	Logger     *slog.Logger          // nil: nothing is logged
	Tracer     *tracing.Tracer       // nil: nothing is traced
	Instance   string                // names this process to people; "": "svcd"
	// Alone says that no other process can work on the store. What another process has left behind is then lost at once.
	Alone bool
	// Beat is how often a run shows at least that it is alive; 0: 4 s. After three times that it counts as lost. It is the
	// same for all instances.
	Beat     time.Duration
	Parallel int // runs of one kind in one project that go at once, the others wait; 0: 4
	Places   int // runs of one kind in all projects that go at once; 0: 4 for each core, at least 8
}

// Runs are the runs of all databases of a store. They are safe for concurrent use.
type Runs struct {
	opts    Options
	log     *slog.Logger
	now     func() time.Time // as dates in the store are
	metrics *metrics
	work    sync.WaitGroup

	heirWork sync.WaitGroup // heirs that look at what runs have left

	mu       sync.Mutex
	closed   bool
	live     map[liveKey]*Live
	places   map[Kind]*pool
	prepared map[string]bool // databases whose indexes are there
	seen     map[liveKey]sighting
	left     map[liveKey]time.Time // since when a silent run is waited for, as it has left something
	asked    map[liveKey]*asking
	heirs    map[Kind]Heir
	pruned   map[string]time.Time // by database, by the monotonic clock
	onLost   func(ctx context.Context, database string, run *Run)
}

// OnLost has fn called for each run that this instance has given up, once its record says so: one instance does for each. It
// is to be set before the first Patrol.
func (rs *Runs) OnLost(fn func(ctx context.Context, database string, run *Run)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.onLost = fn
}

type liveKey struct{ database, id string }

// sighting is a state of another instance's run, and since when it has been like that for us.
type sighting struct {
	beat  int64
	token string
	since time.Time
}

// New makes the runs. Close ends them.
func New(opts Options) (*Runs, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Instance == "" {
		opts.Instance = "svcd"
	}
	if opts.Beat <= 0 {
		opts.Beat = defaultBeat
	}
	if opts.Parallel <= 0 {
		opts.Parallel = defaultParallel
	}
	if opts.Places <= 0 {
		opts.Places = max(leastPlaces, corePlaces*runtime.NumCPU())
	}
	m, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, err
	}
	return &Runs{
		opts: opts, log: opts.Logger, metrics: m,
		now:  func() time.Time { return opts.Now().UTC().Truncate(time.Millisecond) },
		live: map[liveKey]*Live{}, places: map[Kind]*pool{}, prepared: map[string]bool{},
		seen: map[liveKey]sighting{}, left: map[liveKey]time.Time{}, asked: map[liveKey]*asking{}, heirs: map[Kind]Heir{}, pruned: map[string]time.Time{},
	}, nil
}

// Get reads a run, or gives ErrNotFound.
func (rs *Runs) Get(ctx context.Context, database string, ref Ref) (*Run, error) {
	if l := rs.here(database, ref); l != nil && !l.ending() {
		return l.snapshot(), nil
	}
	return rs.read(ctx, database, ref)
}

// here gives a run that this instance does, or nil.
func (rs *Runs) here(database string, ref Ref) *Live {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.live[liveKey{database, ref.ID}]
	if l == nil || l.run.Kind != ref.Kind || l.run.Name != ref.Name { // these never change
		return nil
	}
	return l
}

// Cancel asks a run to end. Who wants to know when it has, follows it.
func (rs *Runs) Cancel(ctx context.Context, database string, ref Ref) error {
	if l := rs.here(database, ref); l != nil {
		return l.cancel()
	}
	run, err := rs.read(ctx, database, ref)
	switch {
	case err != nil:
		return err
	case !run.Status.Active():
		return ErrEnded
	case !run.Cancellable:
		return ErrNotCancellable
	}
	err = write(ctx, rs.runsOf(database), store.Op{Kind: store.Update, ID: stringID(ref.ID), If: active(), Update: set(bson.D{{Key: "cancel", Value: true}})})
	if errors.Is(err, store.ErrStale) {
		return ErrEnded
	}
	return err
}

// Close starts no more runs, waits for those that there are until ctx ends, and then has them end.
func (rs *Runs) Close(ctx context.Context) {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	done := make(chan struct{})
	go func() { rs.work.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	rs.mu.Lock()
	left := len(rs.live)
	for _, l := range rs.live {
		l.stop(ErrStopping)
	}
	rs.mu.Unlock()
	rs.log.WarnContext(ctx, "runs were cut off at the end of the grace time", "count", left)
	timer := time.NewTimer(stopTime + rs.silence())
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		rs.log.ErrorContext(ctx, "runs don't end; they are left alone")
	}
}

func (rs *Runs) closing() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.closed
}

// prepare makes the indexes of a database's runs, once for each process.
func (rs *Runs) prepare(ctx context.Context, database string) error {
	rs.mu.Lock()
	ready := rs.prepared[database]
	rs.mu.Unlock()
	if ready {
		return nil
	}
	for _, index := range indexes() {
		err := rs.runsOf(database).CreateIndex(ctx, index)
		if errors.Is(err, store.ErrFull) {
			return nil // a first run that may use the reserve goes without, another one is refused when it is recorded; a later one makes them
		}
		if err != nil {
			return fmt.Errorf("index of runs: %w", err)
		}
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.prepared[database] = true
	return nil
}

// silence is for how long a run may not be heard of.
func (rs *Runs) silence() time.Duration { return silentBeats * rs.opts.Beat }

func (rs *Runs) runsOf(database string) store.Collection {
	return rs.opts.Store.Database(database).Collection(collectionName)
}

func isLost(err error) bool {
	return errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound)
}
