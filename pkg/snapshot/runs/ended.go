package runs

import (
	"context"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
)

// ErrUndone is how the run of a restore ends whose instance is gone, where nothing was restored.
var ErrUndone = errs.New(errs.Conflict, "restore_undone",
	"the instance of svcd that did this is gone, or stood still for too long, and what it had begun was taken back: records and files are as they were before; start it again")

// Ended is for snapshot.Options: it gives the run of a restore the end that the restore has come to, whoever has brought it there.
func (s *Service) Ended(ctx context.Context, e snapshot.Ended) error {
	if e.Run.ID == "" {
		return nil
	}
	outcome, failed := operation.Outcome{Subject: e.Snapshot}, error(ErrUndone)
	if e.Forward {
		failed = nil
	}
	if len(e.Outcome) > 0 {
		result, err := document.ParseJSON(e.Outcome)
		if err != nil { // that it is done counts for more
			s.log.WarnContext(ctx, "what is noted of a restore can't be read", "run", e.Run.ID, "error", err)
		} else {
			outcome.Result = result
		}
	}
	return s.runs.Settle(ctx, project.DatabaseName(e.Run.Namespace), e.Run.ID, outcome, failed)
}

// Inherit has what restores have left whose instances are gone be ended by end, before their runs are given up. end is told the database of the records.
// It is to be called before the first operation.Runs.Patrol.
func (s *Service) Inherit(end func(ctx context.Context, database string) error) {
	s.runs.Inherit(operation.Restore, func(ctx context.Context, database string, run *operation.Run) (left bool, err error) {
		into, err := s.restoredInto(ctx, database, run.ID)
		if err != nil {
			return true, err
		}
		if left, err = s.snapshots.HasLeft(ctx, into, run.ID); err != nil || !left {
			return left, err
		}
		if err := end(ctx, into); err != nil { // it goes on still, or nobody here knows the project yet
			return true, err
		}
		return s.snapshots.HasLeft(ctx, into, run.ID)
	})
}

// restoredInto is the database whose records a run restores.
func (s *Service) restoredInto(ctx context.Context, database, id string) (string, error) {
	run, err := s.runs.Find(ctx, database, id, operation.Restore)
	if err != nil {
		return "", err
	}
	if in, ok := run.Input.DocumentOK(); ok {
		if into, ok := in.Lookup("into").StringValueOK(); ok {
			return project.DatabaseName(into), nil
		}
	}
	return database, nil
}
