package app

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scriptMetrics counts what becomes of the runs of scripts.
type scriptMetrics struct {
	runs      *prometheus.CounterVec
	seconds   *prometheus.CounterVec
	abandoned *prometheus.CounterVec
	well      sync.Map // by namespace: *wellCounters
}

// wellCounters are what counts a run that ended well, as most do.
type wellCounters struct{ runs, seconds prometheus.Counter }

func newScriptMetrics(r prometheus.Registerer) (*scriptMetrics, error) {
	m := &scriptMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_script_runs_total",
			Help: "Runs of scripts by what became of them: ok, thrown, exception, timeout, memory, depth, busy, suspended, canceled, killed, panic.",
		}, []string{"namespace", "outcome"}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_script_seconds_total", Help: "Seconds that runs of scripts took, with what they waited for.",
		}, []string{"namespace"}),
		abandoned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_scripts_abandoned_total", Help: "Runs of scripts that did not stop and were left behind.",
		}, []string{"namespace"}),
	}
	return m, errors.Join(r.Register(m.runs), r.Register(m.seconds), r.Register(m.abandoned))
}

// Ran counts a run.
func (m *scriptMetrics) Ran(namespace, _ string, took time.Duration, outcome string) {
	if outcome == "ok" {
		c := m.wellOf(namespace)
		c.seconds.Add(took.Seconds())
		c.runs.Inc()
		return
	}
	m.seconds.WithLabelValues(namespace).Add(took.Seconds())
	m.runs.WithLabelValues(namespace, outcome).Inc()
}

func (m *scriptMetrics) wellOf(namespace string) *wellCounters {
	if c, ok := m.well.Load(namespace); ok {
		return c.(*wellCounters) //nolint:forcetypeassert,errcheck // only these are stored
	}
	m.abandoned.WithLabelValues(namespace) // so that a rate over it has a first value
	c, _ := m.well.LoadOrStore(namespace, &wellCounters{m.runs.WithLabelValues(namespace, "ok"), m.seconds.WithLabelValues(namespace)})
	return c.(*wellCounters) //nolint:forcetypeassert,errcheck // only these are stored
}

// Abandoned counts a run that was left behind.
func (m *scriptMetrics) Abandoned(namespace string) { m.abandoned.WithLabelValues(namespace).Inc() }
