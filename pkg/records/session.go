package records

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

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
	end       chan error    // what the callback is to return
	over      chan struct{} // closed when Transact has returned
	err       error         // what it returned

	broken atomic.Pointer[errs.Error] // why it can't be committed any more; nil: it can

	use    sync.Mutex // one operation at a time, and none once it ends
	logged bool       // entries of the audit log are in it
}

// errAgain says that a transaction lost against another one and has to be done again from its beginning.
var errAgain = errs.New(errs.Conflict, "transaction_conflict", "another writer came between: do the transaction again")

// begin opens a transaction over a project's collections. It lives as long as ctx, and must be finished.
func (s *Service) begin(ctx context.Context, namespace string) (*session, error) {
	name := project.DatabaseName(namespace)
	x := &session{namespace: namespace, log: s.logs.Of(name), end: make(chan error), over: make(chan struct{})}
	if err := x.log.Prepare(ctx); err != nil { // no index can be made within
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(x.over)
		x.err = s.store.Database(name).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			if x.tx != nil {
				return errAgain
			}
			x.tx = tx
			close(ready)
			select {
			case err := <-x.end:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	select {
	case <-ready:
		return x, nil
	case <-x.over:
		return nil, x.err
	}
}

// finish commits, or with an error rolls back, and gives what came of it: errAgain if it has to be done again.
func (x *session) finish(err error) error {
	x.use.Lock()
	defer x.use.Unlock()
	if why := x.broken.Load(); err == nil && why != nil {
		err = why
	}
	select {
	case x.end <- err:
		<-x.over
	case <-x.over: // its time is up
	}
	switch {
	case errors.Is(x.err, errAgain):
		return errAgain
	case x.err == nil && x.logged:
		x.log.Committed()
	}
	return x.err
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

// finish ends the transaction, if there is one. errAgain means that the write has to start over.
func (w *writing) finish(err error) error {
	w.mu.Lock()
	own := w.own
	w.over = true
	w.mu.Unlock()
	if own == nil {
		return err
	}
	return own.finish(err)
}

// transacted runs fn, whose hooks may open a transaction, and again when that has lost against another one.
func (s *Service) transacted(ctx context.Context, c *Call, fn func(w *writing) error) error {
	for range conflictRetries {
		w := s.newWriting(ctx, c)
		err := fn(w)
		if err = w.finish(err); !errors.Is(err, errAgain) || w.own == nil {
			return err
		}
	}
	return errBusyRecord
}
