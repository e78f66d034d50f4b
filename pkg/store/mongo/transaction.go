package mongo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// How long and how often a transaction is tried again that lost against another one, or whose server went away.
const (
	transactionPatience = 30 * time.Second
	firstBackoff        = 2 * time.Millisecond
	maxBackoff          = 200 * time.Millisecond
	abortTimeout        = 5 * time.Second
)

// inTransaction runs fn in a transaction of ctx's session, again if it lost against another one, and commits if fn
// says so. fn may run several times and must not change anything else.
//
// The driver's WithTransaction is not used because its commit does not end with ctx.
func (c *collection) inTransaction(ctx context.Context, fn func(ctx context.Context) (commit bool, err error)) (bool, error) {
	session := mongo.SessionFromContext(ctx)
	start := time.Now()
	giveUp := start.Add(transactionPatience)
	outage := start.Add(c.database.store.selectTimeout) // as long as any operation waits for a primary
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		committed, err := tryTransaction(ctx, session, giveUp, fn)
		if !hasLabel(err, "TransientTransactionError") || ctx.Err() != nil || time.Now().After(giveUp) ||
			isOutage(err) && time.Now().After(outage) {
			return committed && err == nil, err
		}
		if err := wait(ctx, rand.N(backoff)); err != nil { //nolint:gosec // spreads retries, no secret
			return false, err
		}
	}
}

func tryTransaction(
	ctx context.Context, session *mongo.Session, giveUp time.Time, fn func(ctx context.Context) (bool, error),
) (committed bool, err error) {
	// The write concern is the client's: a journaled majority.
	if err := session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())); err != nil {
		return false, err
	}
	commit, err := fn(ctx)
	if err != nil || !commit {
		abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_ = session.AbortTransaction(abort) // the server may have done so already; if it can't be told, it will by itself
		return false, err
	}
	for {
		err := session.CommitTransaction(ctx)
		if !hasLabel(err, "UnknownTransactionCommitResult") || ctx.Err() != nil || time.Now().After(giveUp) {
			return err == nil, err
		}
	}
}

func hasLabel(err error, label string) bool {
	var labeled mongo.LabeledError
	return errors.As(err, &labeled) && labeled.HasErrorLabel(label)
}
