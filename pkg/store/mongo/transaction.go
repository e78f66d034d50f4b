package mongo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// How long and how often a transaction is tried again that lost against another one, or whose server went away.
const (
	transactionPatience = 30 * time.Second
	firstBackoff        = 2 * time.Millisecond
	maxBackoff          = 200 * time.Millisecond
	turnPatience        = time.Second // for the turn to try again
	abortTimeout        = 5 * time.Second
)

// Limits of one transaction. The server's own for time is the same unless somebody changed it.
const (
	transactionTime  = 60 * time.Second
	transactionBytes = 16 << 20
)

// transaction is one try of a Transact.
type transaction struct {
	database *database
	session  *mongo.Session
	deadline time.Time
	bytes    int   // of what was written
	ended    error // what it failed with: nothing can be done in it any more
	cause    error // of ended, as the driver gave it; nil if it has another cause
}

// Transact runs fn in a transaction and commits if it returns nil.
func (d *database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	return d.run(ctx, func(inSession context.Context) error {
		_, err := d.inTransaction(inSession, func(inSession context.Context) (bool, error) {
			return d.try(ctx, mongo.SessionFromContext(inSession), fn) // fn may call the store beside the transaction, too
		})
		return err
	})
}

// try runs fn in the transaction of a session, and says whether to commit it.
func (d *database) try(
	ctx context.Context, session *mongo.Session, fn func(ctx context.Context, tx store.Tx) error,
) (commit bool, err error) {
	tx := &transaction{database: d, session: session, deadline: time.Now().Add(d.store.txTime)}
	defer func() { tx.end(store.ErrAborted) }() // whoever uses it later is told
	within, cancel := context.WithDeadlineCause(ctx, tx.deadline, store.ErrTransactionTime)
	defer cancel()
	err = fn(within, tx)
	switch {
	case isLost(tx.cause):
		return false, tx.cause
	case tx.ended != nil && (err == nil || errors.Is(err, store.ErrAborted)):
		return false, &callbackError{tx.ended}
	case tx.late():
		return false, store.ErrTransactionTime
	case err != nil:
		return false, &callbackError{err}
	}
	return true, nil
}

// Collection gives a handle on a collection within the transaction.
func (tx *transaction) Collection(name string) store.TxCollection {
	c := tx.database.collection(name, tx.in)
	c.tx = tx
	return c
}

// in is the scope of operations in the transaction. What the server or the driver fails with ends it, there and here.
func (tx *transaction) in(ctx context.Context, fn func(ctx context.Context) error) error {
	if tx.ended != nil {
		return store.ErrAborted
	}
	ctx, cancel := context.WithDeadlineCause(ctx, tx.deadline, store.ErrTransactionTime)
	defer cancel()
	err := fn(mongo.NewSessionContext(ctx, tx.session))
	translated := tx.database.store.translate(ctx, err)
	var ours *errs.Error
	var callback *callbackError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &callback):
		return callback.err
	case tx.late():
		translated = store.ErrTransactionTime
	case errors.As(err, &ours):
		return err
	default:
		tx.cause = err
	}
	tx.end(translated)
	return translated
}

// end says what the transaction failed with. Only the first error counts.
func (tx *transaction) end(err error) {
	if tx.ended == nil {
		tx.ended = err
	}
}

func (tx *transaction) late() bool { return !time.Now().Before(tx.deadline) }

// inTransaction runs fn in a transaction of ctx's session, again if it lost against another one, and commits if fn
// says so. fn may run several times and must not change anything else.
//
// Those that have lost take turns: each in its order, and only one at a time, so that of many that want one document all
// get it. Otherwise they would be in each other's way, and lose again and again against those that have just come.
//
// The driver's WithTransaction is not used because its commit does not end with ctx.
func (d *database) inTransaction(ctx context.Context, fn func(ctx context.Context) (commit bool, err error)) (bool, error) {
	session := mongo.SessionFromContext(ctx)
	start := time.Now()
	giveUp := start.Add(transactionPatience)
	outage := start.Add(d.store.selectTimeout) // as long as any operation waits for a primary
	turn, ours := d.store.turnOf(d.name), false
	defer func() {
		if ours {
			<-turn
		}
	}()
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		committed, err := tryTransaction(ctx, session, giveUp, fn)
		if !isLost(err) || ctx.Err() != nil || time.Now().After(giveUp) ||
			isOutage(err) && time.Now().After(outage) {
			return committed && err == nil, err
		}
		if ours {
			err = wait(ctx, rand.N(backoff)) //nolint:gosec // spreads retries, no secret
		} else {
			ours, err = await(ctx, turn)
		}
		if err != nil {
			return false, err
		}
	}
}

// turnOf gives what those transactions of a database hold, one after the other, that have lost.
func (s *Store) turnOf(database string) chan struct{} {
	turn, ok := s.turns.Load(database)
	if !ok {
		turn, _ = s.turns.LoadOrStore(database, make(chan struct{}, 1))
	}
	return turn.(chan struct{}) //nolint:errcheck // nothing else is in it
}

// await waits for a turn, but not long: whoever has it may be about something else.
func await(ctx context.Context, turn chan<- struct{}) (ours bool, err error) {
	timer := time.NewTimer(turnPatience)
	defer timer.Stop()
	select {
	case turn <- struct{}{}:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func tryTransaction(
	ctx context.Context, session *mongo.Session, giveUp time.Time, fn func(ctx context.Context) (bool, error),
) (committed bool, err error) {
	// The write concern is the client's: a journaled majority.
	if err := session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())); err != nil {
		return false, err
	}
	commit := false
	defer func() {
		if commit || ctx.Err() != nil { // release ends the transaction, without anybody waiting for that
			return
		} // fn says so, or failed, or panics
		abort, cancel := context.WithTimeout(ctx, abortTimeout)
		defer cancel()
		_ = session.AbortTransaction(abort) // the server may have done so already; if it can't be told, it will by itself
	}()
	if commit, err = fn(ctx); err != nil || !commit {
		commit = false
		return false, err
	}
	for {
		err := session.CommitTransaction(ctx)
		if !isCommitUnknown(err) {
			return err == nil, err
		}
		if ctx.Err() != nil || time.Now().After(giveUp) {
			return false, &commitError{err}
		}
		if err := wait(ctx, rand.N(maxBackoff)); err != nil { //nolint:gosec // spreads retries, no secret
			return false, err
		}
	}
}

func hasLabel(err error, label string) bool {
	var labeled mongo.LabeledError
	return errors.As(err, &labeled) && labeled.HasErrorLabel(label)
}
