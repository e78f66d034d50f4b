package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxTransaction = 16 << 20  // bytes of documents that a transaction may write
	maxSearching   = 128 << 20 // the same for an atomic write that searches
	firstBackoff   = time.Millisecond
	maxBackoff     = 100 * time.Millisecond
)

// Transact runs fn in a transaction.
//
// A transaction reads a snapshot, with its own writes over it (overlay.go). Before it writes to a document, it claims it:
// from then on nobody else can write to it (intents.go). If somebody else has claimed it, or has changed it since the
// snapshot, the transaction has lost and is tried again.
func (d database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return d.s.transact(ctx, d.name, maxTransaction, d.s.limits.patience, fn)
}

// transact runs fn in transactions until one does not lose, or until patience has passed (0: as long as it takes).
func (s *Store) transact(
	ctx context.Context, database string, limit int, patience time.Duration, fn func(ctx context.Context, tx store.Tx) error,
) error {
	var giveUp <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		giveUp = timer.C
	}
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		t := &transaction{s: s, database: database, limit: limit, ended: make(chan struct{})}
		err := t.run(ctx, fn)
		if !t.lost {
			return err
		}
		if t.against != nil {
			if err := s.await(ctx, t.against, giveUp); err != nil {
				return err
			}
		}
		select {
		case <-time.After(rand.N(backoff)): //nolint:gosec // spreads retries, no secret
		case <-giveUp:
			return store.ErrBusy
		case <-ctx.Done():
			return store.Ended(ctx)
		case <-s.state.closing:
			return store.ErrClosed
		}
	}
}

// transaction is one try of a transaction.
type transaction struct {
	s        *Store
	database string
	limit    int
	ctx      context.Context //nolint:containedctx // lives as long as the call that made it

	m       *moment // nil until the first read or write
	colls   map[string]*txCollection
	changed []*overlaid // in the order in which they were first written
	size    int         // bytes of them
	beside  int         // bytes that they take besides
	makes   bool        // it makes collections

	failed   error        // the error that ended it
	lost     bool         // that error is a conflict, so it is to be tried again
	against  *transaction // whom it lost against, if that one is still open
	returned bool         // fn has

	// These are guarded by the commit mutex. It may be over before fn returns, if that takes too long.
	over    bool
	ended   chan struct{} // closed with over
	intents []string
}

var _ store.Tx = (*transaction)(nil)

func (t *transaction) run(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	timed, cancel := context.WithTimeoutCause(ctx, t.s.limits.transaction, store.ErrTransactionTime)
	defer cancel()
	inner, cancelInner := context.WithCancelCause(timed)
	defer cancelInner(nil)
	defer context.AfterFunc(t.s.ctx, func() { cancelInner(store.ErrClosed) })()
	t.ctx = inner
	// Others do not wait for a transaction that can't be committed any more.
	defer context.AfterFunc(inner, t.end)()
	defer t.close()

	err := fn(inner, t)
	t.returned = true
	if t.failed != nil && (err == nil || errors.Is(err, store.ErrAborted)) {
		err = t.failed
	}
	switch cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded); {
	case err == nil:
		return t.commit()
	case cut && ctx.Err() == nil && inner.Err() != nil: // not by the caller: time is up, or the store closes
		return t.cause()
	default:
		return err
	}
}

// end releases what t has claimed.
func (t *transaction) end() {
	t.s.commit.Lock()
	defer t.s.commit.Unlock()
	t.s.unclaim(t)
}

// close ends t and frees its snapshot, also if fn panics.
func (t *transaction) close() {
	t.returned = true
	t.end()
	if t.m != nil {
		_ = t.m.snap.Close() // it can only say that it is closed already
	}
}

// usable says whether t can go on.
func (t *transaction) usable(ctx context.Context) error {
	switch {
	case t.failed != nil:
		return store.ErrAborted
	case t.returned:
		return store.ErrTransactionTime
	case t.ctx.Err() != nil:
		return t.cause()
	case ctx.Err() != nil:
		return store.Ended(ctx)
	default:
		return nil
	}
}

// cause tells why t's ctx has ended.
func (t *transaction) cause() error {
	if e := (*errs.Error)(nil); errors.As(context.Cause(t.ctx), &e) {
		return e
	}
	return store.Ended(t.ctx)
}

// fail ends t with err.
func (t *transaction) fail(err error) {
	if t.failed == nil {
		t.failed = err
	}
}

// lose ends t because of what others have written or are about to.
func (t *transaction) lose(against *transaction) error {
	t.lost, t.against = true, against
	t.fail(store.ErrBusy)
	return store.ErrBusy
}

// Collection gives a handle on a collection within the transaction.
func (t *transaction) Collection(name string) store.TxCollection { return t.collection(name) }

func (t *transaction) collection(name string) *txCollection {
	if c := t.colls[name]; c != nil {
		return c
	}
	c := &txCollection{t: t, name: collectionName{database: t.database, collection: name}}
	if t.colls == nil {
		t.colls = map[string]*txCollection{}
	}
	t.colls[name] = c
	return c
}

// commit makes all writes visible in one step and returns when they are on disk.
func (t *transaction) commit() error {
	if t.ctx.Err() != nil {
		return t.cause()
	}
	for _, o := range t.changed {
		if err := o.plan(); err != nil {
			return err
		}
	}
	if len(t.changed) == 0 && !t.makes {
		return nil
	}
	b, err := t.apply()
	if err != nil || b == nil {
		return err
	}
	return b.wait()
}

func (t *transaction) apply() (*commit, error) {
	t.s.commit.Lock()
	defer t.s.commit.Unlock()
	if t.over {
		return nil, t.cause()
	}
	defer t.s.unclaim(t)
	b := t.s.newCommit(true)
	err := t.stage(b)
	if dup := (*store.DuplicateKeyError)(nil); errors.As(err, &dup) {
		err = t.lose(nil) // it was free when it was claimed
	}
	if err != nil {
		return nil, also(err, b.discard())
	}
	if applied, err := b.finish(); err != nil || !applied {
		return nil, err
	}
	return b, nil
}

// writers are the parts of the commit that are on each collection, of which those are made that the transaction makes.
func (t *transaction) writers(b *commit) (map[*txCollection]*writer, error) {
	writers := map[*txCollection]*writer{}
	for _, c := range t.colls {
		if len(c.docs) == 0 && !c.made {
			continue
		}
		w := b.writer(c.name)
		w.self = t
		if w.coll != c.st.coll || w.indexes != c.st.indexes && !c.made {
			return nil, t.lose(nil)
		}
		if c.made {
			if err := w.create(c.st.indexes); err != nil {
				return nil, err
			}
		}
		writers[c] = w
	}
	return writers, nil
}

// stage adds all writes. Keys that one document gives up another one may take, so they are all given up first.
func (t *transaction) stage(b *commit) error {
	writers, err := t.writers(b)
	if err != nil {
		return err
	}
	for _, o := range t.changed {
		if o.gone {
			continue
		}
		if err := writers[o.in].unindex(&o.edit); err != nil {
			return err
		}
	}
	for _, o := range t.changed {
		if o.gone {
			continue
		}
		w := writers[o.in]
		if err := w.room(); err != nil {
			return err
		}
		for i := range o.edit.moves {
			if err := w.checkUnique(&o.edit.moves[i], o.edit.id); err != nil {
				return err
			}
		}
		if err := o.put(w); err != nil {
			return err
		}
	}
	return nil
}

// writeInTransaction is an atomic Write whose ops have to find what those before them wrote.
func (c *Collection) writeInTransaction(ctx context.Context, ops []store.Op) (results []store.Result, err error) {
	err = c.s.transact(ctx, c.name.database, maxSearching, 0, func(ctx context.Context, tx store.Tx) error {
		var err error
		if results, err = tx.Collection(c.name.collection).Write(ctx, ops, true); err != nil {
			return err
		}
		for i := range results {
			if results[i].Err != nil {
				return errRollback
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRollback) {
		return nil, err
	}
	return results, nil
}

// errRollback ends a transaction without a commit; it never leaves this package.
var errRollback = errors.New("roll back")

// idOf gives the key of a document's _id.
func idOf(doc bson.Raw) []byte {
	id, _ := document.Field(doc, "_id")
	return idKey(id)
}
