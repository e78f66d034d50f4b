package script

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/dop251/goja"
)

// grace is how long a run that was told to stop may take for it.
const grace = 250 * time.Millisecond

// Options of an Engine.
type Options struct {
	Now           func() time.Time // default time.Now; what scripts see as the time
	Log           *slog.Logger     // default drops
	Metrics       Metrics          // default counts nothing
	Parallel      int              // scripts that compute at once; 0: one less than there are cores, at least 1
	WorkerCommand []string         // the command line of a worker process, which calls ServeWorker; nil: Call.Isolate runs in process
}

// Metrics is told what happens to runs. Methods may be called from several goroutines at once.
type Metrics interface {
	Ran(project, program string, took time.Duration, outcome string) // outcome: ok, thrown, or a Reason
	Abandoned(project string)                                        // a run that did not stop in time and was left behind
}

// Engine runs programs. There is one for the process.
type Engine struct {
	now     func() time.Time
	log     *slog.Logger
	metrics Metrics
	modules []module
	glue    []*goja.Program // of modules, in their order

	asyncSample, generatorSample *goja.Program // see makeUsed

	lanes    *lanes
	watchdog *watchdog
	workers  *workers // nil: there are none

	compiling *lanes     // of worker processes that compile
	runs      goroutines // runs, abandoned ones too, and calls of Hosts

	mu       sync.Mutex
	closed   bool
	active   map[int64]func() // runs that somebody waits for, by what ends them
	last     int64
	isolated map[string]bool // projects whose scripts run in worker processes from now on, for one did not stop
}

// NewEngine makes an engine. Close it.
func NewEngine(o Options) *Engine {
	e := &Engine{
		now: o.Now, log: o.Log, metrics: o.Metrics, modules: modules(),
		active: map[int64]func(){}, isolated: map[string]bool{},
	}
	for _, m := range e.modules {
		e.glue = append(e.glue, goja.MustCompile(glueFile+m.name, m.glue, true))
	}
	e.asyncSample = goja.MustCompile(glueFile+"async", "(async () => {})", true)
	e.generatorSample = goja.MustCompile(glueFile+"generator", "(function* () {})", true)
	if e.now == nil {
		e.now = time.Now
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.metrics == nil {
		e.metrics = noMetrics{}
	}
	if o.Parallel <= 0 {
		o.Parallel = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if len(o.WorkerCommand) > 0 {
		e.workers = newWorkers(o.WorkerCommand)
	}
	e.lanes, e.compiling = newLanes(o.Parallel), newLanes(compileAtOnce)
	e.watchdog = newWatchdog(e.lanes)
	return e
}

type noMetrics struct{}

func (noMetrics) Ran(string, string, time.Duration, string) {}
func (noMetrics) Abandoned(string)                          {}

// closeTimeout is how long Close waits for scripts that are told to stop.
const closeTimeout = 3 * time.Second

// Close stops what runs and waits for it. Its error says that a script did not stop.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.runs.close()
	for _, stop := range e.active {
		stop()
	}
	e.mu.Unlock()
	if e.workers != nil {
		e.workers.close()
	}
	e.watchdog.close()
	done := make(chan struct{})
	go func() { // ends with the last run
		e.runs.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(closeTimeout):
		return errors.New("a script does not stop; the process has to end with it")
	}
}

// Run runs a program. The error is *Thrown or *Failure. The caller has its answer at the timeout plus 250 ms at the
// latest; the time that a run waits for its turn counts.
func (e *Engine) Run(ctx context.Context, c Call) (Result, error) {
	result, _, err := e.run(ctx, c)
	return result, err
}

// run also tells how long the script has computed.
func (e *Engine) run(ctx context.Context, c Call) (Result, time.Duration, error) {
	c.Limits = c.Limits.withDefaults()
	start := time.Now()
	wait, ok := c.Program.record.admit(e.now)
	if !ok {
		f := &Failure{Reason: Suspended, Script: c.Program.name, RetryAfter: wait, Message: "it ran away several times in a row and rests"}
		e.metrics.Ran(c.Project, c.Program.name, 0, string(Suspended))
		return Result{}, 0, f
	}
	until := start.Add(c.Limits.Timeout)
	var result Result
	var computed time.Duration
	release, isolated, err := e.workerPlace(ctx, until, &c)
	switch {
	case err != nil:
	case isolated:
		defer release()
		result, computed, err = e.runIsolated(ctx, until, &c)
	default:
		result, computed, err = e.runHere(ctx, start, until, &c)
	}
	e.account(&c, time.Since(start), computed, err)
	return result, computed, err
}

// runHere runs a program in this process.
func (e *Engine) runHere(ctx context.Context, start, until time.Time, c *Call) (Result, time.Duration, error) {
	r := newRun(ctx, until, e, c)
	if ok, why := e.lanes.acquire(ctx.Done(), until, c.Project, r.firstLane(), true); !ok {
		return Result{}, 0, refused(ctx, c, why)
	}
	id, ok := e.begin(r.canceled)
	if !ok {
		e.lanes.release(int(r.lane.Load()))
		return Result{}, 0, r.failure(Canceled, "the service stops")
	}
	defer e.end(id)
	r.computing()
	waited := r.began.Sub(start)
	e.runs.run(r.main)
	select {
	case ended := <-r.events:
		if ended {
			return r.result, r.computed, r.blamed(waited)
		}
	case <-ctx.Done():
		r.stop(endOf(ctx))
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case ended := <-r.events:
			if ended {
				return r.result, r.computed, r.blamed(waited)
			}
		case <-timer.C:
			e.abandon(r)
			return Result{}, c.Limits.Timeout, r.failure(r.reason(), "it does not stop")
		}
	}
}

// blamed is the error of a run that has ended. One that spent most of its time in queues did not run away.
func (r *run) blamed(waited time.Duration) error {
	if f, ok := errors.AsType[*Failure](r.err); ok && f.Reason == Timeout && waited+r.queued > r.call.Limits.Timeout/2 {
		f.Reason, f.RetryAfter, f.Message = Busy, time.Second, "its turn came too late"
	}
	return r.err
}

// endOf says why a run's context has ended.
func endOf(ctx context.Context) Reason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Timeout
	}
	return Canceled
}

// refused is the failure of a run that did not begin.
func refused(ctx context.Context, c *Call, why Reason) *Failure {
	f := &Failure{Reason: Busy, Script: c.Program.name, RetryAfter: time.Second}
	switch {
	case why == Busy:
		f.Message = fmt.Sprintf("%d runs of the project wait already", maxQueued)
	case why == Timeout, endOf(ctx) == Timeout:
		f.Message = "its turn did not come in time"
	default:
		f.Reason, f.Message, f.RetryAfter = Canceled, "the caller gave up", 0
	}
	return f
}

// begin counts a run in, by what ends it, unless the engine is closed.
func (e *Engine) begin(stop func()) (id int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, false
	}
	e.last++
	e.active[e.last] = stop
	return e.last, true
}

// end counts it out.
func (e *Engine) end(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, id)
}

// abandon leaves a run behind that does not stop. Its goroutine goes on until it does, or the process ends; its place is
// free for others.
func (e *Engine) abandon(r *run) {
	e.watchdog.leave(r)
	r.leavePlace()
	e.metrics.Abandoned(r.call.Project)
	e.mu.Lock()
	e.isolated[r.call.Project] = true
	e.mu.Unlock()
	e.log.WarnContext(r.parent, "a script does not stop; it is left behind, and the project's scripts run in worker processes from now on",
		slog.String("project", r.call.Project), slog.String("script", r.call.Program.name))
}

// left says whether a run was left behind.
func (e *Engine) left() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.isolated) > 0
}

// account keeps the books of a run.
func (e *Engine) account(c *Call, took, computed time.Duration, err error) {
	outcome, runaway, ended := "ok", false, true
	if f, ok := errors.AsType[*Failure](err); ok {
		outcome, runaway = string(f.Reason), f.Runaway()
		ended = f.Reason == Exception || f.Reason == Depth
	} else if err != nil {
		outcome = "thrown"
	}
	if c.Program.record.ran(e.now, computed, runaway, ended) {
		e.log.Warn("a script ran away several times in a row and is suspended",
			slog.String("project", c.Project), slog.String("script", c.Program.name), slog.Duration("for", rest))
	}
	e.metrics.Ran(c.Project, c.Program.name, took, outcome)
}
