package operation

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	total  *prometheus.CounterVec
	panics *prometheus.CounterVec
	active *prometheus.GaugeVec
	took   *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_runs_total",
			Help: "Runs that have ended, by what they do and how they ended.",
		}, []string{"kind", "status"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_run_panics_total",
			Help: "Panics in runs.",
		}, []string{"kind"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "svc_runs_active",
			Help: "Runs of this instance that wait or go.",
		}, []string{"kind"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "svc_run_duration_seconds",
			Help:    "Time from the begin of a run of this instance to its end, without what it waited for its turn.",
			Buckets: []float64{.01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400},
		}, []string{"kind"}),
	}
	if err := errors.Join(r.Register(m.total), r.Register(m.panics), r.Register(m.active), r.Register(m.took)); err != nil {
		return nil, fmt.Errorf("register metrics of runs: %w", err)
	}
	for _, kind := range []Kind{Action, Job, Search, Snapshot, Verify, Restore, Prune, Import, Drill, Backup} {
		for _, status := range []Status{Succeeded, Failed, Cancelled, Lost} {
			m.total.WithLabelValues(string(kind), string(status))
		}
		m.panics.WithLabelValues(string(kind))
		m.active.WithLabelValues(string(kind))
		m.took.WithLabelValues(string(kind))
	}
	return m, nil
}
