package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/tracing"
)

// Options configure a Manager. Zero durations take their defaults.
type Options struct {
	Logger     *slog.Logger          // required
	Registerer prometheus.Registerer // required
	Tracer     *tracing.Tracer       // nil: nothing is traced
	BackoffMin time.Duration         // delay after a key's first failure; default 200 ms
	BackoffMax time.Duration         // longest delay between tries; default 5 min
}

// Manager owns controllers: their queues, workers and sources. Its methods are safe for concurrent use.
type Manager struct {
	opts    Options
	metrics *metrics

	mu      sync.Mutex
	runners map[string]*runner
	started bool          // or closed
	stopped chan struct{} // closed when Start has begun to stop, or by Close
}

// New makes a Manager without controllers.
func New(opts Options) (*Manager, error) {
	if opts.Logger == nil || opts.Registerer == nil {
		return nil, errors.New("controller manager needs a logger and a registerer")
	}
	if opts.BackoffMin <= 0 {
		opts.BackoffMin = 200 * time.Millisecond
	}
	if opts.BackoffMax <= 0 {
		opts.BackoffMax = 5 * time.Minute
	}
	m, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, err
	}
	return &Manager{opts: opts, metrics: m, runners: map[string]*runner{}, stopped: make(chan struct{})}, nil
}

// Add adds a controller. All are added before Start.
func (m *Manager) Add(c Controller) error {
	if err := c.validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return fmt.Errorf("controller %s added after start", c.Name)
	}
	if _, ok := m.runners[c.Name]; ok {
		return fmt.Errorf("two controllers are named %s", c.Name)
	}
	r := newRunner(c, m.opts, m.metrics)
	if err := m.metrics.add(c.Name, r.depth); err != nil {
		r.queue.ShutDown()
		return err
	}
	m.runners[c.Name] = r
	return nil
}

// Start runs all controllers, and returns when ctx has ended and every worker and source has stopped. It may be called
// once.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return errors.New("controller manager started twice, or after its end")
	}
	m.started = true
	m.mu.Unlock()

	context.AfterFunc(ctx, func() { close(m.stopped) })
	var wg sync.WaitGroup
	for _, r := range m.runners { // not written after start
		wg.Go(func() { r.run(ctx) })
	}
	wg.Wait()
	<-m.stopped
	return nil
}

// Close releases a Manager that is not to be started; one that was is ended by Start's ctx. More than once is no harm.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return
	}
	m.started = true
	close(m.stopped)
	for _, r := range m.runners {
		r.queue.ShutDown()
	}
}

// Trigger enqueues a key, at once even when it waits in backoff. Before Start it is kept until then.
func (m *Manager) Trigger(name, key string) error {
	r, err := m.runner(name)
	if err != nil {
		return err
	}
	r.enqueue(key)
	return nil
}

// ReconcileNow enqueues a key and returns the error of a run that started after this call, or ctx's. When the manager
// stops before, it is errs.Unavailable.
func (m *Manager) ReconcileNow(ctx context.Context, name, key string) error {
	r, err := m.runner(name)
	if err != nil {
		return err
	}
	done := r.await(key)
	defer r.forget(key, done)
	r.enqueue(key)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.stopped:
	}
	select { // the run may have ended with the manager
	case err := <-done:
		return err
	default:
		return errs.New(errs.Unavailable, "stopping", "the service is stopping; try again")
	}
}

func (m *Manager) runner(name string) (*runner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runners[name]
	if !ok {
		return nil, errs.Wrap(errors.New(name), "no such controller")
	}
	return r, nil
}
