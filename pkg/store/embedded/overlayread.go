package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

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
		before, err := matchesOwn(ctx, filter, old)
		if err != nil {
			return 0, err
		}
		after, err := matchesOwn(ctx, filter, o.edit.new)
		if err != nil {
			return 0, err
		}
		if before {
			more--
		}
		if after {
			more++
		}
	}
	upTo := limit
	if upTo > 0 {
		upTo = atMost(upTo, int64(len(c.docs)))
	}
	n, _, err := c.st.count(ctx, filter, upTo)
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
	own, err := c.matches(ctx, q)
	if err != nil {
		return store.Explanation{}, err
	}
	m := merge{q: q, fn: fn, skip: max(q.Skip, 0), own: own}
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
func (c *txCollection) matches(ctx context.Context, q store.Query) ([]sorted, error) {
	var own []sorted
	for id, o := range c.docs {
		ok, err := matchesOwn(ctx, q.Filter, o.edit.new)
		if err != nil {
			return nil, err
		}
		if !ok {
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
	return own, nil
}

// matchesOwn says whether a filter matches a document of a transaction (nil: there is none). It ends with ctx, as reads of stored
// documents do: a transaction may have written many megabytes.
func matchesOwn(ctx context.Context, filter *mql.Filter, doc bson.Raw) (bool, error) {
	ended := func() error { return store.Ended(ctx) }
	if err := ended(); err != nil || doc == nil {
		return false, err
	}
	return filter.MatchUntil(doc, ended)
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
