package mongo

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Error codes of the server that this package tells apart.
const (
	codeBadValue             = 2
	codeNamespaceNotFound    = 26
	codeNamespaceExists      = 48
	codeIndexNotFound        = 27
	codeCursorNotFound       = 43
	codeMaxTimeExpired       = 50
	codeCannotCreateIndex    = 67
	codeInvalidIndexOptions  = 72
	codeIndexOptionsConflict = 85
	codeIndexKeySpecConflict = 86
	codeParallelArrays       = 171
	codeSnapshotTooOld       = 239
	codeSnapshotUnavailable  = 246
	codeNoSuchTransaction    = 251
	codeTransactionTooLarge  = 257
	codeInvalidResumeToken   = 260
	codePlanKilled           = 175 // the collection was dropped or renamed under it
	codeInvalidIndexSpec     = 197
	codeObjectTooLarge       = 10334
	codeDuplicateKey         = 11000
	codeIndexBuilding        = 12587
	codeOutOfDiskSpace       = 14031
	codeDistinctTooLarge     = 17217
	codeUpdateTooLarge       = 17419
	codeUpsertTooLarge       = 17420
	codeAmbiguousPath        = 16746
)

// isOutage says whether err means that no server could do the work just now: none reached, none primary, stopping, or
// not letting us in.
func isOutage(err error) bool {
	if mongo.IsNetworkError(err) || mongo.IsTimeout(err) || errors.Is(err, mongo.ErrClientDisconnected) {
		return true
	}
	var selection topology.ServerSelectionError
	var connection topology.ConnectionError
	var pool driver.RetryablePoolError // all connections were closed after the failure of one
	if errors.As(err, &selection) || errors.As(err, &connection) || errors.As(err, &pool) {
		return true
	}
	outage := []int{
		6, 7, 89, 9001, // host unreachable or unknown, network timeout, socket exception
		13, 18, // unauthorized, authentication failed
		91, 189, 262, 10058, 10107, 11600, 11602, 13435, 13436, // stopping, stepping down, not or no longer primary
		133, 13388, // routers with an outdated view
	}
	return slices.ContainsFunc(codes(err), func(code int) bool { return slices.Contains(outage, code) })
}

// isBusy says whether err means that something else is done to the same collection just now: an index is built, or what
// was begun was ended for that.
func isBusy(err error) bool {
	busy := []int{112, 117, 276, 12586, codeIndexBuilding} // write conflict, conflicting operation, index build aborted, database in use
	return slices.ContainsFunc(codes(err), func(code int) bool { return slices.Contains(busy, code) })
}

// codes gives the server's codes in err. Of commits and of changes to indexes and collections that were done, but that no
// majority is known to have, the driver gives its inner error, which its own mongo.ErrorCodes does not know.
func codes(err error) []int {
	var inner driver.WriteCommandError
	if errors.As(err, &inner) && inner.WriteConcernError != nil {
		return []int{int(inner.WriteConcernError.Code)}
	}
	return mongo.ErrorCodes(err)
}

// translate gives the port's error for one of the driver. Errors that are the port's already pass.
func (s *Store) translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var ours *errs.Error
	var callback *callbackError
	var violation *store.ViolationError
	var unknown *commitError
	switch {
	case errors.As(err, &callback):
		return callback.err
	case errors.As(err, &ours):
		return err
	case errors.As(err, &violation):
		return err
	case hasCode(err, codeMaxTimeExpired): // the server was at work on it
		return store.ErrDeadline
	case errors.Is(ctx.Err(), context.Canceled):
		return store.ErrCanceled
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded) && hasDeadline(ctx):
		return errNoAnswer
	case hasCode(err, codeOutOfDiskSpace):
		return store.ErrFull.With(s.secret.clean(err))
	case hasCode(err, codeObjectTooLarge), hasCode(err, codeUpdateTooLarge), hasCode(err, codeUpsertTooLarge):
		return store.ErrDocumentSize.With(s.secret.clean(err))
	case hasCode(err, codeTransactionTooLarge):
		return store.ErrTransactionSize.With(s.secret.clean(err))
	case hasCode(err, codeDistinctTooLarge):
		return store.ErrDistinctSize.With(s.secret.clean(err))
	case hasCode(err, codeParallelArrays):
		return store.ErrParallelLists.With(s.secret.clean(err))
	case hasCode(err, codeAmbiguousPath):
		return store.ErrAmbiguousPath.With(s.secret.clean(err))
	case hasCode(err, codeBadValue) && strings.Contains(err.Error(), "parallel arrays"):
		return mql.ErrParallelSort.With(s.secret.clean(err))
	case isOutage(err), errors.As(err, &unknown):
		return unavailable(s.secret.clean(err))
	case hasLabel(err, "TransientTransactionError"), isBusy(err): // it lost against others for as long as we tried
		return store.ErrBusy.With(s.secret.clean(err))
	case hasCode(err, codeSnapshotTooOld), hasCode(err, codeSnapshotUnavailable), hasCode(err, codeCursorNotFound),
		hasCode(err, codePlanKilled):
		return errSnapshotGone.With(s.secret.clean(err))
	default:
		return s.secret.wrap(err, "mongodb")
	}
}

var errSnapshotGone = errs.New(errs.Unavailable, "read_interrupted", "the read took too long, or a collection changed under it; try again")

// callbackError carries an error of the caller's own function past translate.
type callbackError struct{ err error }

func (e *callbackError) Error() string { return e.err.Error() }

func unavailable(cause error) error {
	return errs.New(errs.Unavailable, "store_unavailable", "the database can't be reached; try again later").With(cause)
}

// errNoAnswer is the end of the caller's time without a word from the server, which stops its work by itself in time: the
// server is down or cut off, and the caller was not too slow.
var errNoAnswer = &errs.Error{
	Kind: errs.Unavailable, Code: "store_unavailable", Message: "the database does not answer; try again later",
	Cause: context.DeadlineExceeded,
}

func hasDeadline(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}

// duplicateKey gives the port's error and the key's values if err says that a write violates a unique index.
func duplicateKey(err error) (dup *store.DuplicateKeyError, key bson.Raw) {
	message, raw := duplicateReply(err)
	if raw == nil {
		return nil, nil
	}
	dup = &store.DuplicateKeyError{}
	// E11000 duplicate key error collection: db.things index: a_1 dup key: { a: 1 }
	_, rest, _ := strings.Cut(message, " index: ")
	dup.Index, _, _ = strings.Cut(rest, " dup key: ")
	if dup.Index == primaryIndex {
		dup.Index = "_id"
	}
	pattern, _ := raw.Lookup("keyPattern").DocumentOK()
	elements, _ := pattern.Elements()
	for _, e := range elements {
		dup.Paths = append(dup.Paths, e.Key())
	}
	key, _ = raw.Lookup("keyValue").DocumentOK()
	return dup, key
}

// duplicateReply finds the server's message about a duplicate key, and the document it is in, in any form of error.
func duplicateReply(err error) (string, bson.Raw) {
	var command mongo.CommandError
	if errors.As(err, &command) && command.Code == codeDuplicateKey {
		return command.Message, command.Raw
	}
	var writes []mongo.WriteError
	var write mongo.WriteException
	var bulk mongo.BulkWriteException
	switch {
	case errors.As(err, &write):
		writes = write.WriteErrors
	case errors.As(err, &bulk):
		for _, e := range bulk.WriteErrors {
			writes = append(writes, e.WriteError)
		}
	}
	for _, e := range writes {
		if e.Code == codeDuplicateKey {
			return e.Message, e.Raw
		}
	}
	return "", nil
}

// redactor removes the connection string and its password from error texts.
type redactor struct{ secrets []string }

func newRedactor(uri string) redactor {
	r := redactor{secrets: []string{uri}}
	_, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "/")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user := rest[:at]
		r.secrets = append(r.secrets, user)
		if _, password, ok := strings.Cut(user, ":"); ok {
			r.secrets = append(r.secrets, password)
			if plain, err := url.PathUnescape(password); err == nil {
				r.secrets = append(r.secrets, plain)
			}
		}
	}
	return r
}

// clean gives err itself, or only its text without the secrets if it has any in it.
func (r redactor) clean(err error) error {
	text := err.Error()
	cleaned := text
	for _, secret := range r.secrets {
		if secret != "" {
			cleaned = strings.ReplaceAll(cleaned, secret, "…")
		}
	}
	if cleaned == text {
		return err
	}
	return errors.New(cleaned)
}

func (r redactor) wrap(err error, doing string) error { return errs.Wrap(r.clean(err), doing) }
