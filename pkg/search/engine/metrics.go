package engine

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what an engine does.
type metrics struct {
	seconds           *prometheus.HistogramVec // by mode
	indexed, failures prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "svc_search_seconds", Help: "Time that searches took, without the reading of what was found.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"mode"}),
		indexed:  prometheus.NewCounter(prometheus.CounterOpts{Name: "svc_search_indexed_total", Help: "Records that were indexed because they have changed."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "svc_search_failures_total", Help: "Tries to index records that failed, and are made again."}),
	}
}

// register registers the metrics; pending says how many records wait, and failing how many can't be indexed.
func (m *metrics) register(r prometheus.Registerer, pending, failing func() float64) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Register(m.seconds), r.Register(m.indexed), r.Register(m.failures), r.Register(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "svc_search_pending", Help: "Records that wait to be indexed."}, pending)), r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "svc_search_failed", Help: "Records that are in the index of a search without their text, since its eval fails for them.",
	}, failing)))
}

// took counts a try to index records.
func (m *metrics) took(records int, err error) {
	switch {
	case err == nil:
		m.indexed.Add(float64(records))
	case !errors.Is(err, context.Canceled):
		m.failures.Inc()
	}
}

// pending is how many records wait, of all projects.
func (e *Engine) pending() float64 {
	n := 0
	for _, t := range e.all() {
		for _, s := range t.all() {
			s.mu.Lock()
			n += len(s.dirty) + s.inFlight
			s.mu.Unlock()
		}
	}
	return float64(n)
}

// failing is for how many records scripts have failed, of all projects.
func (e *Engine) failing() float64 {
	n := 0
	for _, t := range e.all() {
		for _, s := range t.all() {
			s.mu.Lock()
			for _, one := range s.searches {
				failed, _ := one.failed()
				n += failed
			}
			s.mu.Unlock()
		}
	}
	return float64(n)
}
