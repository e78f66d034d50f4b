package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// txCollection is a collection within a transaction: a snapshot with the documents over it that the transaction wrote.
type txCollection struct {
	t    *transaction
	name collectionName
	st   *state               // nil until the first read or write
	docs map[string]*overlaid // by the key of their _id
	keys map[string][]byte    // intents of unique keys, with the key of the _id of the document that took each last
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
	if err := c.t.s.disk.check(); err != nil {
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
		o.edit = edit{id: o.edit.id, old: o.edit.old, before: o.edit.before, new: e.new}
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

// Get gives the document whose _id is id.
func (c *txCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if store.CheckID(id) != nil {
		return nil, errs.ErrNotFound
	}
	doc, err := c.current(idKey(id))
	if err == nil && doc == nil {
		err = errs.ErrNotFound
	}
	return bytes.Clone(doc), err
}

// Find calls fn for each match in order.
func (c *txCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	return c.find(ctx, q, fn)
}

func (c *txCollection) find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	_, err := c.explain(ctx, q, fn)
	return err
}

// Explain runs q and tells how.
func (c *txCollection) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	if err := c.enter(ctx); err != nil {
		return store.Explanation{}, err
	}
	return c.explain(ctx, q, func(bson.Raw) error { return nil })
}

// Count counts the matches: those of the snapshot, and by how many what the transaction wrote makes them more or fewer.
func (c *txCollection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	var more int64
	for _, o := range c.docs {
		old, err := o.old()
		if err != nil {
			return 0, err
		}
		if old != nil && filter.Match(old) {
			more--
		}
		if o.edit.new != nil && filter.Match(o.edit.new) {
			more++
		}
	}
	upTo := limit
	if upTo > 0 {
		upTo = atMost(upTo, int64(len(c.docs)))
	}
	n, err := c.st.count(ctx, filter, upTo)
	if n += more; limit > 0 {
		n = min(n, limit)
	}
	return n, err
}

// Distinct gives the different values that path has in the matches.
func (c *txCollection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if len(c.docs) == 0 {
		return c.st.distinct(ctx, path, filter)
	}
	if err := store.CheckPath(path); err != nil {
		return nil, err
	}
	d := newDistinct(path)
	return d.sorted(c.find(ctx, store.Query{Filter: filter}, d.add))
}

// explain runs a query on the snapshot, without the documents that the transaction wrote, and merges those that it
// left in at their places.
func (c *txCollection) explain(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) (store.Explanation, error) {
	if err := q.Check(); err != nil {
		return store.Explanation{}, err
	}
	return c.merged(ctx, c.st, q, fn)
}

func (c *txCollection) merged(ctx context.Context, st *state, q store.Query, fn func(doc bson.Raw) error) (store.Explanation, error) {
	if len(c.docs) == 0 {
		return st.run(ctx, q, fn)
	}
	m := merge{q: q, fn: fn, skip: max(q.Skip, 0), own: c.matches(q)}
	inner := q
	inner.Skip, inner.Project = 0, nil
	if q.Limit > 0 { // as many may be needed, if all that the transaction wrote come first and are left out
		inner.Limit = atMost(q.Limit, atMost(m.skip, int64(len(c.docs))))
	}
	e, err := st.run(ctx, inner, func(doc bson.Raw) error {
		if c.docs[string(idOf(doc))] != nil {
			return nil
		}
		return m.add(doc)
	})
	if err == nil {
		err = m.rest()
	}
	e.Returned = m.given
	return e, err
}

// sorted is a document with its sort key.
type sorted struct {
	key []bson.RawValue
	doc bson.Raw
	id  string // as in keys
}

// matches gives what the transaction wrote that matches q, in order.
func (c *txCollection) matches(q store.Query) []sorted {
	var own []sorted
	for id, o := range c.docs {
		if o.edit.new == nil || !q.Filter.Match(o.edit.new) {
			continue
		}
		s := sorted{doc: o.edit.new, key: q.Sort.Key(o.edit.new), id: id}
		if len(q.After) == 0 || len(q.Sort) == 0 || q.Sort.CompareKeys(s.key, q.After) > 0 {
			own = append(own, s)
		}
	}
	slices.SortFunc(own, func(a, b sorted) int { // by _id where the sort does not say, so that the same query gives the same
		return cmp.Or(q.Sort.CompareKeys(a.key, b.key), strings.Compare(a.id, b.id))
	})
	return own
}

// merge puts the documents of a transaction between those of its snapshot.
type merge struct {
	q     store.Query
	fn    func(doc bson.Raw) error
	own   []sorted
	skip  int64
	given int64
	done  bool
	buf   []byte
}

// add takes the next document of the snapshot.
func (m *merge) add(doc bson.Raw) error {
	if len(m.q.Sort) > 0 && len(m.own) > 0 {
		key := m.q.Sort.Key(doc)
		for len(m.own) > 0 && m.q.Sort.CompareKeys(m.own[0].key, key) < 0 {
			if err := m.next(); err != nil {
				return err
			}
		}
	}
	return m.give(doc)
}

// next gives the next of the transaction's own.
func (m *merge) next() error {
	doc := m.own[0].doc
	m.own = m.own[1:]
	return m.give(doc)
}

// rest gives what comes behind the snapshot's last.
func (m *merge) rest() error {
	for len(m.own) > 0 && !m.done {
		if err := m.next(); err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	return nil
}

func (m *merge) give(doc bson.Raw) error {
	if m.skip > 0 {
		m.skip--
		return nil
	}
	if m.q.Project != nil {
		var err error
		if m.buf, err = m.q.Project.Apply(m.buf[:0], doc, m.q.Filter); err != nil {
			return err
		}
		doc = m.buf
	}
	if err := m.fn(doc); err != nil {
		return err
	}
	m.given++
	if m.done = m.given == m.q.Limit; m.done {
		return errStop
	}
	return nil
}
