package controllers

import (
	"context"
	"fmt"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// rollBack records that an earlier generation is to be served, once it is known that it can be, and gives the number that it has now.
func (r *projectReconciler) rollBack(ctx context.Context, id string, number int64) (int64, error) {
	reg, err := r.Projects.ByID(ctx, id)
	if err != nil {
		return 0, err
	}
	over := system.UnreadableFiles
	dir, entry, err := project.Locate(r.ProjectsDir, reg.ConfigFile)
	if err == nil {
		if p, problems := r.loader.Load(dir, entry); !problems.Err() && p.Namespace == reg.Namespace {
			over = p.Revision
		}
	}
	if _, err := r.compile(ctx, reg, number, dir); err != nil {
		return 0, err
	}
	return r.Generations.RollBack(ctx, id, number, over, system.ActorOf(ctx))
}

// compile makes a kept generation of a project anew.
func (r *projectReconciler) compile(ctx context.Context, reg system.Project, number int64, dir string) (*project.Project, error) {
	c, err := r.Generations.Config(ctx, reg.ID.Hex(), number)
	if err != nil {
		return nil, err
	}
	p, problems := r.loader.LoadBundle(project.Bundle{Entry: c.Entry, Files: c.Files}, dir)
	if problems.Err() {
		return nil, &project.ConfigError{Problems: problems}
	}
	if p.Namespace != reg.Namespace { // an environment variable may name it
		return nil, errs.New(errs.Limit, "namespace_changed", "generation %d names the project %s by now, this registration is for %s", number, p.Namespace, reg.Namespace)
	}
	return p, r.name(ctx, p, r.current(reg), false)
}

// restore serves the latest generation from the store: where a start finds files that can't be served, for a broken config
// interrupts no service, or in the place of the files while a rollback holds. It says whether that is served.
func (r *projectReconciler) restore(ctx context.Context, reg system.Project, head system.Head, dir string) bool {
	if current := r.current(reg); current != nil && current.Generation == head.Number {
		return true
	}
	if head.Number == 0 { // it was never served; the conditions say that nothing is
		return false
	}
	p, err := r.compile(ctx, reg, head.Number, dir)
	if err != nil {
		r.Logger.WarnContext(ctx, "the latest generation can't be served from the store", "namespace", reg.Namespace,
			"generation", head.Number, "error", err)
		return false
	}
	if err := r.swap(ctx, reg, p, head.Number); err != nil {
		r.Logger.ErrorContext(ctx, "indexes and jobs of a restored generation are not looked at", "namespace", reg.Namespace, "error", err)
	}
	r.events.tellServed(p.ID, head, head.Number)
	return true
}

// held says whether a rollback is served in the place of the valid files of a revision: until they are other ones than
// those that it was asked for over, here or on the instance that was asked.
func (r *projectReconciler) held(ctx context.Context, reg system.Project, head system.Head, dir, revision string) bool {
	seen := r.lastSeen(reg.ID.Hex())
	switch {
	case seen != "" && seen != revision: // they have changed
		return false
	case head.Over == "": // over elsewhere by a change of files that has yet to come here, or none was
		current := r.current(reg)
		return current != nil && seen == revision && head.Revision != revision && origin(head, current.Generation) != 0
	}
	return (head.Over == revision || seen == revision) && r.restore(ctx, reg, head, dir)
}

// rolledBack is the condition of a project that is not served from its files.
func (r *projectReconciler) rolledBack(reg system.Project, head system.Head) status.Condition {
	until := "a change of the files or a reload ends that"
	if r.Watch != WatchReload {
		until = "a reload ends that"
	}
	return status.Condition{
		Type: status.OutOfDate, Status: status.True, Reason: status.ReasonRolledBack,
		Message: fmt.Sprintf("by a rollback, generation %d is served again; %s", origin(head, r.current(reg).Generation), until),
	}
}

// origin is the generation that another one is again; 0 when that is none of a rollback.
func origin(head system.Head, number int64) int64 {
	for _, g := range head.History {
		if g.Number == number {
			return g.Of
		}
	}
	return 0
}

// see notes the revision of the files that the next ones are compared with; "": none.
func (r *projectReconciler) see(id, revision string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if revision == "" {
		delete(r.seen, id)
	} else {
		r.seen[id] = revision
	}
}

func (r *projectReconciler) lastSeen(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[id]
}
