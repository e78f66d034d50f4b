package app

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/all"
)

// CheckEmbedding gives what is wrong with the embedding settings, without asking any provider.
func CheckEmbedding(cfg Config) []error { return embedding.Problems(cfg.Embedding, all.Types()) }

// EmbeddingTypes are the types of providers that there are.
func EmbeddingTypes() embedding.Types { return all.Types() }

// openEmbedding begins to verify the groups of the settings, and waits for none.
func (a *App) openEmbedding(ctx context.Context, r prometheus.Registerer) error {
	metrics, err := newEmbeddingMetrics(r)
	if err != nil {
		return err
	}
	a.groups, err = embedding.Open(ctx, a.cfg.Embedding, all.Types(), embedding.Options{Log: a.cfg.Logger, Now: a.cfg.Now, Called: metrics.called})
	if err != nil {
		return err
	}
	return r.Register(newEmbeddingStates(a.groups))
}

// embeddingMetrics measure the calls of embedding members, and tell how these are when somebody asks.
type embeddingMetrics struct {
	calls    *prometheus.CounterVec
	texts    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newEmbeddingMetrics(r prometheus.Registerer) (*embeddingMetrics, error) {
	m := &embeddingMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_embedding_calls_total",
			Help: "Calls of embedding members by what became of them: ok, refused, throttled, timeout, failed, garbage, deviates, canceled.",
		}, []string{"group", "member", "outcome"}),
		texts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_embedding_texts_total", Help: "Texts that embedding members gave vectors of.",
		}, []string{"group", "member"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "svc_embedding_call_duration_seconds", Help: "Time that calls of embedding members took, by kind: query is one text, document up to 32.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"group", "member", "kind"}),
	}
	return m, errors.Join(r.Register(m.calls), r.Register(m.texts), r.Register(m.duration))
}

func (m *embeddingMetrics) called(c embedding.Call) {
	m.calls.WithLabelValues(c.Group, c.Member, c.Outcome).Inc()
	m.duration.WithLabelValues(c.Group, c.Member, c.Kind.String()).Observe(c.Took.Seconds())
	if c.Outcome == "ok" {
		m.texts.WithLabelValues(c.Group, c.Member).Add(float64(c.Texts))
	}
}

// embeddingStates tells of the members of groups at each scrape.
type embeddingStates struct {
	groups         *embedding.Groups
	state, breaker *prometheus.Desc
}

func newEmbeddingStates(groups *embedding.Groups) *embeddingStates {
	return &embeddingStates{
		groups: groups,
		state: prometheus.NewDesc("svc_embedding_member_state",
			"1 for the state that an embedding member has: live, degraded, quarantined or offline.", []string{"group", "member", "state"}, nil),
		breaker: prometheus.NewDesc("svc_embedding_breaker_open",
			"1 while an embedding member is left alone: its breaker is open, or half open while it is verified.", []string{"group", "member"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *embeddingStates) Describe(out chan<- *prometheus.Desc) { out <- s.state; out <- s.breaker }

// Collect implements prometheus.Collector.
func (s *embeddingStates) Collect(out chan<- prometheus.Metric) {
	for _, g := range s.groups.Status(false) {
		for _, m := range g.Members {
			for _, state := range []embedding.State{embedding.Live, embedding.Degraded, embedding.Quarantined, embedding.Offline} {
				out <- prometheus.MustNewConstMetric(s.state, prometheus.GaugeValue, one(m.State == state), g.Name, m.Name, string(state))
			}
			out <- prometheus.MustNewConstMetric(s.breaker, prometheus.GaugeValue, one(m.Breaker != embedding.BreakerClosed), g.Name, m.Name)
		}
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
