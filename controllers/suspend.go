package controllers

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// suspend keeps a project as it is served: its files are not looked at until the registration is resumed. What other
// instances serve, a rollback included, is served here, too.
func (r *projectReconciler) suspend(ctx context.Context, reg system.Project, head system.Head) {
	id := reg.ID.Hex()
	r.Watcher.Unwatch(id)
	r.see(id, "")
	dir, _, _ := project.Locate(r.ProjectsDir, reg.ConfigFile) // scripts that are not there any more are told of by restore
	valid := status.Condition{
		Type: status.ConfigValid, Status: status.True, Reason: status.ReasonLoaded, Message: "as it was served last",
	}
	switch {
	case head.Number == 0:
		valid.Status, valid.Reason, valid.Message = status.Unknown, status.ReasonSuspended, "suspended before it was ever served"
	case !r.restore(ctx, reg, head, dir):
		valid.Status, valid.Reason, valid.Message = status.False, status.ReasonInvalid, "the config that was served last is not valid any more"
	}
	r.Board.SetProblems(id, nil)
	r.Board.Set(id, valid, status.Condition{
		Type: status.OutOfDate, Status: status.Unknown, Reason: status.ReasonSuspended,
		Message: "the project is suspended: its files are not looked at; svcctl project resume " + reg.Namespace + " ends that",
	})
	r.events.tell(id, system.Note{
		Concern: aboutRegistration, Type: system.EventNormal, Reason: status.ReasonSuspended, Message: "the registration is suspended",
	})
}

// follow lets what is served know what its registration says, which is not the files' affair.
func (r *projectReconciler) follow(reg system.Project) error {
	served := r.current(reg)
	if served == nil || served.OrgID == reg.OrgID && served.Suspended == reg.Suspended {
		return nil
	}
	changed := *served
	changed.OrgID, changed.Suspended = reg.OrgID, reg.Suspended
	r.Registry.Set(&changed)
	if served.Suspended == reg.Suspended {
		return nil
	}
	return r.Manager.Trigger(indexController, changed.ID)
}

// resumed says whether the project's conditions still tell that it is suspended.
func (r *projectReconciler) resumed(id string) bool {
	st, _ := r.Board.Get(id)
	c, _ := st.Condition(status.OutOfDate)
	return c.Reason == status.ReasonSuspended
}

// notSuspended refuses what a suspended project is kept from.
func (c *Control) notSuspended(ctx context.Context, id string) error {
	reg, err := c.Projects.ByID(ctx, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil // which whoever looks for it tells
	}
	if err == nil && reg.Suspended {
		return errs.New(errs.Conflict, "suspended",
			"the project %s is suspended, so its files are not looked at: resume it first (svcctl project resume %s)", reg.Namespace, reg.Namespace)
	}
	return err
}
