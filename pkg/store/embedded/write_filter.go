package embedded

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

const (
	candidates   = 8  // documents that a search gives at most, once the first one was lost to somebody else
	patientTries = 16 // searches that may be in vain before one is made while nobody can write
)

// writeOne carries out an op on the first document that matches its filter. The document is looked for on a snapshot;
// if by the time of the commit none of those found matches any more, it is looked for again.
func (c *Collection) writeOne(ctx context.Context, p *pending, a *acks) error {
	for try := 0; ; try++ {
		b, again, err := c.tryOne(ctx, p, try)
		if b != nil {
			err = also(err, a.add(b))
		}
		if h, ok := err.(held); ok { //nolint:errorlint // never wrapped
			err, again = c.s.await(ctx, h.by, nil), true
		}
		if err != nil || !again {
			return err
		}
	}
}

func (c *Collection) tryOne(ctx context.Context, p *pending, try int) (b *commit, again bool, err error) {
	locked := try >= patientTries
	if locked {
		c.s.commit.Lock()
		defer c.s.commit.Unlock()
	}
	limit := int64(1)
	if try > 0 {
		limit = candidates
	}
	docs, indexes, err := c.search(ctx, p, limit)
	if err != nil {
		return nil, false, err
	}
	switch {
	case len(docs) > 0:
		p.workAhead(docs[0], indexes)
	case p.op.Upsert:
		p.workAhead(nil, indexes)
	default:
		*p.result = store.Result{}
		return nil, false, nil
	}
	if !locked {
		c.s.commit.Lock()
		defer c.s.commit.Unlock()
	}
	if ctx.Err() != nil {
		return nil, false, store.Ended(ctx)
	}
	w := c.s.newCommit(false).writer(c.name)
	err = w.one(p, docs)
	if errors.Is(err, errAgain) {
		return nil, true, w.discard()
	}
	if _, ok := err.(held); ok || broken(err) != nil { //nolint:errorlint // never wrapped
		return nil, false, also(err, w.discard())
	}
	p.settle(err)
	applied, err := w.finish()
	if err != nil || !applied {
		return nil, false, err
	}
	return w.commit, false, nil
}

// errAgain says that what a search gave is of no use any more; it never leaves this package.
var errAgain = errors.New("again")

// search gives copies of the first documents that the filter of p matches, and the indexes of that moment.
func (c *Collection) search(ctx context.Context, p *pending, limit int64) (docs []bson.Raw, _ *indexSet, err error) {
	st, err := c.state()
	if err != nil {
		return nil, nil, err
	}
	p.seen = st.seen
	if st.coll == nil {
		return nil, noIndexes, nil
	}
	defer closeInto(&err, st.close)
	_, err = st.find(ctx, store.Query{Filter: p.op.Filter, Sort: p.op.Sort, Limit: limit}, func(doc bson.Raw) error {
		docs = append(docs, bytes.Clone(doc))
		return nil
	})
	return docs, st.indexes, err
}

// one carries out an op on the first of docs that still matches, or inserts a document if a search has found none.
func (w *writer) one(p *pending, docs []bson.Raw) error {
	if len(docs) == 0 {
		return w.insert(p)
	}
	for i, doc := range docs {
		if i > 0 {
			p.work(doc)
		}
		if ok, err := w.hit(p); err != nil || ok {
			return err
		}
	}
	return errAgain
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
		if err != nil || old == nil || !p.op.Filter.Match(old) {
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
	if holder == nil || !p.op.Filter.Match(holder) {
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
		if _, err := m.acks.take(ctx, b, err); err != nil {
			return err
		}
		if m.total.Err != nil {
			return errStop
		}
	}
	m.batch, m.next, m.size = m.batch[:0], 0, 0
	return nil
}

// commit writes documents up to one that has to wait (held) or that fails, and goes behind them.
func (m *manyWrite) commit(ctx context.Context) (*commit, error) {
	var waits error
	b, err := m.c.commit(ctx, true, func(w *writer) (keep bool, err error) {
		for m.next < len(m.batch) && m.total.Err == nil && w.batch.Len() < chunkBytes {
			m.p.edit, m.p.err = m.batch[m.next].edit, m.batch[m.next].err
			ok, err := w.hit(m.p)
			switch {
			case isHeld(err):
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
