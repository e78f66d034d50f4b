package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// code is one of the server's error codes. Drivers and scripts go by them.
type code int32

const (
	codeInternal              code = 1
	codeBadValue              code = 2
	codeFailedToParse         code = 9
	codeUnauthorized          code = 13
	codeTypeMismatch          code = 14
	codeOverflow              code = 15
	codeInvalidLength         code = 16
	codeProtocolError         code = 17
	codeAuthenticationFailed  code = 18
	codeIllegalOperation      code = 20
	codeNamespaceNotFound     code = 26
	codeIndexNotFound         code = 27
	codePathNotViable         code = 28
	codeConflictingOperators  code = 40
	codeCursorNotFound        code = 43
	codeNoMatchingDocument    code = 47
	codeNamespaceExists       code = 48
	codeMaxTimeExpired        code = 50
	codeDollarPrefixed        code = 52
	codeInvalidID             code = 53
	codeNotSingleValue        code = 54
	codeEmptyFieldName        code = 56
	codeCommandNotFound       code = 59
	codeImmutableField        code = 66
	codeCannotCreateIndex     code = 67
	codeInvalidOptions        code = 72
	codeInvalidNamespace      code = 73
	codeIndexOptionsConflict  code = 85
	codeIndexKeySpecsConflict code = 86
	codeShutdown              code = 91
	codeWriteConflict         code = 112
	codeExceededMemory        code = 146
	codeCannotIndexParallel   code = 171
	codeQueryPlanKilled       code = 175
	codeInterrupted           code = 11601
	codeTransactionTooOld     code = 225
	codeNotImplemented        code = 238
	codeSnapshotTooOld        code = 239
	codeSnapshotUnavailable   code = 246
	codeNoSuchTransaction     code = 251
	codeTransactionCommitted  code = 256
	codeTransactionTooLarge   code = 257
	codeInvalidResumeToken    code = 260
	codeNotInTransaction      code = 263
	codeHistoryLost           code = 286
	codeChangeStreamFatal     code = 280
	codeSortTooLarge          code = 292
	codeDistinctTooLarge      code = 17217
	codeObjectTooLarge        code = 10334
	codeDuplicateKey          code = 11000
	codeOutOfDiskSpace        code = 14031
	codeAmbiguousPath         code = 16746
	codePositionalNotFound    code = 51246
	codeBadSort               code = 15974
	codeBadSortOrder          code = 15975
	codeEmptyInPath           code = 15998
	codeEmptyPath             code = 40352
	codeStageFields           code = 40323
	codeInvalidIndexOption    code = 197
	codeBadFieldPath          code = 16410
	codeNegative              code = 51024
	codeUnknownField          code = 40415
	codeMissingField          code = 40414
	codeUnknownStage          code = 40324
)

// name is how the server calls a code. Most of the five digits have none but their number.
func (c code) name() string {
	switch c {
	case codeInternal:
		return "InternalError"
	case codeBadValue:
		return "BadValue"
	case codeFailedToParse:
		return "FailedToParse"
	case codeUnauthorized:
		return "Unauthorized"
	case codeTypeMismatch:
		return "TypeMismatch"
	case codeOverflow:
		return "Overflow"
	case codeInvalidLength:
		return "InvalidLength"
	case codeProtocolError:
		return "ProtocolError"
	case codeAuthenticationFailed:
		return "AuthenticationFailed"
	case codeIllegalOperation:
		return "IllegalOperation"
	case codeNamespaceNotFound:
		return "NamespaceNotFound"
	case codeIndexNotFound:
		return "IndexNotFound"
	case codePathNotViable:
		return "PathNotViable"
	case codeConflictingOperators:
		return "ConflictingUpdateOperators"
	case codeCursorNotFound:
		return "CursorNotFound"
	case codeNamespaceExists:
		return "NamespaceExists"
	case codeMaxTimeExpired:
		return "MaxTimeMSExpired"
	case codeDollarPrefixed:
		return "DollarPrefixedFieldName"
	case codeInvalidID:
		return "InvalidIdField"
	case codeNotSingleValue:
		return "NotSingleValueField"
	case codeEmptyFieldName:
		return "EmptyFieldName"
	case codeCommandNotFound:
		return "CommandNotFound"
	case codeImmutableField:
		return "ImmutableField"
	default:
		return c.laterName()
	}
}

func (c code) laterName() string {
	switch c {
	case codeCannotCreateIndex:
		return "CannotCreateIndex"
	case codeInvalidOptions:
		return "InvalidOptions"
	case codeInvalidNamespace:
		return "InvalidNamespace"
	case codeIndexOptionsConflict:
		return "IndexOptionsConflict"
	case codeIndexKeySpecsConflict:
		return "IndexKeySpecsConflict"
	case codeShutdown:
		return "ShutdownInProgress"
	case codeWriteConflict:
		return "WriteConflict"
	case codeExceededMemory:
		return "ExceededMemoryLimit"
	case codeCannotIndexParallel:
		return "CannotIndexParallelArrays"
	case codeQueryPlanKilled:
		return "QueryPlanKilled"
	case codeInterrupted:
		return "Interrupted"
	case codeTransactionTooOld:
		return "TransactionTooOld"
	case codeNotImplemented:
		return "NotImplemented"
	case codeSnapshotTooOld:
		return "SnapshotTooOld"
	case codeSnapshotUnavailable:
		return "SnapshotUnavailable"
	case codeNoSuchTransaction:
		return "NoSuchTransaction"
	case codeTransactionCommitted:
		return "TransactionCommitted"
	case codeTransactionTooLarge:
		return "TransactionTooLarge"
	case codeInvalidResumeToken:
		return "InvalidResumeToken"
	case codeNotInTransaction:
		return "OperationNotSupportedInTransaction"
	case codeInvalidIndexOption:
		return "InvalidIndexSpecificationOption"
	case codeNoMatchingDocument:
		return "NoMatchingDocument"
	case codeHistoryLost:
		return "ChangeStreamHistoryLost"
	case codeSortTooLarge:
		return "QueryExceededMemoryLimitNoDiskUseAllowed"
	case codeObjectTooLarge:
		return "BSONObjectTooLarge"
	case codeDuplicateKey:
		return "DuplicateKey"
	case codeOutOfDiskSpace:
		return "OutOfDiskSpace"
	default:
		return c.rareName()
	}
}

func (c code) rareName() string {
	switch c {
	case 68:
		return "IndexAlreadyExists"
	case 34:
		return "CannotBackfillArray"
	case 57:
		return "DottedFieldName"
	case 117:
		return "ConflictingOperationInProgress"
	case 143:
		return "CursorInUse"
	case 168:
		return "InvalidPipelineOperator"
	case 217:
		return "IncompleteTransactionHistory"
	case 232:
		return "MaxSubPipelineDepthExceeded"
	case 237:
		return "CursorKilled"
	case 241:
		return "ConversionFailure"
	case codeChangeStreamFatal:
		return "ChangeStreamFatalError"
	case 323:
		return "APIStrictError"
	default:
		return "Location" + strconv.Itoa(int(c))
	}
}

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
	case 6, 7, 89, codeShutdown, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436, 358:
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
	case 6, 7, 89, codeShutdown, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436, 63, 150, 13388, 234, 133, codeCursorNotFound:
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
	ends := k.name == "commitTransaction" || k.name == "abortTransaction"
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
