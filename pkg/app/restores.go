package app

import (
	"context"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/barrier"
	"github.com/svcctl/svc/pkg/system"
)

// openGates makes what keeps requests from records that are being replaced: of this process, or of all that share the store.
func (a *App) openGates(alone bool) snapshot.Gate {
	if alone {
		return a.gate
	}
	a.barrier = barrier.New(barrier.Options{
		Gate: a.gate, DB: a.store.Database(system.DatabaseName), Holder: holder(), Logger: a.cfg.Logger, Abandoned: a.abandoned, Wanted: a.wanted,
	})
	return a.barrier
}

// wanted has it known later since when a restore of another instance has been silent: else what that one holds would be waited for once more when it is dead.
func (a *App) wanted(ctx context.Context, database string) {
	namespace, ok := strings.CutPrefix(database, project.DatabaseName(""))
	if !ok {
		return
	}
	if err := a.taken.WatchOthers(ctx, namespace); err != nil && ctx.Err() == nil { // then it is waited for once more
		a.cfg.Logger.DebugContext(ctx, "a restore of another instance can't be looked at now", "namespace", namespace, "error", err)
	}
}

// abandoned ends the restore of an instance that is gone. Of a project that is not served here nobody knows whether there is one; where none is
// registered any more, there is nothing to end. One that a restore makes is served nowhere, and may be made once more by now: who makes it waits
// for what the one before has left at the gates.
func (a *App) abandoned(ctx context.Context, database string) error {
	for _, p := range a.registry.List() {
		if project.DatabaseName(p.Namespace) == database {
			return a.taken.RecoverAbandoned(ctx, p)
		}
	}
	registered, err := a.projects.All(ctx)
	if err != nil {
		return err
	}
	for _, p := range registered {
		switch {
		case project.DatabaseName(p.Namespace) != database:
		case p.Founding:
			return a.taken.RecoverAbandoned(ctx, &project.Project{ID: p.ID.Hex(), Namespace: p.Namespace, OrgID: p.OrgID})
		default:
			return errs.ErrProjectNotFound
		}
	}
	return nil
}

// replaced has what depends on records be looked at: what the config wants of indexes may be otherwise in the snapshot. Searches, streams of
// changes and whoever else follows the feed learn of it there.
func (a *App) replaced(p *project.Project) {
	if a.control == nil {
		return
	}
	if err := a.control.Replaced(p.ID); err != nil {
		a.cfg.Logger.Warn("the indexes of restored records are looked at later", "namespace", p.Namespace, "error", err)
	}
}

// restoreLeft has an event tell of a restore that was left, and has been ended.
func (a *App) restoreLeft(ctx context.Context, e snapshot.Ended) {
	if a.control != nil {
		a.control.RestoreEnded(ctx, e)
	}
}

// snapshotsChanged has what conditions and metrics say of a project's snapshots be said anew.
func (a *App) snapshotsChanged(p *project.Project) {
	if a.control != nil {
		a.control.SnapshotsChanged(p.ID)
	}
}
