package store

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// Errors of single ops, for errors.Is.
var (
	ErrStale   = errs.New(errs.Precondition, "stale", "the record has changed meanwhile")
	ErrAborted = errs.New(errs.Conflict, "aborted", "not written: another item of the same atomic write failed")
	// ErrHistoryLost is for positions in the feed that are too old.
	ErrHistoryLost = errs.New(errs.Conflict, "history_lost", "the changes since then are no longer kept: read everything anew")
)

// DuplicateKeyError says that a write would give two documents one key of a unique index.
type DuplicateKeyError struct {
	Index string   // name of the index; "_id" for the primary key
	Paths []string // its key fields
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("duplicate key in index %s (%v)", e.Index, e.Paths)
}

// ViolationError says that existing documents share a key of a unique index to be built.
type ViolationError struct {
	Index string
	IDs   []bson.RawValue // the first offending documents, at most 5
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("%d documents violate unique index %s", len(e.IDs), e.Index)
}
