package snapshot

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// outcome notes what the restore has come to, all but done.
func (r *restore) outcome(j *journal) (err error) {
	for _, p := range r.parts {
		r.result.Collections = append(r.result.Collections, p.out)
	}
	r.result.Warnings, j.Safety = r.t.warnings, r.result.Safety
	if r.o.Run.Outcome != nil {
		j.Outcome, err = r.o.Run.Outcome(&r.result)
	}
	return err
}

// swap is the step in which everything changes.
func (r *restore) swap(ctx context.Context, j *journal, shut gate.Shut) error {
	r.t.begin(Swapping, 1, 0)
	if err := r.outcome(j); err != nil {
		return err
	}
	if err := shut.Reads(ctx); err != nil {
		return err
	}
	failed := r.s.commit(ctx, r.p, j)
	if errors.Is(failed, store.ErrFull) && r.isLoading(ctx) { // it was not written, and nothing has to be shut until there is space
		return failed
	}
	ctx = context.WithoutCancel(ctx)
	// From here on what is stored says what is to be done: of a step that has failed nobody knows whether it was taken.
	forward, err := r.s.settleOwn(ctx, r.p, j.Restore, settleTries)
	r.decided = true
	switch {
	case err != nil:
		r.s.stick(r.p, shut) // what is stored may be a mixture
		return unfinished(errors.Join(failed, err))
	case failed != nil && !forward:
		return failed
	}
	r.t.done(1, 0)
	shut.Open()
	r.s.replaced(r.p)
	r.t.tell()
	return nil
}

// errUnfinished is for a restore that could not be ended behind the point from which on it may be decided.
var errUnfinished = errs.New(errs.Unavailable, "restore_unfinished",
	"the disk or the store failed in the last step of the restore, so the project is closed: svcd tries every second to end it, with all restored or all as before, and this run says then which; the service's log says what fails")

// IsUnfinished says that a restore has failed, and that somebody ends it still, who tells how (Options.Ended).
func IsUnfinished(err error) bool { return err != nil && errs.From(err).Code == errUnfinished.Code }

// isLoading says that nothing is decided of it yet.
func (r *restore) isLoading(ctx context.Context) bool {
	j, err := r.s.readJournal(ctx, r.p)
	return err == nil && j != nil && j.Restore == r.short && j.Step == stepLoading
}

// unfinished is errUnfinished, with what is full where that is why.
func unfinished(err error) error {
	if e := errs.From(err); e.Kind == errs.Full {
		return errs.New(errs.Full, errUnfinished.Code, "%s; what has failed: %s", errUnfinished.Message, e.Message).With(err)
	}
	return errUnfinished.With(err)
}

// giveUp removes what it has made, first of all what takes up space: a disk that is full takes no note. What can't be removed is when somebody else begins, or at the
// next start.
func (r *restore) giveUp(ctx context.Context, j *journal) {
	err := r.s.undo(ctx, r.p, j) // also what was made after another process had taken this one for dead
	_, left := r.s.settleOwn(ctx, r.p, j.Restore, 1)
	err = errors.Join(err, left)
	if err != nil {
		r.s.o.Logger.WarnContext(ctx, "what a restore has made is left, and removed later", "namespace", r.p.Namespace, "error", err)
	}
}
