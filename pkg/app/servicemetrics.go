package app

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/status"
)

// serviceMetrics tells at each scrape of what is served, and how: nothing of it is counted on the way.
type serviceMetrics struct {
	version, store string
	registry       *project.Registry
	board          *status.Board
	engine         *script.Engine

	build, projects, ready, places, waiting *prometheus.Desc
}

// The values of the label state of svc_projects.
const (
	stateReady = "ready" // its condition Ready is True
	stateStale = "stale" // it is served, and Ready is not True
	stateDown  = "down"  // nothing of it is served
)

func newServiceMetrics(r prometheus.Registerer, m *serviceMetrics) error {
	m.build = prometheus.NewDesc("svc_build_info", "1, with the version of svcd and the kind of its store.", []string{"version", "store"}, nil)
	m.projects = prometheus.NewDesc("svc_projects", "Registered projects: ready ones, those that are served and not ready (stale), and those that are not served (down).", []string{"state"}, nil)
	m.ready = prometheus.NewDesc("svc_project_ready", "1 if the condition Ready of a project that is served is True.", []string{"namespace"}, nil)
	m.places = prometheus.NewDesc("svc_scripts_computing", "Scripts that compute, by lane: short ones are in fast, those that take long in slow.", []string{"lane"}, nil)
	m.waiting = prometheus.NewDesc("svc_scripts_waiting", "Scripts that wait for a place to compute, by lane.", []string{"lane"}, nil)
	return r.Register(m)
}

// Describe implements prometheus.Collector.
func (m *serviceMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.build, m.projects, m.ready, m.places, m.waiting} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *serviceMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.build, 1, m.version, m.store)
	states := map[string]int{}
	ready := map[string]bool{} // by the id of the registration
	for _, id := range m.board.Keys() {
		s, ok := m.board.Get(id)
		if !ok {
			continue
		}
		c, _ := s.Condition(status.Ready)
		ready[id] = c.Status == status.True
		switch {
		case ready[id]:
			states[stateReady]++
		case s.ObservedGeneration > 0:
			states[stateStale]++
		default:
			states[stateDown]++
		}
	}
	for _, state := range []string{stateReady, stateStale, stateDown} {
		gauge(m.projects, float64(states[state]), state)
	}
	for _, p := range m.registry.List() {
		gauge(m.ready, one(ready[p.ID]), p.Namespace)
	}
	for _, l := range m.engine.Lanes() {
		gauge(m.places, float64(l.Computing), l.Name)
		gauge(m.waiting, float64(l.Waiting), l.Name)
	}
}

// servedOnly leaves out of what is measured the projects that are not served any more. What counts for them would stay until the service ends: series without end where projects come
// and go, and the names of those that are gone.
func servedOnly(all prometheus.Gatherer, served *project.Registry) prometheus.Gatherer {
	gone := func(m *dto.Metric) bool {
		for _, l := range m.GetLabel() {
			if l.GetName() == "namespace" && l.GetValue() != "" {
				_, err := served.Get(l.GetValue())
				return err != nil
			}
		}
		return false
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := all.Gather()
		for _, f := range families {
			f.Metric = slices.DeleteFunc(f.GetMetric(), gone)
		}
		return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return len(f.GetMetric()) == 0 }), err
	})
}
