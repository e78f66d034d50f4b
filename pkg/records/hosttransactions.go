package records

import (
	"context"
	"errors"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// opened is a transaction as db.begin gave it.
type opened struct {
	*session

	joined bool // part of another, which ends it
}

// maxSessions is how many transactions one run may have open at once.
const maxSessions = 4

// session gives the transaction that an operation belongs to, or nil: the one that the script names, or else that of the
// write.
func (h *Host) session(ctx context.Context, doc bson.D) (*session, error) {
	tx, given := document.Member(doc, "tx")
	if given {
		name, _ := tx.(string)
		h.mu.Lock()
		defer h.mu.Unlock()
		if x, ok := h.open[name]; ok {
			return x.session, nil
		}
		return nil, errNoTx
	}
	if h.write != nil {
		return h.write.join()
	}
	return sessionOf(ctx, h.project.Namespace), nil
}

// begin opens a transaction. Within one, such as that of the write, it is part of that.
func (h *Host) begin(ctx context.Context) (any, error) {
	x, err := h.session(ctx, nil)
	joined := x != nil
	if err == nil && !joined {
		x, err = h.transaction(ctx)
	}
	if err != nil {
		return nil, err
	}
	name, err := h.keep(opened{session: x, joined: joined})
	if err != nil && !joined {
		_ = x.drop(err) // nothing is in it
	}
	return name, err
}

// keep names an open transaction.
func (h *Host) keep(x opened) (name any, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errLeftOpen
	case len(h.open) >= maxSessions:
		return nil, errs.New(errs.Limit, "too_many_transactions", "a script may have %d transactions open at once", maxSessions)
	case h.open == nil:
		h.open = map[string]opened{}
	}
	h.made++
	id := strconv.Itoa(h.made)
	h.open[id] = x
	return id, nil
}

// transaction opens a transaction of its own, and fences it.
func (h *Host) transaction(ctx context.Context) (*session, error) {
	x, err := h.s.begin(ctx, h.project.Namespace)
	if err != nil {
		return nil, err
	}
	return h.fence(ctx, x)
}

// fence makes a transaction fail if the run that the script is part of has been given up.
func (h *Host) fence(ctx context.Context, x *session) (*session, error) {
	if h.by.Fence == nil {
		return x, nil
	}
	for {
		err := h.by.Fence(ctx, x.tx)
		if err == nil {
			return x, nil
		}
		if x, err = x.finish(err); x == nil {
			return nil, err
		}
	}
}

// fenced carries out a write in a transaction of its own, and again when that has lost against another one.
func (h *Host) fenced(ctx context.Context, do func(ctx context.Context) (any, error)) (any, error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	x, err := h.transaction(ctx)
	for err == nil {
		x.use.Lock()
		out, err := do(within(ctx, x))
		x.use.Unlock()
		again, err := x.finish(err)
		if again == nil {
			return out, err
		}
		if x, err = h.fence(ctx, again); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// end commits or rolls back. again says that the transaction had lost against another writer: it is open anew, for the
// script to do all of it again. One that is part of another is committed with that; rolled back, that can't be committed.
func (h *Host) end(ctx context.Context, name string, commit bool) (again bool, err error) {
	h.mu.Lock()
	x, ok := h.open[name]
	delete(h.open, name)
	h.mu.Unlock()
	switch {
	case !ok && commit:
		return false, errNoTx
	case !ok:
		return false, nil
	case x.joined && !commit:
		x.broken.Store(errRolledBack)
		return false, nil
	case x.joined:
		return false, nil
	}
	var next *session
	if commit {
		next, err = x.finish(nil)
	} else if next, err = x.finish(errRolledBack); errors.Is(err, errRolledBack) {
		err = nil
	}
	if next == nil {
		return false, err
	}
	if next, err = h.fence(ctx, next); err != nil {
		return false, err
	}
	return true, h.reopen(name, next)
}

// reopen gives a transaction the name that the one before it had.
func (h *Host) reopen(name string, x *session) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = x.drop(errLeftOpen) // nobody is left to be told
		return errLeftOpen
	}
	h.open[name] = opened{session: x}
	return nil
}

var errRolledBack = errs.New(errs.Conflict, "rolled_back", "a script has rolled the transaction back")
