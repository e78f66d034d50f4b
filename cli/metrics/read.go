package metrics

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are what a service has measured.
type metrics struct {
	Groups []group `json:"groups"`
}

type group struct {
	Name    string   `json:"name"`
	Metrics []metric `json:"metrics"`
}

type metric struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"` // counter, gauge, histogram, summary, untyped
	Help   string   `json:"help"`
	Series []series `json:"series"`
}

// series is a metric of certain labels: Value, or what a spread has.
type series struct {
	Labels map[string]string `json:"labels"`
	Value  *float64          `json:"value,omitempty"`
	Spread *spread           `json:"spread,omitempty"`
}

// spread is a histogram or a summary. What half and 99 % don't exceed is nil where it can't be said.
type spread struct {
	Count uint64   `json:"count"`
	Sum   float64  `json:"sum"`
	P50   *float64 `json:"p50,omitempty"`
	P99   *float64 `json:"p99,omitempty"`
}

// read reads the text form of metrics.
func read(r io.Reader) (*metrics, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	by := map[string]*group{}
	for name, f := range families {
		of := groupOf(name)
		if by[of] == nil {
			by[of] = &group{Name: of}
		}
		m := metric{Name: name, Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
		for _, s := range f.GetMetric() {
			m.Series = append(m.Series, seriesOf(s))
		}
		slices.SortFunc(m.Series, func(a, b series) int { return cmp.Compare(a.labels(), b.labels()) })
		by[of].Metrics = append(by[of].Metrics, m)
	}
	out := &metrics{Groups: []group{}}
	for _, g := range by {
		slices.SortFunc(g.Metrics, func(a, b metric) int { return cmp.Compare(a.Name, b.Name) })
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b group) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// groupOf is the noun of a metric: request of svc_request_duration_seconds, as of svc_requests_active. What is not of svcd is of the library that measures it.
func groupOf(name string) string {
	noun, _, _ := strings.Cut(strings.TrimPrefix(name, "svc_"), "_")
	if noun == "process" {
		return noun
	}
	return strings.TrimSuffix(noun, "s")
}

// rank puts what people look for before the process and what is below it.
func rank(g group) int {
	switch g.Name {
	case "build":
		return 0
	case "request":
		return 1
	case "process":
		return 3
	case "go", "promhttp":
		return 4
	}
	return 2
}

func seriesOf(m *dto.Metric) series {
	s := series{Labels: map[string]string{}}
	for _, l := range m.GetLabel() {
		s.Labels[l.GetName()] = l.GetValue()
	}
	value := func(v float64) series { s.Value = &v; return s }
	switch {
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		s.Spread = &spread{Count: h.GetSampleCount(), Sum: h.GetSampleSum(), P50: quantile(h, .5), P99: quantile(h, .99)}
	case m.GetSummary() != nil:
		of := m.GetSummary()
		s.Spread = &spread{Count: of.GetSampleCount(), Sum: of.GetSampleSum()}
		for _, q := range of.GetQuantile() {
			v := q.GetValue()
			switch {
			case math.IsNaN(v):
			case q.GetQuantile() == .5:
				s.Spread.P50 = &v
			case q.GetQuantile() == .99:
				s.Spread.P99 = &v
			default:
			}
		}
	case m.GetCounter() != nil:
		return value(m.GetCounter().GetValue())
	case m.GetGauge() != nil:
		return value(m.GetGauge().GetValue())
	default:
		return value(m.GetUntyped().GetValue())
	}
	return s
}

// quantile is the upper bound of the bucket in which a share of what a histogram counts ends; nil: it counts nothing, or the bucket has no upper bound.
func quantile(h *dto.Histogram, share float64) *float64 {
	want := share * float64(h.GetSampleCount())
	for _, b := range h.GetBucket() {
		if want > 0 && float64(b.GetCumulativeCount()) >= want && !math.IsInf(b.GetUpperBound(), 0) {
			bound := b.GetUpperBound()
			return &bound
		}
	}
	return nil
}

// only leaves what has one of the words in its name, and leaves out what says nothing unless all is wanted.
func (m *metrics) only(words []string, all bool) *metrics {
	out := &metrics{Groups: []group{}}
	for _, g := range m.Groups {
		if len(words) == 0 && !all && rank(g) == 4 {
			continue
		}
		kept := group{Name: g.Name}
		for _, of := range g.Metrics {
			if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(of.Name, w) }) {
				continue
			}
			if len(words) == 0 && !all {
				of.Series = slices.DeleteFunc(slices.Clone(of.Series), func(s series) bool { return s.amount() == 0 && of.Type != "gauge" })
			}
			if len(of.Series) > 0 {
				kept.Metrics = append(kept.Metrics, of)
			}
		}
		if len(kept.Metrics) > 0 {
			out.Groups = append(out.Groups, kept)
		}
	}
	return out
}

// find gives the series of a metric by its labels; there is none in nil.
func (m *metrics) find(name, labels string) (series, bool) {
	if m == nil {
		return series{}, false
	}
	for _, g := range m.Groups {
		for _, of := range g.Metrics {
			if of.Name != name {
				continue
			}
			for _, s := range of.Series {
				if s.labels() == labels {
					return s, true
				}
			}
		}
	}
	return series{}, false
}

func (m *metrics) names() (names []string) {
	for _, g := range m.Groups {
		for _, of := range g.Metrics {
			names = append(names, of.Name)
		}
	}
	return names
}

// labels shows the labels, such as method=GET status=200, by which the series of a metric are told apart.
func (s series) labels() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if s.Labels[name] == "" { // of no project, or of none that is known
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + s.Labels[name])
	}
	return b.String()
}

// amount is what a change is a change of: the value, or how many there are.
func (s series) amount() float64 {
	switch {
	case s.Spread != nil:
		return float64(s.Spread.Count)
	case s.Value != nil:
		return *s.Value
	}
	return 0
}
