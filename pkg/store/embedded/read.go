package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// checkEvery is how many keys are read between two looks at ctx.
const checkEvery = 128

// Get returns the document whose _id is id.
func (c *Collection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	done, err := c.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := checkID(id); err != nil {
		return nil, errs.ErrNotFound // nothing can have such an _id
	}
	coll := c.s.cat.get(c.name)
	if coll == nil {
		return nil, errs.ErrNotFound
	}
	stored, err := getDoc(c.s.db, docKey(coll.id, idKey(id)))
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, errs.ErrNotFound
	}
	return stored, nil
}

// getDoc reads a copy of a document; nil if there is none.
func getDoc(r pebble.Reader, key []byte) (bson.Raw, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, internal(err, "read a document")
	}
	doc, err := storedDoc(value)
	doc = bytes.Clone(doc)
	closeInto(&err, closer.Close)
	return doc, err
}

// storedDoc takes the header off a stored document.
func storedDoc(value []byte) (bson.Raw, error) {
	if len(value) < 6 || value[0] != docHeader {
		return nil, internal(errors.New("unknown encoding"), "read a document")
	}
	return bson.Raw(value[1:]), nil
}

// Find calls fn for each match in order.
func (c *Collection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	_, err := c.find(ctx, q, fn)
	return err
}

// Explain runs q and tells how.
func (c *Collection) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	return c.find(ctx, q, func(bson.Raw) error { return nil })
}

func (c *Collection) find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) (_ store.Explanation, err error) {
	done, err := c.s.begin(ctx)
	if err != nil {
		return store.Explanation{}, err
	}
	defer done()
	if len(q.After) > 0 && len(q.After) != len(q.Sort) {
		return store.Explanation{}, errBadPage
	}
	st, err := c.state()
	if err != nil {
		return store.Explanation{}, err
	}
	defer closeInto(&err, st.close)
	return st.find(ctx, q, fn)
}

func (st *state) find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) (_ store.Explanation, err error) {
	if st.coll == nil {
		return store.Explanation{}, nil
	}
	r, err := st.startRead(ctx, q)
	if err != nil {
		return store.Explanation{}, err
	}
	defer closeInto(&err, r.close)
	if r.needsSort() {
		err = r.sortAll(fn)
	} else {
		err = r.stream(fn)
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	return r.explain(), err
}

// Count counts the matches.
func (c *Collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (n int64, err error) {
	done, err := c.s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	st, err := c.state()
	if err != nil {
		return 0, err
	}
	defer closeInto(&err, st.close)
	return st.count(ctx, filter, limit)
}

func (st *state) count(ctx context.Context, filter *mql.Filter, limit int64) (n int64, err error) {
	if st.coll == nil {
		return 0, nil
	}
	r, err := st.startRead(ctx, store.Query{Filter: filter})
	if err != nil {
		return 0, err
	}
	defer closeInto(&err, r.close)
	count := func() error {
		n++
		if n == limit {
			return errStop
		}
		return nil
	}
	if r.plan.exact {
		err = r.keys(func([]byte) error { return count() })
	} else {
		err = r.documents(func(bson.Raw) error { return count() })
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	return n, err
}

// closeInto runs a deferred close whose failure must not hide, nor wrap, an earlier error.
func closeInto(err *error, closeFn func() error) {
	if closeErr := closeFn(); closeErr != nil {
		*err = errors.Join(*err, internal(closeErr, "close a read"))
	}
}

// errStop ends a walk early; it never leaves this package.
var errStop = errors.New("stop")

// read is one query on one state of a collection.
type read struct {
	ctx   context.Context //nolint:containedctx // lives as long as the call that made it
	coll  *collection
	query store.Query
	plan  *plan

	src  source
	it   cursor // over the plan's ranges
	seen map[string]struct{}
	skip int64 // matches still to leave out

	keysRead, docsRead int64
}

// startRead chooses a plan. The caller closes the read.
func (st *state) startRead(ctx context.Context, q store.Query) (*read, error) {
	r := &read{ctx: ctx, coll: st.coll, query: q, skip: max(q.Skip, 0), src: st.src}
	p := planner{coll: st.coll, query: q, conds: conditionsOf(q.Filter)}
	var err error
	if r.plan, err = p.choose(st.indexes.ready, r.countUpTo); err == nil {
		err = r.openIter()
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.plan.multikey {
		r.seen = map[string]struct{}{}
	}
	return r, nil
}

func (r *read) openIter() (err error) {
	if len(r.plan.ranges) == 0 {
		return nil
	}
	r.it, err = r.src.iterate(r.plan.ranges[0].lo, r.plan.ranges[len(r.plan.ranges)-1].hi)
	return err
}

func (r *read) close() error {
	if r.it != nil {
		return r.it.Close()
	}
	return nil
}

// countUpTo counts the keys in ranges, up to probeKeys+1.
func (r *read) countUpTo(ranges []keyRange) (n int, err error) {
	it, err := r.src.iterate(ranges[0].lo, ranges[len(ranges)-1].hi)
	if err != nil {
		return 0, err
	}
	for _, rg := range ranges {
		for ok := it.SeekGE(rg.lo); ok && n <= probeKeys && bytes.Compare(it.Key(), rg.hi) < 0; ok = it.Next() {
			n++
		}
	}
	return n, internal(errors.Join(it.Error(), it.Close()), "count keys")
}

func (r *read) needsSort() bool { return len(r.query.Sort) > 0 && !r.plan.sorted }

func (r *read) explain() store.Explanation {
	e := store.Explanation{KeysExamined: r.keysRead, DocsExamined: r.docsRead, SortInMemory: r.needsSort()}
	switch {
	case r.plan.index != nil:
		e.Indexes = []string{r.plan.index.def.Name}
	case len(r.plan.bound) > 0 || r.plan.sorted:
		e.Indexes = []string{"_id"}
	}
	return e
}

// keys calls fn for each key of the plan, in its order. The key is valid during the call.
func (r *read) keys(fn func(key []byte) error) error {
	if r.it == nil {
		return nil
	}
	for i := range r.plan.ranges {
		rg := r.plan.ranges[i]
		if r.plan.reverse {
			rg = r.plan.ranges[len(r.plan.ranges)-1-i]
		}
		if err := r.walk(rg, fn); err != nil {
			return err
		}
	}
	return internal(r.it.Error(), "read keys")
}

func (r *read) walk(rg keyRange, fn func(key []byte) error) error {
	step := r.it.Next
	var ok bool
	if r.plan.reverse {
		step, ok = r.it.Prev, r.it.SeekLT(rg.hi)
	} else {
		ok = r.it.SeekGE(rg.lo)
	}
	for ; ok; ok = step() {
		key := r.it.Key()
		if bytes.Compare(key, rg.lo) < 0 || bytes.Compare(key, rg.hi) >= 0 {
			return nil
		}
		if r.keysRead%checkEvery == checkEvery-1 && r.ctx.Err() != nil {
			return contextError(r.ctx)
		}
		r.keysRead++
		if err := fn(key); err != nil {
			return err
		}
	}
	return nil
}

// documents calls fn for each document that matches, in the plan's order. It is valid during the call.
func (r *read) documents(fn func(doc bson.Raw) error) error {
	return r.keys(func(key []byte) error {
		value, err := r.it.ValueAndErr()
		if err != nil {
			return internal(err, "read a document")
		}
		if r.plan.index == nil {
			return r.document(value, fn)
		}
		return r.fetch(key, value, fn)
	})
}

// fetch gets the document of an index entry.
func (r *read) fetch(key, value []byte, fn func(doc bson.Raw) error) (err error) {
	id, err := entryID(key, value)
	if err != nil {
		return err
	}
	if r.seen != nil {
		if _, again := r.seen[string(id)]; again {
			return nil
		}
		r.seen[string(id)] = struct{}{}
	}
	if r.skipKey() {
		return nil
	}
	stored, closer, err := r.src.get(docKey(r.coll.id, id))
	if err != nil {
		return internal(err, fmt.Sprintf("read the document of an entry of index %s", r.plan.index.def.Name))
	}
	defer closeInto(&err, closer.Close)
	return r.document(stored, fn)
}

// skipKey counts off Query.Skip without reading documents, where every key is a match.
func (r *read) skipKey() bool {
	if r.skip == 0 || !r.plan.exact || r.needsSort() || (len(r.query.After) > 0 && !r.plan.seeked) {
		return false
	}
	r.skip--
	return true
}

func (r *read) document(stored []byte, fn func(doc bson.Raw) error) error {
	r.docsRead++
	doc, err := storedDoc(stored)
	if err != nil {
		return err
	}
	if !r.query.Filter.Match(doc) {
		return nil
	}
	return fn(doc)
}

// entryID gives the key of the _id at the end of the key of an index entry.
func entryID(key, value []byte) ([]byte, error) {
	n, size := binary.Uvarint(value)
	if size <= 0 || n > uint64(len(key)) {
		return nil, internal(errors.New("damaged value"), "read an index entry")
	}
	return key[len(key)-int(n):], nil //nolint:gosec // bounded above
}

// stream passes on documents as they come.
func (r *read) stream(fn func(doc bson.Raw) error) error {
	var passed int64
	check := len(r.query.After) > 0 && !r.plan.seeked && len(r.query.Sort) > 0
	return r.documents(func(doc bson.Raw) error {
		if check && r.query.Sort.CompareKeys(r.query.Sort.Key(doc), r.query.After) <= 0 {
			return nil
		}
		if r.skip > 0 {
			r.skip--
			return nil
		}
		if err := fn(doc); err != nil {
			return err
		}
		passed++
		if passed == r.query.Limit {
			return errStop
		}
		return nil
	})
}
