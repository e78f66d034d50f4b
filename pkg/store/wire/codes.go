package wire

import "strconv"

// code is one of the server's error codes. Drivers and scripts go by them.
type code int32

// The codes that are given in several places. Others stand where they are given.
const (
	codeInternal              code = 1
	codeBadValue              code = 2
	codeFailedToParse         code = 9
	codeUnauthorized          code = 13
	codeTypeMismatch          code = 14
	codeInvalidLength         code = 16
	codeProtocolError         code = 17
	codeAuthenticationFailed  code = 18
	codeIllegalOperation      code = 20
	codeNamespaceNotFound     code = 26
	codeIndexNotFound         code = 27
	codeCursorNotFound        code = 43
	codeNoMatchingDocument    code = 47
	codeNamespaceExists       code = 48
	codeMaxTimeExpired        code = 50
	codeDollarPrefixed        code = 52
	codeInvalidID             code = 53
	codeNotSingleValue        code = 54
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
	codeInvalidIndexOption    code = 197
	codeTransactionTooOld     code = 225
	codeNotImplemented        code = 238
	codeSnapshotTooOld        code = 239
	codeSnapshotUnavailable   code = 246
	codeNoSuchTransaction     code = 251
	codeTransactionCommitted  code = 256
	codeTransactionTooLarge   code = 257
	codeInvalidResumeToken    code = 260
	codeExceededTimeLimit     code = 262 // of those that drivers try again after, the one that says least of the server
	codeNotInTransaction      code = 263
	codeChangeStreamFatal     code = 280
	codeHistoryLost           code = 286
	codeSortTooLarge          code = 292
	codeObjectTooLarge        code = 10334
	codeDuplicateKey          code = 11000
	codeInterrupted           code = 11601
	codeOutOfDiskSpace        code = 14031
	codeBadSort               code = 15974
	codeBadSortOrder          code = 15975
	codeEmptyInPath           code = 15998
	codeBadFieldPath          code = 16410
	codeAmbiguousPath         code = 16746
	codeDistinctTooLarge      code = 17217
	codeStageFields           code = 40323
	codeEmptyPath             code = 40352
	codeMissingField          code = 40414
	codeUnknownField          code = 40415
	codeNegative              code = 51024
)

// codeNames are how the server calls codes.
//
//nolint:gochecknoglobals // never changed
var codeNames = map[code]string{
	codeInternal:              "InternalError",
	codeBadValue:              "BadValue",
	codeFailedToParse:         "FailedToParse",
	codeUnauthorized:          "Unauthorized",
	codeTypeMismatch:          "TypeMismatch",
	15:                        "Overflow",
	codeInvalidLength:         "InvalidLength",
	codeProtocolError:         "ProtocolError",
	codeAuthenticationFailed:  "AuthenticationFailed",
	codeIllegalOperation:      "IllegalOperation",
	codeNamespaceNotFound:     "NamespaceNotFound",
	codeIndexNotFound:         "IndexNotFound",
	28:                        "PathNotViable",
	34:                        "CannotBackfillArray",
	40:                        "ConflictingUpdateOperators",
	codeCursorNotFound:        "CursorNotFound",
	codeNoMatchingDocument:    "NoMatchingDocument",
	codeNamespaceExists:       "NamespaceExists",
	codeMaxTimeExpired:        "MaxTimeMSExpired",
	codeDollarPrefixed:        "DollarPrefixedFieldName",
	codeInvalidID:             "InvalidIdField",
	codeNotSingleValue:        "NotSingleValueField",
	56:                        "EmptyFieldName",
	57:                        "DottedFieldName",
	codeCommandNotFound:       "CommandNotFound",
	codeImmutableField:        "ImmutableField",
	codeCannotCreateIndex:     "CannotCreateIndex",
	68:                        "IndexAlreadyExists",
	codeInvalidOptions:        "InvalidOptions",
	codeInvalidNamespace:      "InvalidNamespace",
	codeIndexOptionsConflict:  "IndexOptionsConflict",
	codeIndexKeySpecsConflict: "IndexKeySpecsConflict",
	codeShutdown:              "ShutdownInProgress",
	codeWriteConflict:         "WriteConflict",
	117:                       "ConflictingOperationInProgress",
	143:                       "CursorInUse",
	codeExceededMemory:        "ExceededMemoryLimit",
	168:                       "InvalidPipelineOperator",
	codeCannotIndexParallel:   "CannotIndexParallelArrays",
	codeQueryPlanKilled:       "QueryPlanKilled",
	codeInvalidIndexOption:    "InvalidIndexSpecificationOption",
	217:                       "IncompleteTransactionHistory",
	codeTransactionTooOld:     "TransactionTooOld",
	232:                       "MaxSubPipelineDepthExceeded",
	237:                       "CursorKilled",
	codeNotImplemented:        "NotImplemented",
	codeSnapshotTooOld:        "SnapshotTooOld",
	241:                       "ConversionFailure",
	codeSnapshotUnavailable:   "SnapshotUnavailable",
	codeNoSuchTransaction:     "NoSuchTransaction",
	codeTransactionCommitted:  "TransactionCommitted",
	codeTransactionTooLarge:   "TransactionTooLarge",
	codeInvalidResumeToken:    "InvalidResumeToken",
	codeExceededTimeLimit:     "ExceededTimeLimit",
	codeNotInTransaction:      "OperationNotSupportedInTransaction",
	codeChangeStreamFatal:     "ChangeStreamFatalError",
	codeHistoryLost:           "ChangeStreamHistoryLost",
	codeSortTooLarge:          "QueryExceededMemoryLimitNoDiskUseAllowed",
	323:                       "APIStrictError",
	codeObjectTooLarge:        "BSONObjectTooLarge",
	codeDuplicateKey:          "DuplicateKey",
	codeInterrupted:           "Interrupted",
	codeOutOfDiskSpace:        "OutOfDiskSpace",
}

// name is how the server calls a code. Most of the five digits have none but their number.
func (c code) name() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "Location" + strconv.Itoa(int(c))
}
