package mongo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// farOff is a deadline for operations that have none. The driver sends reads and plain writes again, the latter so that
// servers know them, as often as it takes if there is a deadline, and only once if there is none: a server that goes
// away while the next one comes is two. It is so far off that servers are not told of it (they know 24 days at most).
const farOff = 60 * 24 * time.Hour

// persistently gives ctx, with a deadline in any case.
func persistently(ctx context.Context) (context.Context, context.CancelFunc) {
	if hasDeadline(ctx) {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, farOff)
}

// again runs fn, and again while no server can do it just now or what it reads from is gone, for as long as any operation
// waits for a primary. It is for what does no harm when it is done twice, and for what was not sent; the driver itself
// gives up such things at a connection that does not come about, and never sends some commands again (getMore, runCommand,
// createIndexes). In a transaction nothing is done again: that starts over as a whole.
func (s *Store) again(ctx context.Context, fn func() error, repeatable func(error) bool) error {
	giveUp := time.Now().Add(s.selectTimeout)
	for backoff := firstReopen; ; backoff = min(2*backoff, longestReopen) {
		err := fn()
		if err == nil || !repeatable(err) || ctx.Err() != nil || s.closing.Load() || time.Now().After(giveUp) {
			return err
		}
		if session := mongo.SessionFromContext(ctx); session != nil && session.TransactionRunning() {
			return err
		}
		if wait(ctx, rand.N(backoff)) != nil { //nolint:gosec // spreads retries, no secret
			return err
		}
	}
}

// isPassing says whether err means that a server was lost, or no longer primary: another one, or the same, may do the work
// in a moment. Waiting for a primary in vain is not of that kind: all the time there is has gone into it.
func isPassing(err error) bool {
	if !isOutage(err) || mongo.IsTimeout(err) || errors.Is(err, mongo.ErrClientDisconnected) {
		return false
	}
	var selection topology.ServerSelectionError
	refused := slices.ContainsFunc(codes(err), func(code int) bool { return code == 13 || code == 18 }) // our user
	return !refused && !errors.As(err, &selection)
}

// isUnsent says whether err means that there was no connection to send anything on. A write that failed so was not done.
// The driver gives such an error of a first try only; that of a pool that was cleared may come behind something sent.
func isUnsent(err error) bool {
	unwrapped := err
	if command, ok := err.(mongo.CommandError); ok { //nolint:errorlint // deeper inside is what something sent came to
		unwrapped = command.Wrapped
	}
	_, unconnected := unwrapped.(topology.ConnectionError) //nolint:errorlint // as above
	return unconnected && isPassing(err)
}

// isLost says whether a transaction that failed with err was not done, and may be when it starts over.
func isLost(err error) bool {
	var unknown *commitError
	return !errors.As(err, &unknown) && (hasLabel(err, "TransientTransactionError") || isPassing(err))
}

// commitError is the failure of a commit that may have been done all the same.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "the outcome of a commit is unknown: " + e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// isCommitUnknown says whether a commit that failed with err may have been done all the same. Committing again tells.
func isCommitUnknown(err error) bool {
	if hasLabel(err, "TransientTransactionError") {
		return false
	}
	return hasLabel(err, "UnknownTransactionCommitResult") || hasLabel(err, "RetryableWriteError") || isPassing(err)
}
