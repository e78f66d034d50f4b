package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
)

// The values of the label reason.
const (
	reasonOverlap = "overlap"
	reasonMissed  = "missed"
)

type metrics struct {
	runs    *prometheus.CounterVec
	success *prometheus.GaugeVec
	skipped *prometheus.CounterVec

	mu     sync.Mutex
	seeded map[[2]string]bool // namespace and job whose series are there
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_job_runs_total",
			Help: "Runs of jobs that have ended on this instance, by how.",
		}, []string{"namespace", "job", "status"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "svc_job_last_success_timestamp_seconds",
			Help: "When a run of the job has last succeeded, as far as this instance knows.",
		}, []string{"namespace", "job"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_job_slots_skipped_total",
			Help: "Slots of schedules without a run, because one was active (overlap) or nobody was there (missed).",
		}, []string{"namespace", "job", "reason"}),
		seeded: map[[2]string]bool{},
	}
	if err := errors.Join(r.Register(m.runs), r.Register(m.success), r.Register(m.skipped)); err != nil {
		return nil, fmt.Errorf("register metrics of jobs: %w", err)
	}
	return m, nil
}

func (m *metrics) ended(namespace string, run *operation.Run) {
	m.runs.WithLabelValues(namespace, run.Name, string(run.Status)).Inc()
	if run.Status == operation.Succeeded {
		m.success.WithLabelValues(namespace, run.Name).Set(float64(run.FinishedAt.Unix()))
	}
}

func (m *metrics) passed(namespace, job, reason string, n int) {
	m.skipped.WithLabelValues(namespace, job, reason).Add(float64(n))
}

// seed makes a job's series exist, with what the history knows of its last success. What fails is tried again by the
// next pass.
func (j *Jobs) seed(ctx context.Context, p *project.Project, job *project.Job) {
	key := [2]string{p.Namespace, job.Name}
	j.metrics.mu.Lock()
	defer j.metrics.mu.Unlock()
	if j.metrics.seeded[key] {
		return
	}
	page, err := j.opts.Runs.List(ctx, j.databaseName(p), operation.Query{
		Kind: operation.Job, Name: job.Name, Status: operation.Succeeded, Limit: 1, NoInput: true,
	})
	if err != nil {
		return
	}
	j.metrics.seeded[key] = true
	for _, status := range []operation.Status{operation.Succeeded, operation.Failed, operation.Cancelled, operation.Lost} {
		j.metrics.runs.WithLabelValues(p.Namespace, job.Name, string(status))
	}
	for _, reason := range []string{reasonOverlap, reasonMissed} {
		j.metrics.skipped.WithLabelValues(p.Namespace, job.Name, reason)
	}
	if len(page.Items) > 0 {
		j.metrics.success.WithLabelValues(p.Namespace, job.Name).Set(float64(page.Items[0].FinishedAt.Unix()))
	}
}

// Forget lets go of the metrics of a namespace's jobs but for those that keep names.
func (j *Jobs) Forget(namespace string, keep func(job string) bool) {
	m := j.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.seeded {
		if key[0] != namespace || keep(key[1]) {
			continue
		}
		delete(m.seeded, key)
		labels := prometheus.Labels{"namespace": namespace, "job": key[1]}
		m.runs.DeletePartialMatch(labels)
		m.success.DeletePartialMatch(labels)
		m.skipped.DeletePartialMatch(labels)
	}
}
