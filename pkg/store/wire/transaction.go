package wire

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// transaction is an open transaction of a session. The port's Transact is held open in a goroutine of its own (hold),
// while the commands of the session, one at a time, use its Tx.
type transaction struct {
	number int64
	db     string
	cancel context.CancelFunc

	tx     store.Tx        // once ready
	ctx    context.Context //nolint:containedctx // that of tx, once ready
	held   bool
	ready  chan struct{}
	commit chan struct{}
	over   chan struct{} // closed when Transact has returned
	err    error         // what it returned

	busy sync.Mutex // held by the command that uses tx

	committed bool // guarded by the session's turn
}

// errLost ends a transaction that the store would try again: only the client can do that.
var errLost = errs.New(errs.Unavailable, "transaction_lost", "WriteConflict: another transaction or write has changed the same document: try the transaction again")

// errNoTransaction is the answer to commands of a transaction that has ended.
func errNoTransaction(number int64) *failure {
	return fail(codeNoSuchTransaction, "Given transaction number %d does not match any in-progress transactions", number).labeled(labelTransient)
}

func (s *Server) begin(db store.Database, name string, number int64) *transaction {
	ctx, cancel := context.WithCancel(s.life)
	t := &transaction{
		number: number, db: name, cancel: cancel,
		ready: make(chan struct{}), commit: make(chan struct{}), over: make(chan struct{}),
	}
	s.running.Go(func() {
		defer close(t.over)
		defer cancel()
		t.err = db.Transact(ctx, t.hold)
	})
	return t
}

// hold keeps the transaction open until it is to be committed, or ended.
func (t *transaction) hold(ctx context.Context, tx store.Tx) error {
	if t.held {
		return errLost
	}
	t.held, t.tx, t.ctx = true, tx, ctx
	close(t.ready)
	select {
	case <-t.commit:
		return nil
	case <-ctx.Done():
	}
	t.busy.Lock() // a command may use tx still; its context has ended
	defer t.busy.Unlock()
	return context.Cause(ctx)
}

// collection gives a collection within the transaction.
func (t *transaction) collection(name string) store.TxCollection { return t.tx.Collection(name) }

// enterTransaction finds the transaction of a command, or begins it.
func (k *call) enterTransaction(number int64) (release func(), err error) {
	s, all := k.session, k.server.sessions
	start := k.args.boolean("startTransaction", false)
	if k.args.boolean("autocommit", false) {
		return nil, fail(codeInvalidOptions, "'autocommit' can only be false")
	}
	if !k.command.within {
		return nil, fail(codeNotInTransaction, "Cannot run '%s' in a multi-document transaction.", k.name)
	}
	t := all.transaction(s)
	ends := k.endsTransaction()
	switch {
	case start && !ends:
		if number == s.number {
			return nil, fail(code(117), "transaction %d has been started before", number)
		}
		db, err := k.server.database(k.db)
		if err != nil {
			return nil, err
		}
		s.number, s.outcomes = number, nil
		t = k.server.begin(db, k.db, number)
		all.setTransaction(s, t)
	case t == nil || t.number != number:
		return nil, errNoTransaction(number)
	case ends:
		k.tx = t
		return func() {}, nil
	case t.committed:
		return nil, fail(codeTransactionCommitted, "Transaction %d has been committed.", number)
	case t.db != k.db:
		return nil, fail(codeNotInTransaction, "a transaction is of one database: this one is of %s", t.db)
	}
	return k.useTransaction(t)
}

// endsTransaction says whether the command is the last one of a transaction.
func (k *call) endsTransaction() bool {
	return k.name == "commitTransaction" || k.name == "abortTransaction"
}

// useTransaction has the command be the one that uses the transaction.
func (k *call) useTransaction(t *transaction) (release func(), err error) {
	select {
	case <-t.ready:
	case <-t.over:
		if t.ctx == nil { // the store did not even begin
			return nil, failureOf(t.err)
		}
	case <-k.ctx.Done():
		return nil, store.Ended(k.ctx)
	}
	t.busy.Lock()
	if t.ctx.Err() != nil {
		t.busy.Unlock()
		return nil, errNoTransaction(t.number)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	stop := context.AfterFunc(t.ctx, cancel)
	k.ctx, k.tx = ctx, t
	return func() {
		stop()
		cancel()
		t.busy.Unlock()
	}, nil
}

// failed ends the transaction of a command that has failed, as any error but that of a late command does.
func (t *transaction) failed(k *call, err error) error {
	f := failureOf(err)
	if k.endsTransaction() || k.name == "getMore" || k.name == "killCursors" {
		return f
	}
	t.cancel()
	switch {
	case t.ctx != nil && errors.Is(context.Cause(t.ctx), store.ErrTransactionTime):
		f = errNoTransaction(t.number)
	case isTransient(f.code) && !slices.Contains(f.labels, labelTransient):
		f = f.labeled(labelTransient)
	}
	return f
}

// isTransient says whether the same transaction may go well when it is tried again.
func isTransient(c code) bool {
	switch c {
	case codeWriteConflict, codeNoSuchTransaction, codeSnapshotUnavailable, codeSnapshotTooOld, codeShutdown, codeQueryPlanKilled:
		return true
	default:
		return false
	}
}

func runCommit(k *call) (bson.D, error) {
	t := k.tx
	if t == nil {
		return nil, fail(codeInvalidOptions, "commitTransaction must be run within a transaction")
	}
	if !t.committed {
		select {
		case t.commit <- struct{}{}:
		case <-t.over:
			return nil, errNoTransaction(t.number)
		}
	}
	<-t.over // the commit goes on even if the client does not wait for it
	switch {
	case t.err == nil:
		t.committed = true
		return bson.D{}, nil
	case errors.Is(t.err, errLost):
		return nil, (&failure{code: codeWriteConflict, text: errLost.Message}).labeled(labelTransient)
	case errs.KindOf(t.err) == errs.Unavailable || errs.KindOf(t.err) == errs.Internal:
		return nil, failureOf(t.err).labeled(labelUnknown)
	}
	return nil, failureOf(t.err)
}

func runAbort(k *call) (bson.D, error) {
	t := k.tx
	switch {
	case t == nil:
		return nil, fail(codeInvalidOptions, "abortTransaction must be run within a transaction")
	case t.committed:
		return nil, fail(codeTransactionCommitted, "Transaction %d has been committed.", t.number)
	}
	select {
	case <-t.over:
		return nil, errNoTransaction(t.number)
	default:
	}
	t.cancel()
	<-t.over
	return bson.D{}, nil
}
