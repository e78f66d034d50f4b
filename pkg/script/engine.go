package script

import (
	"context"
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

	runs sync.WaitGroup // goroutines of runs, abandoned ones too
}

// NewEngine makes an engine. Close it.
func NewEngine(o Options) *Engine {
	e := &Engine{now: o.Now, log: o.Log, metrics: o.Metrics, modules: modules()}
	for _, m := range e.modules {
		e.glue = append(e.glue, goja.MustCompile("svc:"+m.name, m.glue, true))
	}
	e.asyncSample = goja.MustCompile("svc:async", "(async () => {})", true)
	e.generatorSample = goja.MustCompile("svc:generator", "(function* () {})", true)
	if e.now == nil {
		e.now = time.Now
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if o.Parallel <= 0 {
		o.Parallel = max(1, runtime.NumCPU()-1)
	}
	return e
}

// Close stops what runs and waits for it.
func (e *Engine) Close() error {
	e.runs.Wait()
	return nil
}

// Run runs a program. The error is *Thrown, *Failure, or what made the call itself impossible. The caller has its
// answer at the timeout plus 250 ms at the latest.
func (e *Engine) Run(ctx context.Context, c Call) (Result, error) {
	c.Limits = c.Limits.withDefaults()
	r := newRun(ctx, e, &c)
	e.runs.Go(r.main)
	timer := time.NewTimer(c.Limits.Timeout)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.result, r.err
	case <-timer.C:
		r.stop(Timeout)
	case <-ctx.Done():
		r.stop(Canceled)
	}
	timer.Reset(grace)
	select {
	case <-r.done:
		return r.result, r.err
	case <-timer.C:
		return Result{}, r.failure(r.reason(), "the script did not stop")
	}
}
