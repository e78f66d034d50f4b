package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Errors, for errors.Is.
var (
	ErrNotFound = errs.New(errs.NotFound, "snapshot_not_found", "there is no snapshot of this id in the project: look at the list for those that there are")
	ErrPinned   = errs.New(errs.Conflict, "snapshot_pinned", "the snapshot is pinned: unpin it to delete it")
	ErrNoFolder = errs.New(errs.Invalid, "no_snapshots", "the project has no folder for snapshots: register it with its directory")
	ErrInUse    = errs.NewBusy("snapshot_in_use", "the snapshot is being read, such as by a check, a download or a restore: try again when that has ended")
	// ErrDamaged is for snapshots that are not what was written; the message says what is wrong.
	ErrDamaged = errs.New(errs.Conflict, "snapshot_damaged", "the snapshot is damaged")
)

// damaged is ErrDamaged with what is wrong.
func damaged(format string, args ...any) error {
	return errs.New(ErrDamaged.Kind, ErrDamaged.Code, "the snapshot is damaged: "+format, args...)
}

// unwritten is the error of something on the disk that failed.
func unwritten(err error, doing string) error {
	if _, ours := errors.AsType[*errs.Error](err); ours || err == nil {
		return err
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return errs.New(errs.Full, "snapshots_full", "the disk that snapshots are on is full: nothing was changed; make room on it first, such as by deleting snapshots").With(err)
		}
	}
	for _, closed := range []error{syscall.EROFS, fs.ErrPermission} {
		if errors.Is(err, closed) {
			return errs.New(errs.Unavailable, "snapshots_unwritable",
				"the service may not write to the folder of the project's snapshots (snapshotPath of its config), or not read what is in it: let svcd do so, or mount a disk there").With(err)
		}
	}
	return errs.Wrap(err, doing)
}

// ended turns the error of a context into that of an operation which was canceled.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) { // such as a lost lease
		return cause
	}
	return store.Ended(ctx)
}

// cause is what the system says about a failure, without paths.
func cause(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "it is not there"
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return "it can't be read"
}
