package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/svcctl/svc/pkg/tracing"
)

// runner is one controller at work.
type runner struct {
	Controller
	log     *slog.Logger
	metrics *metrics
	opts    Options
	queue   workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	waiters map[string][]chan error // by key: who wants the result of the next run that starts
}

func newRunner(c Controller, opts Options, m *metrics) *runner {
	return &runner{
		Controller: c,
		log:        opts.Logger.With(slog.String("controller", c.Name)),
		metrics:    m,
		opts:       opts,
		queue:      workqueue.NewTypedRateLimitingQueue[string](newBackoff(opts.BackoffMin, opts.BackoffMax)),
		waiters:    map[string][]chan error{},
	}
}

func (r *runner) depth() int { return r.queue.Len() }

func (r *runner) enqueue(key string) { r.queue.Add(key) }

// run returns when ctx has ended and everything that it started has.
func (r *runner) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i, s := range r.Sources {
		wg.Go(func() { r.feed(ctx, fmt.Sprintf("source %d", i+1), s) })
	}
	if r.List != nil {
		wg.Go(func() { r.feed(ctx, "list", SourceFunc(r.resync)) })
	}
	for range max(1, r.Workers) {
		wg.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	wg.Wait()
}

// feed runs a source, and again after a growing delay as long as it fails.
func (r *runner) feed(ctx context.Context, name string, s Source) {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := guard(func() error { return s.Start(ctx, r.enqueue) })
		if ctx.Err() != nil || err == nil {
			return
		}
		if time.Since(began) > r.opts.BackoffMax {
			failures = 0 // it worked for a good while
		}
		r.log.ErrorContext(ctx, "source failed, will be started again", slog.String("source", name), slog.Any("error", err))
		if !sleep(ctx, jitter(delay(r.opts.BackoffMin, r.opts.BackoffMax, failures))) {
			return
		}
	}
}

// resync is the source that enqueues every key of List.
func (r *runner) resync(ctx context.Context, enqueue func(string)) error {
	for {
		keys, err := r.List(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			enqueue(k)
		}
		if r.Resync == 0 || !sleep(ctx, jitter(r.Resync)) {
			return nil
		}
	}
}

// next works off one key and says whether there may be more.
func (r *runner) next(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	if ctx.Err() != nil {
		return true // the queue drains without running
	}
	waiters := r.take(key)
	began := time.Now()
	ctx, span := r.traced(ctx)
	var result Result
	err := guard(func() (err error) {
		result, err = r.Reconciler.Reconcile(ctx, key)
		return err
	})
	r.settle(ctx, key, result, err, time.Since(began))
	span.End(err)
	for _, w := range waiters {
		w <- err // buffered
	}
	return true
}

// traced begins the span of a reconcile. The key is not in it: it is an id.
func (r *runner) traced(ctx context.Context) (context.Context, tracing.Span) {
	if r.opts.Tracer == nil {
		return ctx, tracing.Span{}
	}
	return r.opts.Tracer.Background(ctx, "reconcile "+r.Name, tracing.Controller(r.Name))
}

// settle decides when the key runs again, and counts and logs the run.
func (r *runner) settle(ctx context.Context, key string, result Result, err error, took time.Duration) {
	outcome := resultSuccess
	var p *panicError
	switch {
	case err != nil && ctx.Err() != nil:
		return // it was cut off by the shutdown
	case errors.As(err, &p):
		outcome = resultPanic
		r.queue.AddRateLimited(key)
		r.log.ErrorContext(ctx, "reconcile panicked", slog.String("key", key), slog.Any("error", err), slog.String("stack", p.stack))
	case isTerminal(err):
		outcome = resultTerminal
		r.queue.Forget(key)
		r.log.WarnContext(ctx, "reconcile failed, waiting for a change", slog.String("key", key), slog.Any("error", err))
	case err != nil:
		outcome = resultError
		r.queue.AddRateLimited(key)
		r.log.ErrorContext(ctx, "reconcile failed, will be tried again",
			slog.String("key", key), slog.Int("failures", r.queue.NumRequeues(key)), slog.Any("error", err))
	case result.RequeueAfter > 0:
		outcome = resultRequeue
		r.queue.Forget(key)
		r.queue.AddAfter(key, result.RequeueAfter)
	default:
		r.queue.Forget(key)
	}
	r.metrics.observe(r.Name, outcome, took)
	r.log.DebugContext(ctx, "reconciled", slog.String("key", key), slog.String("result", outcome), slog.Duration("took", took))
}

// await registers for the result of the next run of key that starts.
func (r *runner) await(key string) chan error {
	done := make(chan error, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters[key] = append(r.waiters[key], done)
	return done
}

// forget takes back an await that may not have been answered.
func (r *runner) forget(key string, done chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.waiters[key], func(c chan error) bool { return c == done })
	if r.waiters[key] = left; len(left) == 0 {
		delete(r.waiters, key)
	}
}

func (r *runner) take(key string) []chan error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiters[key]
	delete(r.waiters, key)
	return w
}

// panicError is a recovered panic. Its text is for the log.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guard turns a panic of fn into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: string(debug.Stack())}
		}
	}()
	return fn()
}

// sleep says whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
