package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Labels that tell drivers what to do about an error.
const (
	labelTransient = "TransientTransactionError"
	labelUnknown   = "UnknownTransactionCommitResult"
	labelResumable = "ResumableChangeStreamError"
	labelRetry     = "RetryableWriteError"
)

// failure is a command's error as the client is told it.
type failure struct {
	code   code
	text   string
	labels []string
	// labeledOnce says that no other labels are to be added.
	labeledOnce bool
	extra       bson.D // besides, such as keyPattern
	cause       error  // for the log
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.cause }

func fail(c code, format string, args ...any) *failure {
	return &failure{code: c, text: fmt.Sprintf(format, args...)}
}

// notImplemented says what MongoDB has and this endpoint does not.
func notImplemented(what string) *failure {
	return fail(codeNotImplemented, "%s is not supported by this endpoint: leave it out", what)
}

// labeled gives a copy with one label more.
func (f *failure) labeled(label string) *failure {
	c := *f
	c.labels = append(append([]string{}, f.labels...), label)
	return &c
}

// fields are the failure's part of a reply.
func (f *failure) fields() bson.D {
	d := bson.D{
		{Key: "errmsg", Value: f.text},
		{Key: "code", Value: int32(f.code)},
		{Key: "codeName", Value: f.code.name()},
	}
	d = append(d, f.extra...)
	if len(f.labels) > 0 {
		d = append(d, bson.E{Key: "errorLabels", Value: f.labels})
	}
	return d
}

// failureOf gives the server's error for one of ours. Texts that are not public stay here.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if dup, ok := errors.AsType[*store.DuplicateKeyError](err); ok {
		return duplicate("", dup)
	}
	if errors.Is(err, mql.ErrParallelSort) { // some go by the text, since the code says little
		return &failure{code: codeBadValue, text: "cannot sort with keys that are parallel arrays: " + mql.ErrParallelSort.Message}
	}
	e := errs.From(err)
	f := &failure{code: code(document.ServerCodeOf(err)), text: e.Message, cause: err}
	if f.code == 0 {
		f.code = codeOf(e)
	}
	return f
}

// codeOf gives the server's code for an error of the port or of package mql.
func codeOf(e *errs.Error) code {
	switch {
	case errors.Is(e, store.ErrBadName):
		return codeInvalidNamespace
	case errors.Is(e, store.ErrBadID):
		return codeInvalidID
	case e == store.ErrOtherID: // one of mql has the same slug
		return codeImmutableField
	case errors.Is(e, store.ErrHistoryLost):
		return codeHistoryLost
	case errors.Is(e, store.ErrBadPosition):
		return codeInvalidResumeToken
	case errors.Is(e, store.ErrParallelLists):
		return codeCannotIndexParallel
	case errors.Is(e, store.ErrAmbiguousPath):
		return codeAmbiguousPath
	case errors.Is(e, store.ErrDocumentSize):
		return codeObjectTooLarge
	case errors.Is(e, store.ErrDistinctSize):
		return codeDistinctTooLarge
	case errors.Is(e, store.ErrTransactionSize):
		return codeTransactionTooLarge
	case errors.Is(e, store.ErrTransactionTime), errors.Is(e, store.ErrAborted):
		return codeNoSuchTransaction
	case errors.Is(e, store.ErrBusy):
		return codeWriteConflict
	case errors.Is(e, store.ErrClosed):
		return codeShutdown
	case errors.Is(e, store.ErrViewExpired):
		return codeSnapshotTooOld
	case errors.Is(e, store.ErrViewClosed):
		return codeSnapshotUnavailable
	case errors.Is(e, store.ErrBadIndex):
		return codeCannotCreateIndex
	case errors.Is(e, context.Canceled):
		return codeInterrupted
	}
	return codeOfSlug(e)
}

func codeOfSlug(e *errs.Error) code {
	switch e.Code {
	case "bad_filter", "bad_sort", "bad_path", "bad_partial_filter", "projection_failed", "bad_write", "bad_document", "update_failed":
		return codeBadValue
	case "bad_update", "bad_projection":
		return codeFailedToParse
	case "bad_upsert":
		return codeNotSingleValue
	case "sort_memory":
		return codeSortTooLarge
	}
	switch e.Kind {
	case errs.Invalid:
		return codeBadValue
	case errs.Limit:
		return codeExceededMemory
	case errs.TooLarge:
		return codeObjectTooLarge
	case errs.Timeout:
		return codeMaxTimeExpired
	case errs.Full:
		return codeOutOfDiskSpace
	case errs.Conflict:
		return codeWriteConflict
	case errs.Unavailable:
		if e.RetryAfter > 0 { // nothing was done
			return codeExceededTimeLimit
		}
		return codeInternal
	default:
		return codeInternal
	}
}

// duplicateOf gives the error of a key that is taken, or nil.
func duplicateOf(err error) *store.DuplicateKeyError {
	dup, _ := errors.AsType[*store.DuplicateKeyError](err)
	return dup
}

// isAborted says whether an op was not done because another one of its batch failed.
func isAborted(err error) bool { return errors.Is(err, store.ErrAborted) }

// isRetryable says whether a server that answers so may take the same write a moment later.
func isRetryable(c code) bool {
	switch c {
	case 6, 7, 89, codeShutdown, 134, 189, codeExceededTimeLimit, 9001, 10107, 11600, 11602, 13435, 13436, 358:
		return true
	default:
		return false
	}
}

// isTransientCommit says whether a commit that failed so has done nothing, and may go well when the transaction is tried again.
func isTransientCommit(c code) bool {
	switch c {
	case 24, codeWriteConflict, codeSnapshotUnavailable, codeNoSuchTransaction, 267:
		return true
	default:
		return false
	}
}

// isResumable says whether a change stream that failed so may go on behind its last event.
func isResumable(c code) bool {
	switch c {
	case 6, 7, 89, codeShutdown, 189, codeExceededTimeLimit, 9001, 10107, 11600, 11602, 13435, 13436, 63, 150, 13388, 234, 133, codeCursorNotFound:
		return true
	default:
		return false
	}
}

// watches says whether a command fetches more of a change stream.
func (k *call) watches() bool {
	if k.name != "getMore" {
		return false
	}
	id, _ := k.args.value(k.name).AsInt64OK()
	return k.ofStream || k.server.cursors.isStream(id)
}

// labeled adds what tells a driver what it may do about a command's failure.
func (k *call) labeled(f *failure) *failure {
	if f.labeledOnce || k.command == nil {
		return f
	}
	numbered := k.args.value("txnNumber").Type != 0
	within := k.args.value("autocommit").Type != 0
	ends := k.endsTransaction()
	switch {
	case k.watches() && isResumable(f.code) && !slices.Contains(f.labels, labelResumable):
		return f.labeled(labelResumable)
	case k.watches() && f.code == codeChangeStreamFatal:
		return f.labeled("NonResumableChangeStreamError")
	case numbered && ends && isTransientCommit(f.code):
		return f.labeled(labelTransient)
	case numbered && isRetryable(f.code) && (!within || ends):
		return f.labeled(labelRetry)
	case numbered && within && !ends && (isRetryable(f.code) || isTransient(f.code)) && !slices.Contains(f.labels, labelTransient):
		return f.labeled(labelTransient)
	}
	return f
}
