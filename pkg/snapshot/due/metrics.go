package due

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
)

// metrics tell of the snapshots that this instance has, by profile.
type metrics struct {
	success, verified, count, bytes, damaged *prometheus.GaugeVec

	mu   sync.Mutex
	told map[[2]string]bool // namespace and profile whose series are there
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{told: map[[2]string]bool{}}
	var err error
	for _, x := range []struct {
		gauge      **prometheus.GaugeVec
		name, help string
	}{
		{&m.success, "svc_snapshot_last_success_timestamp_seconds", "The moment of which the newest snapshot of the profile is. There is no series before the first."},
		{&m.verified, "svc_snapshot_last_verified_timestamp_seconds", "When a check of all of a snapshot of the profile has last found it whole, or a restore of one was rehearsed and came back equal. There is no series before that."},
		{&m.count, "svc_snapshots", "Snapshots of the profile."},
		{&m.bytes, "svc_snapshot_bytes", "Size of the newest snapshot of the profile, with what it shares with others."},
		{&m.damaged, "svc_snapshots_damaged", "Snapshots of the profile that can't be read, or that a check has found damaged."},
	} {
		*x.gauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: x.name, Help: x.help}, []string{"namespace", "profile"})
		err = errors.Join(err, r.Register(*x.gauge))
	}
	if err != nil {
		return nil, fmt.Errorf("register metrics of snapshots: %w", err)
	}
	return m, nil
}

// measured is what is told of a profile.
type measured struct {
	newest   *snapshot.Info // that can be read
	verified time.Time
	count    int
	damaged  int
}

// measure tells of the snapshots of a project, by the profiles that it has, and those that snapshots are of.
func (m *metrics) measure(p *project.Project, all []snapshot.Info, states map[string]state) {
	profiles := map[string]*measured{}
	for _, profile := range p.Snapshots {
		drill := states[string(operation.Drill)+"/"+profile.Name]
		profiles[profile.Name] = &measured{verified: drill.Succeeded}
	}
	for i := range all { // the newest first
		info := &all[i]
		of := profiles[info.Profile]
		if of == nil {
			of = &measured{}
			profiles[info.Profile] = of
		}
		of.count++
		if info.Damaged() {
			of.damaged++
		} else if of.newest == nil {
			of.newest = info
		}
		if at := info.State.WholeAt; info.State.Whole() && at.After(of.verified) {
			of.verified = at
		}
	}
	m.forget(p.Namespace, func(profile string) bool { return profiles[profile] != nil })
	m.mu.Lock()
	defer m.mu.Unlock()
	for profile, of := range profiles {
		m.told[[2]string{p.Namespace, profile}] = true
		m.tell(p.Namespace, profile, of)
	}
}

func (m *metrics) tell(namespace, profile string, of *measured) {
	m.count.WithLabelValues(namespace, profile).Set(float64(of.count))
	m.damaged.WithLabelValues(namespace, profile).Set(float64(of.damaged))
	if of.newest == nil {
		m.success.DeleteLabelValues(namespace, profile)
		m.bytes.DeleteLabelValues(namespace, profile)
	} else {
		m.success.WithLabelValues(namespace, profile).Set(float64(of.newest.ConsistentAt.Unix()))
		m.bytes.WithLabelValues(namespace, profile).Set(float64(of.newest.Counts.Bytes))
	}
	if of.verified.IsZero() {
		m.verified.DeleteLabelValues(namespace, profile)
	} else {
		m.verified.WithLabelValues(namespace, profile).Set(float64(of.verified.Unix()))
	}
}

// forget lets go of what is told of a namespace, but for the profiles that keep names.
func (m *metrics) forget(namespace string, keep func(profile string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.told {
		if key[0] != namespace || keep(key[1]) {
			continue
		}
		delete(m.told, key)
		labels := prometheus.Labels{"namespace": namespace, "profile": key[1]}
		for _, gauge := range []*prometheus.GaugeVec{m.success, m.verified, m.count, m.bytes, m.damaged} {
			gauge.DeletePartialMatch(labels)
		}
	}
}
