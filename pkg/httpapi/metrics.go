package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/errs"
)

// metrics are svc_request_duration_seconds, svc_requests_active and svc_mcp_call_duration_seconds. Label values are bounded: methods are the known ones, namespaces and
// collections those that are served.
type metrics struct {
	duration  *prometheus.HistogramVec
	active    prometheus.Gauge
	tools     *prometheus.HistogramVec
	observers sync.Map // series -> prometheus.Observer: the vector's own lookup is the larger part of a count
}

type series struct {
	method, namespace, collection string
	status                        int
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "svc_request_duration_seconds",
		Help:    "Time from the head of a request to the end of its answer.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "status", "namespace", "collection"})}
	m.active = prometheus.NewGauge(prometheus.GaugeOpts{Name: "svc_requests_active", Help: "Requests that are being answered, with streams that are followed."})
	m.tools = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "svc_mcp_call_duration_seconds",
		Help:    "Time that a call of a tool by an agent took. code is that of its error, 0 where there is none; tool is empty where there is no such tool.",
		Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10},
	}, []string{"tool", "code"})
	for _, c := range []prometheus.Collector{m.duration, m.active, m.tools} {
		if err := reg.Register(c); err != nil {
			return nil, errs.Wrap(err, "register metrics")
		}
	}
	return m, nil
}

func (m *metrics) observeTool(tool string, code int, took time.Duration) {
	m.tools.WithLabelValues(tool, strconv.Itoa(code)).Observe(took.Seconds())
}

func (m *metrics) observe(method string, status int, namespace, collection string, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	key := series{method: method, status: status, namespace: namespace, collection: collection}
	o, ok := m.observers.Load(key)
	if !ok {
		o, _ = m.observers.LoadOrStore(key, m.duration.WithLabelValues(method, strconv.Itoa(status), namespace, collection))
	}
	if obs, ok := o.(prometheus.Observer); ok {
		obs.Observe(took.Seconds())
	}
}
