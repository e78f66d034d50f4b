package archive

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/svcctl/svc/pkg/errs"
)

// side is who refuses: one who writes a backup, or one who reads it.
type side struct {
	what string
	kind errs.Kind // of what is over a limit
	fix  string    // what to do about a file
}

var (
	writing = side{"snapshot", errs.Limit, "rename or remove it, and make the backup of a new snapshot"} //nolint:gochecknoglobals // a constant
	reading = side{"backup", errs.TooLarge, "it is refused whole; use the backup as it came from svcd"}  //nolint:gochecknoglobals // a constant
)

// refuse is the error about a file that may not be in a backup.
func (s side) refuse(name, problem string) error {
	return errs.New(errs.Invalid, s.what+"_invalid", "the file %s of the %s %s: %s", quote(name), s.what, problem, s.fix)
}

func (s side) tooLarge(format string, args ...any) error {
	return errs.New(s.kind, s.what+"_too_large", "the %s %s: raise the limit, or leave out collections or media", s.what, fmt.Sprintf(format, args...))
}

// refused is the error about a stream that is no backup.
func refused(problem string) *errs.Error {
	return errs.New(errs.Invalid, "backup_invalid", "the backup %s: it is refused whole; use the backup as it came from svcd", problem)
}

// noArchive is the error about a stream that is something else.
func noArchive() *errs.Error {
	return errs.New(errs.Invalid, "backup_invalid", "the backup is not in the form that svcd writes, which is .tar.zst: it is no archive of svc; download one of a snapshot or a backup, and send that as it comes")
}

// unread is the error of a read from the stream.
func unread(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errs.New(errs.Invalid, "backup_truncated", "the backup ends too early: it did not arrive whole; download or send it again").With(err)
	}
	return err
}

// unstored is the error of a write to the disk.
func unstored(err error, doing string) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return errs.New(errs.Full, "backup_disk_full", "the disk that snapshots are on is full: nothing was restored; make room on it first, such as by deleting snapshots").With(err)
		}
	}
	return errs.Wrap(err, doing)
}
