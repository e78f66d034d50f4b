package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
)

// jobPass is how long it takes at most until a pass sees what it was not told of: a clock that was set, a job that was
// resumed on another instance.
const jobPass = 30 * time.Second

// jobReconciler starts what the jobs of the served generation have to run. Its key is the id of the project's
// registration.
type jobReconciler struct {
	Deps

	mu         sync.Mutex
	namespaces map[string]string // by id, of those whose jobs are known
}

// Reconcile starts every run that is due, and comes back when the next one is.
func (r *jobReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	p := r.Registry.ByID(id)
	r.note(id, p)
	if p == nil {
		return controller.Result{}, nil
	}
	if len(p.Jobs) == 0 {
		r.Board.Unset(id, status.JobsScheduled)
		return controller.Result{}, nil
	}
	report, err := r.Jobs.Pass(ctx, p)
	cond := status.Condition{
		Type: status.JobsScheduled, Status: status.True, Reason: status.ReasonScheduled, ObservedGeneration: p.Generation,
		Message: fmt.Sprintf("%d of %d jobs have a schedule, %d are suspended", report.Scheduled, len(p.Jobs), report.Suspended),
	}
	if err != nil {
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonStoreError, "the store failed; svcd tries again by itself"
	}
	if r.Registry.ByID(id) == nil { // unregistered meanwhile
		r.note(id, nil)
		return controller.Result{}, nil
	}
	r.Board.Set(id, cond)
	r.events.tellCondition(id, aboutJobs, cond)
	var result controller.Result
	if report.Scheduled > 0 {
		result.RequeueAfter = jobPass
	}
	if !report.Next.IsZero() {
		result.RequeueAfter = min(jobPass, max(report.Next.Sub(r.Now()), time.Millisecond))
	}
	return result, err
}

// note lets go of the metrics of jobs that are gone.
func (r *jobReconciler) note(id string, p *project.Project) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p == nil {
		r.Jobs.Forget(r.namespaces[id], func(string) bool { return false })
		delete(r.namespaces, id)
		return
	}
	r.namespaces[id] = p.Namespace
	r.Jobs.Forget(p.Namespace, func(job string) bool {
		return slices.ContainsFunc(p.Jobs, func(j *project.Job) bool { return j.Name == job })
	})
}
