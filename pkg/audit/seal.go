package audit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

const (
	leaseName = "audit"
	leaseTime = 2 * time.Second // after a crash, how long the next owner waits; more than a batch takes

	batchEntries = 500     // of one transaction
	batchSize    = 4 << 20 // bytes of one transaction; one entry may be more

	sealRest   = 100 * time.Millisecond // between two rounds: entries that come meanwhile share the work of the next one
	heldPause  = 50 * time.Millisecond  // before asking again for a lease, which is held for moments
	retryPause = time.Second            // after a failure
	patrol     = time.Minute            // between looks at all logs: for what another process left behind, and for retention
	lastPass   = 5 * time.Second        // to seal what is there, at shutdown
)

// errBatchFull ends the reading of a batch.
var errBatchFull = errors.New("batch full")

// Run seals what is written and cuts off what has expired, until ctx ends; then it seals a last time. An entry is sealed at
// once, or sealRest after those before it. Run looks at the logs of databases, too, which may have entries from before.
func (ls *Logs) Run(ctx context.Context, databases func(ctx context.Context) ([]string, error)) {
	ticks := time.NewTicker(patrol)
	defer ticks.Stop()
	ls.patrol(ctx, databases)
	for {
		var again <-chan time.Time
		if pause := ls.sealDirty(ctx); pause > 0 {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(sealRest):
		}
		select {
		case <-ctx.Done():
			last, done := context.WithTimeout(context.WithoutCancel(ctx), lastPass)
			ls.sealDirty(last)
			done()
			return
		case <-ls.wake:
		case <-again:
		case <-ticks.C:
			ls.patrol(ctx, databases)
		}
	}
}

// patrol marks every log to be looked at, and cuts off what has expired.
func (ls *Logs) patrol(ctx context.Context, databases func(ctx context.Context) ([]string, error)) {
	names, err := databases(ctx)
	if err != nil && ctx.Err() == nil {
		ls.opts.Logger.WarnContext(ctx, "the audit logs can't be listed; they are looked at again", "error", err)
	}
	for _, name := range names {
		ls.mark(name)
		if err := ls.Of(name).prune(ctx); err != nil && !errors.Is(err, lease.ErrHeld) && ctx.Err() == nil {
			ls.opts.Logger.WarnContext(ctx, "expired entries of an audit log stay for now", "database", name, "error", err)
		}
	}
}

// sealDirty seals the logs that have something to seal, and says how soon to call again for those that it could not.
func (ls *Logs) sealDirty(ctx context.Context) (pause time.Duration) {
	ls.mu.Lock()
	names := ls.dirty
	ls.dirty = map[string]bool{}
	ls.mu.Unlock()
	for name := range names {
		err := ls.Of(name).trySeal(ctx)
		if err == nil {
			continue
		}
		ls.mark(name)
		if errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrLost) {
			pause = max(pause, heldPause)
			continue
		}
		pause = retryPause
		if ctx.Err() == nil {
			ls.opts.Logger.WarnContext(ctx, "an audit log can't be sealed now; it is tried again",
				slog.String("database", name), slog.Any("error", err))
		}
	}
	return pause
}

// Seal seals all entries that there are when it is called. It waits for another process that is at it.
func (l *Log) Seal(ctx context.Context) error {
	for {
		err := l.trySeal(ctx)
		if !errors.Is(err, lease.ErrHeld) && !errors.Is(err, lease.ErrLost) {
			return err
		}
		timer := time.NewTimer(heldPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return store.Ended(ctx)
		case <-timer.C:
		}
	}
}

// trySeal seals all entries, unless somebody else is at it (lease.ErrHeld).
func (l *Log) trySeal(ctx context.Context) error {
	n, err := l.entries.Count(ctx, unsealed(), 1)
	if err != nil || n == 0 {
		return err
	}
	return l.owned(ctx, l.sealBatch)
}

func unsealed() *mql.Filter { return mql.MustCompile(bson.D{{Key: "seq", Value: int64(0)}}) }

// owned runs a step, as the log's only owner, until there is nothing left to do. The step's transaction is fenced.
func (l *Log) owned(ctx context.Context, step func(ctx context.Context, tx store.Tx) (more bool, err error)) error {
	held, err := l.leases.Acquire(ctx, leaseName, leaseTime)
	if err != nil {
		return err
	}
	more := true
	for more && err == nil {
		err = l.db.Transact(ctx, func(ctx context.Context, tx store.Tx) (err error) {
			if err := held.Fence(ctx, tx); err != nil {
				return err
			}
			more, err = step(ctx, tx)
			return err
		})
	}
	release := held.Release(context.WithoutCancel(ctx))
	if err == nil && !errors.Is(release, lease.ErrLost) {
		err = release
	}
	return err
}

// sealBatch gives the oldest unsealed entries their places behind the head.
func (l *Log) sealBatch(ctx context.Context, tx store.Tx) (more bool, err error) {
	ends, err := readEnds(ctx, tx.Collection(headName))
	if err != nil {
		return false, err
	}
	var docs []bson.Raw
	size := 0
	q := store.Query{Filter: unsealed(), Sort: mql.Sort{{Path: "_id"}}}
	err = tx.Collection(entriesName).Find(ctx, q, func(doc bson.Raw) error {
		if !sealable(doc) {
			return nil
		}
		if size += len(doc); len(docs) == batchEntries || size > batchSize && len(docs) > 0 {
			return errBatchFull
		}
		docs = append(docs, bytes.Clone(doc))
		return nil
	})
	more = errors.Is(err, errBatchFull)
	if err != nil && !more || len(docs) == 0 {
		return false, err
	}
	last := Place{Seq: ends.Seq, Hash: ends.Hash}
	ops, still := make([]store.Op, len(docs)), unsealed()
	for i, doc := range docs {
		if doc, last, err = sealed(doc, last); err != nil {
			return false, err
		}
		ops[i] = store.Op{Kind: store.Replace, Doc: doc, If: still}
	}
	ends.Seq, ends.Hash = last.Seq, last.Hash
	return more, l.commit(ctx, tx, ends, ops)
}

// errNotSealed keeps the pruning from an entry that is not what was sealed.
var errNotSealed = errors.New("the oldest entry is not as it was sealed, so that nothing is cut off: svcctl audit verify says more")

// prune cuts off the old end of the chain as far as it has expired. An entry that is kept longer keeps those behind it.
func (l *Log) prune(ctx context.Context) error {
	expired := mql.MustCompile(bson.D{{Key: "expires", Value: bson.D{{Key: "$lte", Value: bson.NewDateTimeFromTime(l.logs.now())}}}})
	oldest := store.Query{Filter: placed(), Sort: mql.Sort{{Path: "seq"}, {Path: "_id"}}, Limit: 1}
	due := false
	err := l.entries.Find(ctx, oldest, func(doc bson.Raw) error {
		due = expired.Match(doc)
		return nil
	})
	if err != nil || !due {
		return err
	}
	return l.owned(ctx, func(ctx context.Context, tx store.Tx) (more bool, err error) {
		ends, err := readEnds(ctx, tx.Collection(headName))
		if err != nil {
			return false, err
		}
		q := oldest
		q.Limit = batchEntries
		var ops []store.Op
		err = tx.Collection(entriesName).Find(ctx, q, func(doc bson.Raw) error {
			seq, _ := doc.Lookup("seq").AsInt64OK()
			if !expired.Match(doc) {
				return errBatchFull
			}
			// What is not of the chain is for Verify to name, also where its end is what was changed.
			if seq != ends.AnchorSeq+1 || !follows(doc, Place{Seq: ends.AnchorSeq, Hash: ends.AnchorHash}) {
				if len(ops) == 0 {
					return errNotSealed
				}
				return errBatchFull
			}
			ends.AnchorSeq, ends.AnchorHash = seq, text(doc, "hash")
			id := doc.Lookup("_id")
			ops = append(ops, store.Op{Kind: store.Delete, ID: bson.RawValue{Type: id.Type, Value: bytes.Clone(id.Value)}})
			return nil
		})
		more = err == nil && len(ops) == batchEntries
		if errors.Is(err, errBatchFull) { // what comes now stays
			err = nil
		}
		if err != nil || len(ops) == 0 {
			return false, err
		}
		return more, l.commit(ctx, tx, ends, ops)
	})
}

// placed are the entries that say of themselves that they are sealed.
func placed() *mql.Filter {
	return mql.MustCompile(bson.D{{Key: "seq", Value: bson.D{{Key: "$gt", Value: int64(0)}}}})
}

// commit writes entries together with the chain's new ends.
func (l *Log) commit(ctx context.Context, tx store.Tx, e ends, ops []store.Op) error {
	if err := store.WriteAll(ctx, tx.Collection(entriesName), ops...); err != nil {
		return err
	}
	op, err := e.writeOp()
	if err != nil {
		return errs.Wrap(err, "encode the ends of the audit log")
	}
	return store.WriteAll(ctx, tx.Collection(headName), op)
}
