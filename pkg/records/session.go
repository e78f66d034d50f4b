package records

import (
	"context"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// session is a transaction that is driven from outside of store.Transact's callback: a script opens it, and decides when
// it ends. A goroutine holds it open; finish ends it and waits for that.
type session struct {
	namespace string
	tx        store.Tx
	log       *audit.Log
	held      *held

	wrote  sync.Map                   // the records that were changed in it: recordKey
	broken atomic.Pointer[errs.Error] // why it can't be committed any more; nil: it can

	files []*filing // of the writes in it
	after []func()  // what is done when it is committed

	use    sync.Mutex // one operation at a time, and none once it ends
	logged bool       // entries of the audit log are in it
}

// held is a call of store.Transact that goes on until a transaction of it has ended for good: one that has lost against
// another writer is followed by the next, when the store finds that its turn has come.
type held struct {
	tries chan store.Tx
	end   chan error    // what the callback is to return
	over  chan struct{} // closed when Transact has returned
	err   error         // what it returned
}

// errAgain says that a transaction lost against another one and has to be done again from its beginning.
var errAgain = errs.New(errs.Conflict, "transaction_conflict", "another writer came between: do the transaction again")

// begin opens a transaction over a project's collections. It lives as long as ctx, and must be finished.
func (s *Service) begin(ctx context.Context, namespace string) (*session, error) {
	name := project.DatabaseName(namespace)
	x := &session{namespace: namespace, log: s.logs.Of(name)}
	if err := x.log.Prepare(ctx); err != nil { // no index can be made within
		return nil, err
	}
	h := &held{tries: make(chan store.Tx), end: make(chan error), over: make(chan struct{})}
	go func() {
		defer close(h.over)
		h.err = s.store.Database(name).Transact(ctx, h.try)
	}()
	return x.next(h)
}

// try hands out a transaction, and waits for its end. Whoever has it ends it, also when its time is up: until then an
// operation may be under way in it.
func (h *held) try(ctx context.Context, tx store.Tx) error {
	select {
	case h.tries <- tx:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := <-h.end; err != nil {
		return err
	}
	return ctx.Err()
}

// next gives the next try of a transaction as a session like x, or what Transact has returned, which may be nil.
func (x *session) next(h *held) (*session, error) {
	select {
	case tx := <-h.tries:
		return &session{namespace: x.namespace, log: x.log, tx: tx, held: h}, nil
	case <-h.over:
		return nil, h.err
	}
}

// finish commits, or with an error rolls back, and gives what came of it. With errAgain it lost against another writer,
// and again is the transaction in which it has to be done again, or which has to be finished without.
func (x *session) finish(err error) (again *session, _ error) {
	x.use.Lock()
	defer x.use.Unlock()
	if why := x.broken.Load(); err == nil && why != nil {
		err = why
	}
	select {
	case x.held.end <- err:
	case <-x.held.over: // its time is up
	}
	asked := err
	again, err = x.next(x.held)
	for _, f := range x.files {
		switch {
		case again == nil && err == nil:
			f.finish()
		case again != nil || asked != nil: // it was rolled back
			f.undo()
		default:
			f.giveUp()
		}
	}
	switch {
	case again != nil:
		return again, errAgain
	case err == nil && x.logged:
		x.log.Committed()
	}
	for _, do := range x.after {
		if err == nil {
			do()
		}
	}
	return nil, err
}

// committed has something be done when the transaction is committed.
func (x *session) committed(do func()) { x.after = append(x.after, do) }

// undoFiles removes what writes have put in place in a transaction that is rolled back.
func (x *session) undoFiles() {
	for _, f := range x.files {
		f.undo()
	}
}

// drop rolls back for good.
func (x *session) drop(why error) error {
	for {
		again, err := x.finish(why)
		if again == nil {
			return err
		}
		x = again
	}
}

type sessionKey struct{}

// within gives a context whose operations on the project's records are in a transaction.
func within(ctx context.Context, x *session) context.Context {
	return context.WithValue(ctx, sessionKey{}, x)
}

// sessionOf gives the transaction that operations of ctx on a project are in, or nil.
func sessionOf(ctx context.Context, namespace string) *session {
	if x, ok := ctx.Value(sessionKey{}).(*session); ok && x.namespace == namespace {
		return x
	}
	return nil
}

// writing is a write whose hooks may call the database: their calls are in one transaction with the write, which is
// opened at the first of them. Where the write is part of a transaction already, they are in that one.
type writing struct {
	s         *Service
	ctx       context.Context //nolint:containedctx // of the write: a transaction outlives the hook that opened it
	namespace string

	mu   sync.Mutex
	own  *session
	over bool // nothing joins it any more
}

func (s *Service) newWriting(ctx context.Context, c *Call) *writing {
	return &writing{s: s, ctx: ctx, namespace: c.Project.Namespace}
}

// join gives the transaction, opened if need be.
func (w *writing) join() (*session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil, errNoTx
	}
	if outer := sessionOf(w.ctx, w.namespace); outer != nil {
		return outer, nil
	}
	if w.own == nil {
		own, err := w.s.begin(w.ctx, w.namespace)
		if err != nil {
			return nil, err
		}
		w.own = own
	}
	return w.own, nil
}

// context is what the write itself runs in.
func (w *writing) context() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil {
		return w.ctx
	}
	return within(w.ctx, w.own)
}

// recordKey is a record in a session.
type recordKey struct {
	collection string
	id         bson.ObjectID
}

// note keeps in mind which records are changed in the transaction of ctx, if there is one.
func (s *Service) note(ctx context.Context, c *Call, changes []change) {
	x := sessionOf(ctx, c.Project.Namespace)
	if x == nil {
		return
	}
	for _, ch := range changes {
		if ch.before != nil {
			x.wrote.Store(recordKey{c.Collection.Name, idOf(ch.before)}, struct{}{})
		}
	}
}

// hasChanged says that hooks have changed a record in the transaction that they opened: no write of it can follow there, as
// often as it is tried.
func (w *writing) hasChanged(was bson.Raw, collection string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil || was == nil {
		return false
	}
	_, has := w.own.wrote.Load(recordKey{collection, idOf(was)})
	return has
}

// finish ends the transaction, if there is one. With errAgain the write has to start over as again.
func (w *writing) finish(err error) (again *writing, _ error) {
	w.mu.Lock()
	own := w.own
	w.over = true
	w.mu.Unlock()
	if own == nil {
		return nil, err
	}
	next, err := own.finish(err)
	if next == nil {
		return nil, err
	}
	return &writing{s: w.s, ctx: w.ctx, namespace: w.namespace, own: next}, err
}

// transacted runs fn, whose hooks may open a transaction, and again when that has lost against another one, for as long
// as the store tries.
func (s *Service) transacted(ctx context.Context, c *Call, fn func(w *writing) error) error {
	w := s.newWriting(ctx, c)
	for {
		again, err := w.finish(fn(w))
		if again == nil {
			return err
		}
		w = again
	}
}
