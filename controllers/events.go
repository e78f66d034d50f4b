package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// What events are about.
const (
	aboutRegistration = "registration"
	aboutProject      = "project" // which generation is served
	aboutConfig       = "config"  // whether the files can be
	aboutIndexes      = "indexes"
	aboutJobs         = "jobs"
	aboutSearches     = "searches"
	aboutVectors      = "vectors" // of searches
	aboutSnapshots    = "snapshots"
	aboutChecks       = "checks" // of snapshots
	aboutRuns         = "runs"
	aboutRestores     = "restores" // that were left
)

const (
	eventPause = time.Second // between two writes of the events of one project
	maxPending = 2 * system.KeptEvents
)

// recorder writes what reconcilers tell of, behind them: a store that is slow or fails holds up none. It is a reconciler
// itself, whose key is the id of the registration.
type recorder struct {
	Deps

	mu      sync.Mutex
	pending map[string][]system.Note          // by id
	states  map[string]map[string]system.Note // by id and concern: what was told last
	written map[string]time.Time              // by id
}

// tell takes notes about a project. What was told last is not told again.
func (r *recorder) tell(id string, notes ...system.Note) {
	if r == nil {
		return
	}
	r.mu.Lock()
	news := false
	for _, n := range notes {
		if !n.Happened {
			if r.states[id][n.Concern] == n {
				continue
			}
			if r.states[id] == nil {
				r.states[id] = map[string]system.Note{}
			}
			r.states[id][n.Concern] = n
		}
		n.At = r.Now()
		news = true
		r.pending[id] = append(r.pending[id], n)
		if over := len(r.pending[id]) - maxPending; over > 0 {
			r.pending[id] = r.pending[id][over:]
		}
	}
	r.mu.Unlock()
	if news {
		_ = r.Manager.Trigger(eventController, id) // there is one: New has added it
	}
}

// Reconcile writes what is pending of a project.
func (r *recorder) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	r.mu.Lock()
	notes, last := r.pending[id], r.written[id]
	r.mu.Unlock()
	if len(notes) == 0 {
		return controller.Result{}, nil
	}
	if pause := last.Add(eventPause).Sub(r.Now()); pause > 0 && pause <= eventPause {
		return controller.Result{RequeueAfter: pause}, nil
	}
	if _, err := r.Projects.ByID(ctx, id); err != nil {
		if errors.Is(err, errs.ErrNotFound) {
			r.forget(id)
			return controller.Result{}, nil
		}
		return controller.Result{}, err
	}
	r.mu.Lock()
	notes = r.pending[id]
	delete(r.pending, id)
	r.written[id] = r.Now()
	r.mu.Unlock()
	err := r.Events.Append(ctx, id, notes...)
	if err != nil { // they are tried again, before those that have come meanwhile
		r.mu.Lock()
		r.pending[id] = append(notes, r.pending[id]...)
		r.mu.Unlock()
	}
	return controller.Result{}, err
}

// forget lets go of a project whose registration is gone.
func (r *recorder) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
	delete(r.states, id)
	delete(r.written, id)
}

// tellCondition tells how a condition stands, once that is known.
func (r *recorder) tellCondition(id, concern string, c status.Condition) {
	n := system.Note{Concern: concern, Type: system.EventNormal, Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration}
	switch c.Status {
	case status.Unknown:
		return
	case status.False:
		n.Type = system.EventWarning
	case status.True:
	}
	r.tell(id, n)
}

// tellLoaded tells that files are valid again that could not be served, as a generation that is served with them or in spite of
// them.
func (r *recorder) tellLoaded(id string, generation int64) {
	r.tell(id, system.Note{
		Concern: aboutConfig, Type: system.EventNormal, Reason: status.ReasonLoaded, Message: "the files are valid", Generation: generation,
		Recovery: true,
	})
}

// tellFailed tells of a run of a job that has failed.
func (r *recorder) tellFailed(id, job, why string) {
	r.tell(id, system.Note{
		Concern: aboutRuns, Type: system.EventWarning, Reason: status.ReasonJobFailed, Message: why, Object: "job/" + job, Happened: true,
	})
}

// tellLost tells of a run of a job or of snapshots whose instance is gone.
func (r *recorder) tellLost(ctx context.Context, namespace string, run *operation.Run) {
	if run.Kind == operation.Action || run.Kind == operation.Search {
		return
	}
	id := r.idOf(ctx, namespace)
	switch {
	case id == "":
	case run.Kind == operation.Job:
		r.tellFailed(id, run.Name, run.Error.Message)
	default:
		r.tell(id, system.Note{
			Concern: aboutRuns, Type: system.EventWarning, Reason: status.ReasonRunLost, Happened: true,
			Message: "the " + string(run.Kind) + " run " + run.ID + " (" + run.Name + "): " + run.Error.Message,
		})
	}
}

// idOf is the id of a project; "": it is unregistered, and has no events, or that can't be found out.
func (r *recorder) idOf(ctx context.Context, namespace string) string {
	p, err := r.Projects.ByNamespace(ctx, namespace)
	if err == nil {
		return p.ID.Hex()
	}
	if !errors.Is(err, errs.ErrNotFound) {
		r.Logger.WarnContext(ctx, "no event tells of a run whose instance is gone", "project", namespace, "error", err)
	}
	return ""
}

// tellRestore tells of a restore that was left, and has been ended: the project whose records it is about, and the one whose run it was.
func (r *recorder) tellRestore(ctx context.Context, e snapshot.Ended) {
	if r == nil {
		return
	}
	n := system.Note{
		Concern: aboutRestores, Type: system.EventWarning, Reason: status.ReasonRestoreUndone, Happened: true,
		Message: "a restore that was left, by an instance that is gone or by a failure, has been taken back: records and files are as they were before",
	}
	if e.Snapshot != "" {
		n.Object = "snapshot/" + e.Snapshot
	}
	if e.Forward {
		n.Type, n.Reason = system.EventNormal, status.ReasonRestored
		n.Message = "a restore that was left, by an instance that is gone or by a failure, has been done: records and files are those of the snapshot"
		if e.Safety != "" {
			n.Message += "; the snapshot " + e.Safety + " has what was before"
		}
	}
	namespaces := []string{e.Project.Namespace}
	if of := e.Run.Namespace; of != "" && of != e.Project.Namespace {
		n.Message = "restore into " + e.Project.Namespace + ": " + n.Message
		namespaces = append(namespaces, of)
	}
	for _, namespace := range namespaces {
		if id := r.idOf(ctx, namespace); id != "" {
			r.tell(id, n)
		}
	}
}

// tellServed tells which generation is served now, and whether it is an earlier one.
func (r *recorder) tellServed(id string, head system.Head, number int64) {
	n := system.Note{
		Concern: aboutProject, Type: system.EventNormal, Reason: status.ReasonServing, Generation: number, Once: true,
		Message: fmt.Sprintf("generation %d is served", number),
	}
	if of := origin(head, number); of != 0 {
		n.Reason, n.Message = status.ReasonRolledBack, fmt.Sprintf("generation %d is served, which is generation %d again", number, of)
	}
	r.tell(id, n)
}
