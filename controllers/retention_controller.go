package controllers

import (
	"context"
	"time"

	"github.com/svcctl/svc/pkg/controller"
)

// retentionReconciler has the snapshots be removed that the served generation does not keep. Its key is the id of the project's registration.
// It looks again when something was taken, and at each resync.
type retentionReconciler struct{ Deps }

// Reconcile begins to remove what is not kept. How that ends is told by the conditions of the snapshot reconciler.
func (r *retentionReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	p := r.Registry.ByID(id)
	if p == nil {
		return controller.Result{}, nil
	}
	next, err := r.Snapshots.Retain(ctx, p)
	if err != nil || next.IsZero() {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: max(next.Sub(r.Now()), time.Millisecond)}, nil
}
