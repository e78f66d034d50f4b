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

// register registers the metrics. count says how many records there are of each kind, of all projects.
func (m *metrics) register(r prometheus.Registerer, count func() counts) error {
	if r == nil {
		return nil
	}
	err := errors.Join(r.Register(m.seconds), r.Register(m.indexed), r.Register(m.failures))
	for _, g := range []struct {
		name, help string
		of         func(c counts) int
	}{
		{"svc_search_pending", "Records that wait to be indexed.", func(c counts) int { return c.pending }},
		{"svc_search_waiting", "Records that wait for the vector of a search, once for each search.", func(c counts) int { return c.waiting }},
		{"svc_search_refused", "Records that have no vector, since the embedding group refuses their text, once for each search.", func(c counts) int { return c.refused }},
		{"svc_search_failed", "Records that are in the index of a search without their text, since its eval fails for them.", func(c counts) int { return c.failed }},
	} {
		err = errors.Join(err, r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, func() float64 { return float64(g.of(count())) })))
	}
	return err
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

// counts are how many records are not as searches would have them.
type counts struct{ pending, waiting, refused, failed int }

// counts counts those of all projects.
func (e *Engine) counts() (c counts) {
	for _, t := range e.all() {
		for _, s := range t.all() {
			s.mu.Lock()
			c.pending += len(s.dirty) + len(s.behind) + s.inFlight
			for _, one := range s.searches {
				failed, _ := one.failed()
				c.failed += failed
			}
			for _, b := range s.both() {
				waiting, refused, _, _ := b.standing.counts()
				c.waiting, c.refused = c.waiting+waiting, c.refused+refused
			}
			s.mu.Unlock()
		}
	}
	return c
}
