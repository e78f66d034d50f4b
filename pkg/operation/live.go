package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/tracing"
)

const (
	maxEvents     = 500       // that are kept of a run
	maxEventBytes = 256 << 10 // of them all
	maxMessage    = 8 << 10   // bytes of one message
	maxPhases     = 32        // that are kept of a run

	progressEvery = 250 * time.Millisecond // progress that comes faster is told of by its newest state

	// fencedTime is how long a transaction lasts at most: while it does, the record can't be renewed, nor given up.
	fencedTime = time.Minute
)

// Live is a run while this instance does it. It is safe for concurrent use.
type Live struct {
	runs     *Runs
	database string
	coll     store.Collection
	token    string // of this holding of the record
	timeout  time.Duration
	notify   func(*Run)
	place    chan struct{} // closed when the run has its place
	placed   bool          // it is closed; under Runs.mu
	began    time.Time     // by the monotonic clock

	stopOnce sync.Once
	working  atomic.Pointer[context.CancelCauseFunc] // ends the context of the work, once there is one
	stopped  chan struct{}                           // closed by stop
	cause    error                                   // why, once it is closed

	mu       sync.Mutex
	run      Run
	size     int           // bytes of the events
	pending  bool          // there is progress that no event has told of
	told     time.Time     // when the last event told of progress
	phase    time.Time     // when the present phase began, by the monotonic clock
	entered  int           // phases that events have told of at once
	dirty    bool          // the record lacks something
	renewed  time.Time     // when the record was written last, by the monotonic clock
	ended    bool          // nothing that the function says counts any more
	over     bool          // no event follows
	changed  chan struct{} // closed and made anew by each event
	spanBusy time.Time     // until when a fenced transaction may keep the record from being renewed
	failed   error         // what its work has come to, by Settle, if it has failed; the function itself may say another reason
	came     *decided      // what its work has come to, by Settle, if it is done
}

// Run tells how the run stands.
func (l *Live) Run() *Run { return l.snapshot() }

func (l *Live) snapshot() *Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	run := l.run
	run.Events, run.Phases = slices.Clone(run.Events), slices.Clone(run.Phases)
	return &run
}

// ending says whether the run has its last state, and not yet its last event. Until it has that, its record is right.
func (l *Live) ending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended && !l.over
}

// Progress says how far the run is. The newest state is what counts: not each one becomes an event, and
// none does that says what the one before did. Of the first phases, the beginning and the end do.
func (l *Live) Progress(p Progress) {
	p.Phase, p.Collection, p.Message = cut(p.Phase), cut(p.Collection), cut(p.Message)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || p == l.run.Progress && !l.pending { // or it has been told
		return
	}
	begins := p.Phase != l.run.Progress.Phase && l.entered < maxPhases
	if begins { // how far the one before came is told, too
		l.entered++
		l.tellProgress()
	}
	l.enterPhase(p)
	l.run.Progress, l.pending = p, true
	if begins || time.Since(l.told) >= progressEvery {
		l.tellProgress()
	}
}

// enterPhase notes what a phase has come to. It is called with mu held.
func (l *Live) enterPhase(p Progress) {
	if p.Phase == "" {
		return
	}
	l.clockPhase()
	phases := l.run.Phases
	if n := len(phases); n == 0 || phases[n-1].Name != p.Phase {
		if n == maxPhases {
			phases = phases[1:]
		}
		l.phase = time.Now()
		phases = append(slices.Clip(phases), Phase{Name: p.Phase})
	}
	now := &phases[len(phases)-1]
	now.Done, now.Total, now.BytesDone, now.BytesTotal = p.Done, p.Total, p.BytesDone, p.BytesTotal
	l.run.Phases = phases
}

// clockPhase notes how long the present phase has taken. It is called with mu held.
func (l *Live) clockPhase() {
	if n := len(l.run.Phases); n > 0 {
		l.run.Phases[n-1].Took = time.Since(l.phase)
	}
}

// Log adds a line to the run's log. Who sees that is up to who shows the run.
func (l *Live) Log(level slog.Level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.tellProgress()
	l.tell(EventLog, message, bson.E{Key: "level", Value: strings.ToLower(level.String())})
}

// Fence makes a transaction of the run's database one that commits only while the run is still this instance's to do: it
// fails with ErrLost once another one has given the run up, and who wants to while the transaction runs waits for its
// end. All transactions of a run write its record by this: they go one after the other.
func (l *Live) Fence(ctx context.Context, tx store.Tx) error {
	l.mu.Lock()
	l.spanBusy = time.Now().Add(fencedTime)
	l.mu.Unlock()
	err := write(ctx, tx.Collection(collectionName), l.update(nil))
	if isLost(err) {
		return ErrLost
	}
	return err
}

// update is a write of the run's record that also shows that the run is alive.
func (l *Live) update(values bson.D) store.Op {
	return store.Op{Kind: store.Update, ID: stringID(l.run.ID), If: ours(l.token), Update: beat(values)}
}

// cut bounds a message.
func cut(s string) string {
	if len(s) > maxMessage {
		return s[:maxMessage] + "…"
	}
	return s
}

// tellProgress makes an event of progress that none has told of. It is called with mu held, as what follows is.
func (l *Live) tellProgress() {
	if l.pending {
		l.pending, l.told = false, time.Now()
		l.tell(EventProgress, l.run.Progress.Message)
	}
}

// tell adds an event, and lets go of old ones.
func (l *Live) tell(kind EventKind, message string, more ...bson.E) {
	e := newEvent(&l.run, kind, time.Since(l.began), l.runs.now(), cut(message), more...)
	l.run.LastEvent = e.ID
	l.run.Events = append(l.run.Events, e)
	l.size += len(e.Data)
	for len(l.run.Events) > 1 && (len(l.run.Events) > maxEvents || l.size > maxEventBytes) {
		l.size -= len(l.run.Events[0].Data)
		l.run.Events = l.run.Events[1:]
	}
	l.dirty = true
	close(l.changed)
	l.changed = make(chan struct{})
}

// cancel asks the run to end.
func (l *Live) cancel() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return ErrEnded
	case !l.run.Cancellable:
		return ErrNotCancellable
	}
	l.run.CancelRequested, l.dirty = true, true
	l.stop(ErrCancelled)
	return nil
}

// stop has the run end. The first cause counts.
func (l *Live) stop(cause error) {
	l.stopOnce.Do(func() {
		l.cause = cause
		close(l.stopped)
		if end := l.working.Load(); end != nil { // at once: who is told that it is stopped does not see it begin anything more
			(*end)(cause)
		}
	})
}

// perform does the run, from its turn to its last word.
func (l *Live) perform(ctx context.Context, do Func) {
	var keeper sync.WaitGroup
	kept, done := context.WithCancel(ctx)
	keeper.Go(func() { l.keep(kept) })
	var outcome Outcome
	err := l.turn()
	if err == nil {
		working, span := l.traced(ctx)
		outcome, err = l.do(working, do)
		span.End(err)
	}
	done()
	keeper.Wait()
	l.finish(ctx, outcome, err)
}

// traced begins the span of the work itself: what keeps the record is none of it.
func (l *Live) traced(ctx context.Context) (context.Context, tracing.Span) {
	t := l.runs.opts.Tracer
	if t == nil {
		return ctx, tracing.Span{}
	}
	kind := string(l.run.Kind) // neither this nor the name ever changes
	return t.Background(ctx, "run "+kind, tracing.Kind(kind), tracing.Name(l.run.Name), tracing.Database(l.database))
}

// turn waits for the run's turn.
func (l *Live) turn() error {
	select {
	case <-l.stopped:
		return l.cause
	case <-l.place:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.Status == Queued {
		l.run.Status, l.run.StartedAt = Running, l.runs.now()
		l.tell(EventProgress, "its turn has come")
	}
	return nil
}

// do runs the function, with a context that ends as Func says.
func (l *Live) do(ctx context.Context, do Func) (outcome Outcome, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	l.working.Store(&end)
	select {
	case <-l.stopped: // before that
		end(l.cause)
	default:
	}
	if l.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, l.timeout, ErrTimeout)
		defer done()
	}
	defer func() {
		if p := recover(); p != nil {
			l.runs.metrics.panics.WithLabelValues(string(l.run.Kind)).Inc()
			l.runs.log.ErrorContext(ctx, "panic in a run", "kind", l.run.Kind, "name", l.run.Name, "run", l.run.ID, "panic", p, "stack", string(debug.Stack()))
			outcome, err = Outcome{}, errs.Wrap(fmt.Errorf("panic: %v", p), "run")
		}
	}()
	outcome, err = do(ctx, l)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(cause, err) // whatever the function made of the end of its context
	}
	return outcome, err
}
