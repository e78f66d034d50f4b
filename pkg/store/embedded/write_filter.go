package embedded

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// maxMatching bounds the Work of filters in one commit, where all writers wait for it: some 10 ms.
const maxMatching = 1 << 20

// writeOne carries out an op on the first document that matches its filter. The document is looked for on a snapshot; if
// by the time of the commit it does not match any more, others are written to all the time, and a chase looks for it.
func (c *Collection) writeOne(ctx context.Context, p *pending, a *acks) error {
	find := c.tryOne
	for limit := firstCandidates; ; {
		b, err := find(ctx, p)
		again, err := a.take(ctx, b, err)
		if again {
			continue
		}
		switch err {
		case errSlow: //nolint:errorlint // joined with another, it is a failure
			if err := p.findOut(ctx); err != nil {
				return err
			}
		case errAgain:
		default:
			return err
		}
		limit *= 2
		find = func(ctx context.Context, p *pending) (*commit, error) { return c.chase(ctx, p, limit) }
	}
}

// errAgain says that what a search gave is of no use any more; it never leaves this package.
var errAgain = errors.New("again")

// errSlow says that a filter has to be matched outside the commit mutex first, by findOut; it never leaves this package.
var errSlow = errors.New("slow")

// matches says under the commit mutex whether the filter of p matches a document, or gives errSlow where that, with what
// was matched for this commit before, is more work than maxMatching.
func (w *writer) matches(p *pending, doc bson.Raw) (bool, error) {
	if p.known != nil && bytes.Equal(p.known, doc) {
		return p.matched, nil
	}
	if w.matching += p.op.Filter.Work(doc); w.matching > maxMatching {
		p.asked = doc
		return false, errSlow
	}
	return p.op.Filter.Match(doc), nil
}

// findOut matches the document that errSlow was about, while nobody waits for it.
func (p *pending) findOut(ctx context.Context) error {
	doc := p.asked
	p.asked = nil
	ok, err := p.op.Filter.MatchUntil(doc, func() error { return store.Ended(ctx) })
	if err != nil {
		return err
	}
	p.known, p.matched = doc, ok
	return nil
}

func (c *Collection) tryOne(ctx context.Context, p *pending) (b *commit, err error) {
	st, err := c.state()
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, st.close)
	docs, err := st.search(ctx, p, 1)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return c.writeNone(ctx, p, st.indexes)
	}
	p.workAhead(docs[0], st.indexes)
	return c.commit(ctx, false, func(w *writer) (keep bool, err error) {
		ok, err := w.hit(p)
		if err == nil && !ok {
			err = errAgain
		}
		return p.settleUnless(err)
	})
}

// writeNone is an op that has found nothing: no error, or a document to insert.
func (c *Collection) writeNone(ctx context.Context, p *pending, indexes *indexSet) (*commit, error) {
	if !p.op.Upsert {
		*p.result = store.Result{}
		return nil, nil
	}
	p.edit = edit{}
	p.workAhead(nil, indexes)
	return c.commit(ctx, false, func(w *writer) (keep bool, err error) { return p.settleUnless(w.insert(p)) })
}

// settleUnless settles the op, unless err says that it can't be yet or that the store has failed.
func (p *pending) settleUnless(err error) (keep bool, _ error) {
	if errors.Is(err, errAgain) || errors.Is(err, errSlow) || isHeld(err) || broken(err) != nil {
		return false, err
	}
	p.settle(err)
	return true, nil
}

// search gives copies of the first documents that the filter of p matches.
func (st *state) search(ctx context.Context, p *pending, limit int64) (docs []bson.Raw, err error) {
	p.seen = st.seen
	if st.coll == nil {
		return nil, nil
	}
	_, err = st.find(ctx, store.Query{Filter: p.op.Filter, Sort: p.op.Sort, Limit: limit}, func(doc bson.Raw) error {
		docs = append(docs, bytes.Clone(doc))
		return nil
	})
	return docs, err
}

// hit carries out an op on the document of its edit, if it still matches.
func (w *writer) hit(p *pending) (ok bool, err error) {
	id := p.edit.id
	if id == nil {
		v, _ := document.Field(p.edit.old, "_id")
		id = idKey(v)
	}
	if t := w.s.heldDoc(w.name, id, w.self); t != nil {
		return false, held{t}
	}
	same, err := w.unchanged(id, p.edit.old, p.seen)
	if err != nil {
		return false, err
	}
	if !same {
		old, err := w.stored(id)
		if err != nil || old == nil {
			return false, err
		}
		if ok, err := w.matches(p, old); err != nil || !ok {
			return false, err
		}
		p.work(old)
	}
	if p.err != nil {
		return true, p.err
	}
	return true, w.stage(&p.edit)
}

// insert carries out an upsert that has found nothing. A key that is taken is no error if the document which has it
// matches: it came in between, and is the one to write to.
func (w *writer) insert(p *pending) error {
	if p.err != nil {
		return p.err
	}
	if t := w.s.heldDoc(w.name, p.edit.id, w.self); t != nil {
		return held{t}
	}
	free, err := w.unchanged(p.edit.id, nil, seen{}) // it was not looked for by its _id
	if err != nil {
		return err
	}
	if free {
		err = w.stage(&p.edit)
	} else {
		w.holder = p.edit.id
		err = &store.DuplicateKeyError{Index: "_id", Paths: []string{"_id"}}
	}
	if dup := (*store.DuplicateKeyError)(nil); !errors.As(err, &dup) {
		return err
	}
	holder, readErr := w.stored(w.holder)
	if readErr != nil {
		return readErr
	}
	if holder == nil {
		return err
	}
	ok, matchErr := w.matches(p, holder)
	if matchErr != nil {
		return matchErr
	}
	if !ok {
		return err
	}
	p.edit = edit{}
	if p.work(holder); p.err != nil {
		return p.err
	}
	return w.stage(&p.edit)
}

// manyWrite is an op on all documents that match its filter. They come from one snapshot, so each comes once, wherever
// its index keys move meanwhile; they are written some at a time.
type manyWrite struct {
	c     *Collection
	p     *pending
	acks  *acks
	batch []edited
	next  int // of batch
	size  int
	total store.Result
}

// edited is an edit, or why there is none.
type edited struct {
	edit edit
	err  error
}

func (c *Collection) writeMany(ctx context.Context, p *pending, a *acks) (err error) {
	m := manyWrite{c: c, p: p, acks: a}
	st, err := c.state()
	if err != nil {
		return err
	}
	defer closeInto(&err, st.close)
	p.seen = st.seen
	_, err = st.find(ctx, store.Query{Filter: p.op.Filter}, func(doc bson.Raw) error {
		m.p.edit = edit{}
		m.p.workAhead(bytes.Clone(doc), st.indexes)
		m.batch = append(m.batch, edited{edit: p.edit, err: p.err})
		m.size += len(p.edit.old) + len(p.edit.new)
		if len(m.batch) < chunkOps && m.size < chunkBytes {
			return nil
		}
		return m.flush(ctx)
	})
	if err == nil && m.total.Err == nil {
		err = m.flush(ctx)
	}
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	*p.result = m.total
	return nil
}

// flush writes the documents at hand. It ends with errStop where the op has failed.
func (m *manyWrite) flush(ctx context.Context) error {
	for m.next < len(m.batch) {
		b, err := m.commit(ctx)
		_, err = m.acks.take(ctx, b, err)
		if err == errSlow { //nolint:errorlint // joined with another, it is a failure
			err = m.p.findOut(ctx)
		}
		if err != nil {
			return err
		}
		if m.total.Err != nil {
			return errStop
		}
	}
	m.batch, m.next, m.size = m.batch[:0], 0, 0
	return nil
}

// commit writes documents up to one that has to wait (held, errSlow) or that fails, and goes behind them.
func (m *manyWrite) commit(ctx context.Context) (*commit, error) {
	var waits error
	b, err := m.c.commit(ctx, true, func(w *writer) (keep bool, err error) {
		for m.next < len(m.batch) && m.total.Err == nil && w.batch.Len() < chunkBytes {
			m.p.edit, m.p.err = m.batch[m.next].edit, m.batch[m.next].err
			ok, err := w.hit(m.p)
			switch {
			case isHeld(err) || errors.Is(err, errSlow):
				waits = err
				return true, nil
			case broken(err) != nil:
				return false, err
			case err != nil:
				m.total.Err = err
			case ok:
				m.total.Matched++
				m.total.Modified += m.p.edit.result.Modified
			}
			m.next++
		}
		return true, nil
	})
	if err == nil {
		err = waits
	}
	return b, err
}
