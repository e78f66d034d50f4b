package hooks

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/script"
)

// metrics measure runs. nil measures nothing. Labels come from configs, so there are as many as those say.
type metrics struct {
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	if reg == nil {
		return nil, nil //nolint:nilnil // nil measures nothing
	}
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "svc_hook_duration_seconds", Help: "Time that scripts of collections took, by stage; filter, eval and validator are those of rules, search that of the eval of searches.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"namespace", "collection", "stage"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_hook_failures_total", Help: "Runs of scripts of collections that failed, by reason. An error that a script gives on purpose (ctx.error) is none.",
		}, []string{"namespace", "collection", "stage", "reason"}),
	}
	return m, errors.Join(reg.Register(m.duration), reg.Register(m.failures))
}

func (m *metrics) ran(op *Operation, stage string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.duration.WithLabelValues(op.Project.Namespace, op.Collection.Name, stage).Observe(took.Seconds())
	if f, ok := errors.AsType[*script.Failure](err); ok {
		m.failures.WithLabelValues(op.Project.Namespace, op.Collection.Name, stage, string(f.Reason)).Inc()
	}
}
