package embedded

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const (
	chunkOps   = 100       // ops that are decided together at most, unless they are atomic
	chunkBytes = 4 << 20   // and bytes of their documents
	aheadBytes = 32 << 20  // of documents, for which edits are worked out ahead
	maxAtomic  = 512 << 20 // bytes of documents in one atomic write, and of what it makes of them
)

// Write applies ops in order and returns one Result for each. What an op makes of its document is worked out on the
// document as it is before, and decided under the commit mutex if the document still is that one. Nothing is
// acknowledged before its fsync, which many calls share.
func (c *Collection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.s.disk.checkFor(ctx); err != nil {
		return nil, err
	}
	if atomic {
		if size(ops) > maxAtomic {
			return nil, errBatchSize
		}
		if searches(ops) {
			return c.writeInTransaction(ctx, ops)
		}
	}
	results := make([]store.Result, len(ops))
	var a acks
	if err := also(c.write(ctx, c.s.pend(ops, results), atomic, &a), a.wait()); err != nil {
		return nil, err
	}
	return results, nil
}

func size(ops []store.Op) int {
	n := 0
	for i := range ops {
		n += len(ops[i].Doc)
	}
	return n
}

// searches says whether ops have to look for documents among those that ops before them write, or for many at once:
// atomically, that takes a transaction.
func searches(ops []store.Op) bool {
	for i := range ops {
		if ops[i].Filter != nil && (len(ops) > 1 || ops[i].Many) {
			return true
		}
	}
	return false
}

// write applies work. Ops that choose their document by its _id go together as far as possible.
func (c *Collection) write(ctx context.Context, work []pending, atomic bool, a *acks) error {
	for len(work) > 0 {
		n, err := 1, error(nil)
		switch {
		case work[0].bad != nil && !atomic:
			work[0].result.Err = work[0].bad
		case work[0].op.Filter == nil || atomic && work[0].bad != nil:
			if n = len(work); !atomic {
				n = chunk(work)
			}
			err = c.writeByID(ctx, work[:n], atomic, a)
		case work[0].op.Many:
			err = c.writeMany(ctx, &work[0], a)
		default:
			err = c.writeOne(ctx, &work[0], a)
		}
		if err != nil {
			return err
		}
		work = work[n:]
	}
	return nil
}

// chunk gives how many ops from the first on go together.
func chunk(work []pending) int {
	size := 0
	for i := range work {
		if size += len(work[i].doc); i > 0 && (i == chunkOps || size > chunkBytes || work[i].op.Filter != nil) {
			return i
		}
	}
	return len(work)
}

// writeByID applies ops that choose their document by its _id.
func (c *Collection) writeByID(ctx context.Context, work []pending, atomic bool, a *acks) error {
	for ahead := 0; len(work) > 0; {
		if ahead == 0 {
			var err error
			if ahead, err = c.workAhead(work); err != nil {
				return err
			}
		}
		some := work
		if !atomic {
			some = work[:ahead]
		}
		b, n, err := c.commitChunk(ctx, some, atomic)
		if _, err := a.take(ctx, b, err); err != nil {
			return err
		}
		work, ahead = work[n:], ahead-n
	}
	return nil
}

// workAhead works out edits while nobody waits for it, until their documents are many bytes, and says how many.
func (c *Collection) workAhead(work []pending) (n int, err error) {
	coll, indexes := c.s.cat.get(c.name), c.currentIndexes()
	size := 0
	for ; n < len(work) && size < aheadBytes; n++ {
		p := &work[n]
		if p.bad != nil {
			continue
		}
		p.seen = c.s.seen(coll)
		var old bson.Raw
		if coll != nil {
			if old, err = getDoc(c.s.db, docKey(coll.id, p.id)); err != nil {
				return n, err
			}
		}
		p.workAhead(old, indexes)
		size += len(p.edit.old) + len(p.edit.new)
	}
	return n, nil
}

// workAhead works out the edit and what it changes in indexes. An error in the latter shows again when it is staged, if
// the indexes are the same then.
func (p *pending) workAhead(old bson.Raw, indexes *indexSet) {
	p.work(old)
	if p.err == nil && !p.edit.same {
		_ = p.edit.plan(indexes)
	}
}

// commitChunk decides ops and makes their effects visible, in one batch, and says how many are settled. The caller waits
// for it; it is nil if nothing was written. The error is held if the op behind those settled has to wait.
func (c *Collection) commitChunk(ctx context.Context, work []pending, atomic bool) (b *commit, settled int, err error) {
	var waits error
	b, err = c.commit(ctx, len(work) > 1, func(w *writer) (keep bool, err error) {
		for settled < len(work) && waits == nil && (atomic || w.batch.Len() < chunkBytes) {
			p := &work[settled]
			err := p.bad
			if err == nil {
				err = w.decide(p)
			}
			switch {
			case isHeld(err):
				waits = err
				continue
			case broken(err) != nil || errors.Is(err, errBatchSize):
				return false, err
			}
			p.settle(err)
			if atomic && err != nil {
				abort(work, settled)
				settled = len(work)
				return false, nil //nolint:nilerr // it is settled
			}
			settled++
		}
		if atomic && waits != nil {
			settled = 0
			return false, nil //nolint:nilerr // commitChunk gives waits
		}
		return true, nil
	})
	if err == nil {
		err = waits
	}
	return b, settled, err
}

// broken gives err if it is a failure of the store itself.
func broken(err error) error {
	if err == nil {
		return nil
	}
	if e := (*errs.Error)(nil); errors.As(err, &e) && e.Kind == errs.Internal {
		return err
	}
	return nil
}

func (p *pending) settle(err error) {
	if err != nil {
		*p.result = store.Result{Err: err}
		return
	}
	*p.result = p.edit.result
}

// abort gives all ops but the one that failed ErrAborted.
func abort(work []pending, failed int) {
	for i := range work {
		if i != failed {
			*work[i].result = store.Result{Err: store.ErrAborted}
		}
	}
}

// decide carries out an op by _id. The edit that was worked out ahead counts if the document still is as it was then.
func (w *writer) decide(p *pending) error {
	if t := w.s.heldDoc(w.name, p.id, w.self); t != nil {
		return held{t}
	}
	same, err := w.unchanged(p.id, p.edit.old, p.seen)
	if err != nil {
		return err
	}
	if !same || !p.done {
		old, err := w.stored(p.id)
		if err != nil {
			return err
		}
		p.work(old)
	}
	if p.err != nil {
		return p.err
	}
	return w.stage(&p.edit)
}

// also is errors.Join that gives err itself if there is no other.
func also(err, other error) error {
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}

func (c *Collection) currentIndexes() *indexSet {
	if coll := c.s.cat.get(c.name); coll != nil {
		return coll.indexes.Load()
	}
	return noIndexes
}
