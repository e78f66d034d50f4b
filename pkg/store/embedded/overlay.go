package embedded

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// txCollection is a collection within a transaction: a snapshot with the documents over it that the transaction wrote.
type txCollection struct {
	t    *transaction
	name collectionName
	st   *state               // nil until the first read or write
	docs map[string]*overlaid // by the key of their _id
	keys map[string][]byte    // intents of unique keys, with the key of the _id of the document that took each last
	made bool                 // it comes into being with the commit, whatever is in it, with the indexes of st
}

// overlaid is a document that the transaction wrote. The old one of its edit is that of the snapshot, of which only the
// _id is kept.
type overlaid struct {
	in   *txCollection
	edit edit
	gone bool // nothing is left of what the transaction did to it
}

// old gives the document as it is in the snapshot; nil if there is none.
func (o *overlaid) old() (bson.Raw, error) {
	if o.edit.old == nil {
		return nil, nil
	}
	return getDoc(o.in.st.snap, docKey(o.in.st.coll.id, o.edit.id))
}

// plan works out what the edit changes in the indexes, if it was not yet.
func (o *overlaid) plan() error {
	if o.gone || o.edit.indexes == o.in.st.indexes {
		return nil
	}
	id := o.edit.old
	var err error
	if o.edit.old, err = o.old(); err == nil {
		err = o.edit.plan(o.in.st.indexes)
	}
	o.edit.old = id
	return err
}

// put stages the document, with the whole old one where the feed keeps something of it.
func (o *overlaid) put(w *writer) error {
	e := o.edit
	images := w.coll != nil && w.coll.images
	if e.old != nil && (images || e.patched && e.changes == nil) {
		var err error
		if e.old, err = o.old(); err != nil {
			return err
		}
		if e.patched && e.new != nil {
			e.changes = describe(e.old, e.new)
		}
	}
	return w.put(&e)
}

// overhead is about what an overlaid document takes beside its bytes.
const overhead = 256

// enter is to be called by every read and write.
func (c *txCollection) enter(ctx context.Context) error {
	if err := c.t.usable(ctx); err != nil {
		return err
	}
	if err := c.name.check(); err != nil {
		return err
	}
	if c.st == nil {
		if c.t.m == nil {
			c.t.m = c.t.s.moment(c.t.database)
		}
		c.st = c.t.m.state(c.name.collection)
	}
	return nil
}

// current gives a document as the transaction sees it; nil if there is none.
func (c *txCollection) current(id []byte) (bson.Raw, error) {
	if o := c.docs[string(id)]; o != nil {
		return o.edit.new, nil
	}
	if c.st.coll == nil {
		return nil, nil
	}
	return getDoc(c.st.snap, docKey(c.st.coll.id, id))
}

// Write applies ops in order. Errors of ops end the transaction, but for those of single ops that say that there is
// nothing to write to.
func (c *txCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if err := c.t.s.disk.checkFor(ctx); err != nil {
		return nil, err
	}
	results := make([]store.Result, len(ops))
	work := c.t.s.pend(ops, results)
	for i := range work {
		if c.t.failed != nil {
			results[i].Err = store.ErrAborted
			continue
		}
		err := c.carryOut(ctx, &work[i])
		switch {
		case err != nil && !concernsOp(err):
			c.t.fail(err)
			return nil, err
		case err == nil:
			continue
		case atomic && len(ops) > 1 || !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, store.ErrStale):
			c.t.fail(err)
		}
		results[i] = store.Result{Err: err, Matched: results[i].Matched, Modified: results[i].Modified}
		if atomic {
			abort(work, i)
			break
		}
	}
	return results, nil
}

// concernsOp says whether an error is one op's own.
func concernsOp(err error) bool {
	if dup := (*store.DuplicateKeyError)(nil); errors.As(err, &dup) {
		return true
	}
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Precondition, errs.Invalid, errs.TooLarge:
		return true
	default:
		return false
	}
}

// carryOut does one op and fills in its result, unless it fails.
func (c *txCollection) carryOut(ctx context.Context, p *pending) error {
	switch {
	case p.bad != nil:
		return p.bad
	case p.op.Filter == nil:
		old, err := c.current(p.id)
		if err != nil {
			return err
		}
		return c.write(p, old)
	case p.op.Many:
		return c.find(ctx, store.Query{Filter: p.op.Filter}, func(doc bson.Raw) error {
			total := *p.result
			if err := c.write(p, bytes.Clone(doc)); err != nil {
				return err
			}
			p.result.Matched += total.Matched
			p.result.Modified += total.Modified
			return nil
		})
	}
	var first bson.Raw
	err := c.find(ctx, store.Query{Filter: p.op.Filter, Sort: p.op.Sort, Limit: 1}, func(doc bson.Raw) error {
		first = bytes.Clone(doc)
		return nil
	})
	if err != nil || first == nil && !p.op.Upsert {
		return err
	}
	return c.write(p, first)
}

// write does an op to the document that it has chosen (nil: there is none).
func (c *txCollection) write(p *pending, old bson.Raw) error {
	p.edit = edit{}
	p.work(old)
	if p.err != nil {
		return p.err
	}
	e := p.edit
	if old == nil && p.op.Filter != nil { // an upsert whose _id may be that of a document which does not match
		there, err := c.current(e.id)
		if err != nil {
			return err
		}
		if there != nil {
			return &store.DuplicateKeyError{Index: "_id", Paths: []string{"_id"}}
		}
	}
	if !e.same {
		if err := c.put(&e); err != nil {
			return err
		}
	}
	*p.result = e.result
	return nil
}

// put claims a document and lays an edit of it over the snapshot.
func (c *txCollection) put(e *edit) error {
	if err := e.plan(c.st.indexes); err != nil {
		return err
	}
	o := c.docs[string(e.id)]
	var wanted []string
	if o == nil {
		wanted = append(wanted, docIntent(c.name, e.id))
	}
	for i := range e.moves {
		if m := &e.moves[i]; m.index.def.Unique {
			for _, key := range m.add {
				wanted = append(wanted, keyIntent(c.name, m.index, key))
			}
		}
	}
	if err := c.claim(e, wanted, o == nil); err != nil {
		return err
	}
	for i := range e.moves {
		if err := c.checkUnique(&e.moves[i], e.id); err != nil {
			return err
		}
	}
	if c.docs == nil {
		c.docs, c.keys = map[string]*overlaid{}, map[string][]byte{}
	}
	for _, intent := range wanted {
		if intent[0] == 'k' {
			c.keys[intent] = e.id
		}
	}
	c.t.size += len(e.new)
	e.new = bytes.Clone(e.new) // a Replace's may be the caller's
	if o == nil {
		o = &overlaid{in: c, edit: *e}
		if e.old != nil {
			id, _ := document.Field(e.old, "_id")
			o.edit.old = document.WithID(emptyDoc, id)
		}
		c.docs[string(e.id)] = o
		c.t.changed = append(c.t.changed, o)
		c.t.beside += len(e.id) + overhead
	} else {
		c.t.size -= len(o.edit.new)
		old, err := o.old()
		if err != nil {
			return err
		}
		o.edit = edit{id: o.edit.id, old: o.edit.old, before: o.edit.before, new: e.new, patched: o.edit.patched && e.patched}
		o.gone = bytes.Equal(old, e.new)
	}
	if c.t.size > c.t.limit || c.t.beside > c.t.limit {
		return store.ErrTransactionSize
	}
	return nil
}

// claim makes intents the transaction's own. If the document is one of them, it must be as it was in the snapshot.
func (c *txCollection) claim(e *edit, wanted []string, withDoc bool) error {
	if len(wanted) == 0 {
		return nil
	}
	other, err := c.t.s.claim(c.t, wanted)
	switch {
	case err != nil:
		return c.t.cause()
	case other != nil:
		return c.t.lose(other)
	case !withDoc:
		return nil
	}
	// Nobody else can write to it from here on.
	coll := c.t.s.cat.get(c.name)
	if coll != c.st.coll || coll != nil && coll.indexes.Load() != c.st.indexes {
		return c.t.lose(nil)
	}
	if coll == nil {
		return nil
	}
	same, err := sameDoc(c.t.s.db, docKey(coll.id, e.id), e.old)
	if err == nil && !same {
		err = c.t.lose(nil)
	}
	return err
}

// checkUnique refuses entries that another document has in a unique index, as the transaction sees it. It loses where
// that is not what others see.
func (c *txCollection) checkUnique(m *move, id []byte) error {
	if !m.index.def.Unique {
		return nil
	}
	for _, key := range m.add {
		if taker := c.keys[keyIntent(c.name, m.index, key)]; taker != nil && !bytes.Equal(taker, id) && c.has(taker, m.index, key) {
			return m.index.duplicate()
		}
		if c.st.coll == nil { // nobody else has written to it
			continue
		}
		before, err := holderIn(c.st.snap, c.st.coll, m.index, key, id)
		if err != nil {
			return err
		}
		now, err := holderIn(c.t.s.db, c.st.coll, m.index, key, id)
		if err != nil {
			return err
		}
		if !bytes.Equal(before, now) {
			return c.t.lose(nil)
		}
		if now != nil && (c.docs[string(now)] == nil || c.has(now, m.index, key)) {
			return m.index.duplicate()
		}
	}
	return nil
}

// has says whether a document that the transaction wrote has a key.
func (c *txCollection) has(id []byte, x *index, key []byte) bool {
	o := c.docs[string(id)]
	if o == nil || o.edit.new == nil {
		return false
	}
	e, err := x.entriesOf(o.edit.new)
	return err == nil && e.has(key)
}
