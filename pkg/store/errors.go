package store

import (
	"context"
	"errors"
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

// ErrCanceled and ErrDeadline are what Ended gives. They wrap what ctx.Err() says.
var (
	ErrCanceled = &errs.Error{
		Kind: errs.Unavailable, Code: "canceled", Message: "the operation was canceled", Cause: context.Canceled,
	}
	ErrDeadline = &errs.Error{
		Kind: errs.Timeout, Code: "timeout", Message: "the operation took too long: try again", Cause: context.DeadlineExceeded,
	}
)

// Ended gives the error of a method whose ctx has ended, and nil as long as it has not. Adapters ask it before they begin,
// and wherever they stop because of ctx, so that the error is the same in all of them.
func Ended(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return ErrCanceled
	default:
		return ErrDeadline
	}
}

// Errors of the port's methods that are the same in every adapter.
var (
	ErrClosed          = errs.New(errs.Unavailable, "store_closed", "the store is closed: the service is stopping")
	ErrBusy            = errs.New(errs.Unavailable, "busy", "others write to the same documents all the time: try again")
	ErrTransactionTime = errs.New(errs.Limit, "transaction_too_long", "the transaction took too long: do less in one")
	ErrTransactionSize = errs.New(errs.Limit, "transaction_too_large", "the transaction writes too much: do less in one")
	ErrViewExpired     = errs.New(errs.Unavailable, "view_expired", "this view of the store is too old: open a new one")
	ErrViewClosed      = errs.New(errs.Unavailable, "view_closed", "this view of the store is closed")
	ErrDistinctSize    = errs.New(errs.Limit, "distinct_too_large", "more than 16 MiB of different values: narrow the filter")
	ErrFull            = errs.New(errs.Full, "store_full", "not written: the store has no space left; free some and try again")

	ErrBadName      = errs.New(errs.Invalid, "bad_name", "the name of the database or collection is not valid")
	ErrBadPosition  = errs.New(errs.Invalid, "bad_position", "the position in the feed is not one that this store gave for this database")
	ErrBadPage      = errs.New(errs.Invalid, "bad_position", "the position to go on from does not belong to this sort order")
	ErrBadSort      = errs.New(errs.Invalid, "bad_sort", "a sort has 32 fields at most, and each is the path of a field")
	ErrBadPath      = errs.New(errs.Invalid, "bad_path", "this is not the path of a field: no name in it is empty or begins with $")
	ErrBadWrite     = errs.New(errs.Invalid, "bad_write", "the parts of this write don't go together")
	ErrBadID        = errs.New(errs.Invalid, "bad_id", "an _id can't be missing, a list, a regular expression or undefined, and no name in it begins with $")
	ErrOtherID      = errs.New(errs.Invalid, "update_failed", "the _id of a document can't be changed")
	ErrBadDocument  = errs.New(errs.Invalid, "bad_document", "the document is not valid BSON, has two _id, is nested more than 100 levels deep, or replaces another and has a field that begins with $")
	ErrDocumentSize = errs.New(errs.TooLarge, "document_too_large", "a document can have 16 MiB at most")

	ErrCollectionExists = errs.New(errs.Conflict, "collection_exists", "a collection of this name exists: choose another name, or ask for it to be replaced")
	ErrIndexExists      = errs.New(errs.Conflict, "index_exists", "an index of this name exists with another definition, or its definition under another name")
	ErrBadIndex         = errs.New(errs.Invalid, "bad_index",
		"an index needs a name that does not begin with _id and 1 to 32 different fields; it can't be both sparse and partial; "+
			"one that lets documents expire has one field, and a time in whole seconds up to 2147483647")
	ErrParallelLists = errs.New(errs.Invalid, "parallel_arrays", "an index can't span two lists of one document")
	ErrAmbiguousPath = errs.New(errs.Invalid, "ambiguous_path", "an index path names both a position and a field of a list's items")
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
