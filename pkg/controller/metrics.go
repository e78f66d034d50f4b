package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The values of the label result.
const (
	resultSuccess  = "success"
	resultRequeue  = "requeue_after"
	resultError    = "error"
	resultTerminal = "terminal_error"
	resultPanic    = "panic"
)

type metrics struct {
	registerer prometheus.Registerer
	total      *prometheus.CounterVec
	duration   *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		registerer: r,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_reconcile_total",
			Help: "Reconciles by controller and result.",
		}, []string{"controller", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "svc_reconcile_duration_seconds",
			Help:    "Time of one reconcile.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10, 60, 300},
		}, []string{"controller"}),
	}
	if err := errors.Join(r.Register(m.total), r.Register(m.duration)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// add makes a controller's series exist from the start, so that a rate over them has a first value.
func (m *metrics) add(name string, depth func() int) error {
	for _, result := range []string{resultSuccess, resultRequeue, resultError, resultTerminal, resultPanic} {
		m.total.WithLabelValues(name, result)
	}
	m.duration.WithLabelValues(name)
	err := m.registerer.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "svc_reconcile_queue_depth",
		Help:        "Keys that wait for a worker.",
		ConstLabels: prometheus.Labels{"controller": name},
	}, func() float64 { return float64(depth()) }))
	if err != nil {
		return fmt.Errorf("register metrics of controller %s: %w", name, err)
	}
	return nil
}

func (m *metrics) observe(name, result string, took time.Duration) {
	m.total.WithLabelValues(name, result).Inc()
	m.duration.WithLabelValues(name).Observe(took.Seconds())
}
