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
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_runs_total",
			Help: "Runs of actions and jobs that have ended, by how.",
		}, []string{"kind", "status"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_run_panics_total",
			Help: "Panics in runs.",
		}, []string{"kind"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "svc_runs_active",
			Help: "Runs of this instance that wait or go.",
		}, []string{"kind"}),
	}
	if err := errors.Join(r.Register(m.total), r.Register(m.panics), r.Register(m.active)); err != nil {
		return nil, fmt.Errorf("register metrics of runs: %w", err)
	}
	for _, kind := range []Kind{Action, Job} {
		for _, status := range []Status{Succeeded, Failed, Cancelled, Lost} {
			m.total.WithLabelValues(string(kind), string(status))
		}
		m.panics.WithLabelValues(string(kind))
		m.active.WithLabelValues(string(kind))
	}
	return m, nil
}
