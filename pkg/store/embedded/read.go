package embedded

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// Get returns the document whose _id is id.
func (c *Collection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := store.CheckID(id); err != nil {
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
	done, err := c.begin(ctx)
	if err != nil {
		return store.Explanation{}, err
	}
	defer done()
	st, err := c.state()
	if err != nil {
		return store.Explanation{}, err
	}
	defer closeInto(&err, st.close)
	return st.find(ctx, q, fn)
}

func (st *state) find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) (_ store.Explanation, err error) {
	if err := q.Check(); err != nil {
		return store.Explanation{}, err
	}
	return st.run(ctx, q, fn)
}

// run is find for a query that is right, as those of pipelines are.
func (st *state) run(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) (_ store.Explanation, err error) {
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
	r.learn()
	return r.explain(), err
}

// atMost is a + b, neither of them negative, or the largest number if that is beyond it.
func atMost(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Count counts the matches.
func (c *Collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (n int64, err error) {
	done, err := c.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	if key := tallyKey(filter); key != "" && limit <= 0 {
		return c.countOften(ctx, key, filter)
	}
	st, err := c.state()
	if err != nil {
		return 0, err
	}
	defer closeInto(&err, st.close)
	n, _, err = st.count(ctx, filter, limit)
	return n, err
}

// count counts the matches, up to limit (0: all), and tells how many keys that took.
func (st *state) count(ctx context.Context, filter *mql.Filter, limit int64) (n, keys int64, err error) {
	if st.coll == nil {
		return 0, 0, nil
	}
	if all, ok, err := st.countAll(filter, limit); ok || err != nil {
		return all, 0, err
	}
	r, err := st.startRead(ctx, store.Query{Filter: filter})
	if err != nil {
		return 0, 0, err
	}
	defer closeInto(&err, r.close)
	if r.plan.Exact && !r.plan.Repeats && len(r.walks) == 1 {
		n, err = r.walks[0].count(ctx, limit)
		return n, n, err
	}
	for limit <= 0 || n < limit {
		_, ok, err := r.next()
		if err != nil {
			return 0, 0, err
		}
		if !ok {
			break
		}
		n++
	}
	r.learn()
	return n, r.keysRead, nil
}

// countAll counts all documents without reading them, where that is what filter asks for.
func (st *state) countAll(filter *mql.Filter, limit int64) (n int64, ok bool, err error) {
	and, isAnd := filter.Root().(*mql.AndNode)
	if !isAnd || len(and.Nodes) > 0 {
		return 0, false, nil
	}
	total, err := readCounts(st.snap, st.coll.id)
	if n = total.docs; limit > 0 {
		n = min(n, limit)
	}
	return n, true, err
}

// closeInto runs a deferred close whose failure must not hide, nor wrap, an earlier error.
func closeInto(err *error, closeFn func() error) {
	if closeErr := closeFn(); closeErr != nil {
		*err = errors.Join(*err, internal(closeErr, "close a read"))
	}
}

// errStop, from the function that find calls, ends a query early. It never leaves this package.
var errStop = errors.New("stop")

// read is one query on one state of a collection.
type read struct {
	ctx    context.Context //nolint:containedctx // lives as long as the call that made it
	pace   store.Pace      // nil: it has none
	coll   *collection
	query  store.Query
	filter *mql.Filter
	snap   *pebble.Snapshot
	plan   *plan.Plan
	ended  func() error // says whether ctx has ended; made once, for many documents

	walks []walk // the plan's scans
	turn  int    // the one that is read, inTurn
	byKey heap[*walk]
	heads heap[*head] // byValue
	docs  fetcher
	seen  *keySet // the _id of documents that came, if they may come again
	skip  int64   // matches still to leave out

	sortMemory int64 // bytes

	keysRead, docsRead, returned int64
	// A trial ends after so many keys (0: none); cut tells that it did.
	maxKeys int64
	cut     bool
	// What to remember of a choice between plans; shape is empty if there was none.
	shape  string
	planID plan.ID
	cache  *plan.Cache

	values []bson.RawValue // buffers
	key    []byte
	out    []byte
}

// newRead makes a read that has no plan yet. The caller closes it.
func (st *state) newRead(ctx context.Context, q store.Query) *read {
	r := &read{ctx: ctx, pace: store.PaceOf(ctx), coll: st.coll, query: q, filter: q.Filter, skip: max(q.Skip, 0), snap: st.snap, sortMemory: maxSortMemory}
	if st.sortMemory > 0 {
		r.sortMemory = st.sortMemory
	}
	return r
}

// startRead chooses a plan. The caller closes the read.
func (st *state) startRead(ctx context.Context, q store.Query) (*read, error) {
	r := st.newRead(ctx, q)
	pl, err := st.choose(r)
	if err != nil {
		return nil, err
	}
	if err := r.start(pl); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// copy is another read of the same, not yet started.
func (r *read) copy() *read {
	return &read{ctx: r.ctx, pace: r.pace, coll: r.coll, query: r.query, filter: r.filter, skip: r.skip, snap: r.snap}
}

func (r *read) start(pl *plan.Plan) error {
	r.ended = func() error { return store.Ended(r.ctx) }
	r.plan = pl
	r.docs.coll = r.coll.id
	if pl.Repeats {
		r.seen = newKeySet()
	}
	r.walks = make([]walk, len(pl.Scans))
	for i, s := range pl.Scans {
		r.walks[i].Scan = s
		if err := r.walks[i].open(r.snap); err != nil {
			return err
		}
	}
	switch pl.Order {
	case plan.ByKey:
		return r.startByKey()
	case plan.ByValue:
		return r.startByValue()
	default:
		return nil
	}
}

func (r *read) close() error {
	err := r.docs.close()
	for i := range r.walks {
		err = errors.Join(err, r.walks[i].close())
	}
	return err
}

func (r *read) needsSort() bool { return len(r.query.Sort) > 0 && !r.plan.Sorted }

func (r *read) learn() {
	if r.shape != "" {
		r.cache.Learn(r.shape, r.planID, r.keysRead)
	}
}

func (r *read) explain() store.Explanation {
	e := store.Explanation{
		KeysExamined: r.keysRead, DocsExamined: r.docsRead, Returned: r.returned, SortInMemory: r.needsSort(),
	}
	for _, s := range r.plan.Scans {
		name := "_id"
		switch {
		case s.Index != nil:
			name = s.Index.Def.Name
		case !s.Bounded && !r.plan.Sorted:
			continue
		}
		if !slices.Contains(e.Indexes, name) {
			e.Indexes = append(e.Indexes, name)
		}
	}
	return e
}

// stream passes on documents as they come.
func (r *read) stream(fn func(doc bson.Raw) error) error {
	check := len(r.query.After) > 0 && !r.plan.Seeked && len(r.query.Sort) > 0
	for {
		doc, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if check {
			if r.values, err = r.query.Sort.AppendValues(r.values[:0], doc); err != nil {
				return err
			}
			if r.query.Sort.CompareKeys(r.values, r.query.After) <= 0 {
				continue
			}
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if err := r.pass(doc, fn); err != nil {
			return err
		}
		if r.returned == r.query.Limit {
			return nil
		}
	}
}

// pass gives a document to the caller.
func (r *read) pass(doc bson.Raw, fn func(doc bson.Raw) error) (err error) {
	r.returned++
	if r.query.Project == nil {
		return fn(doc)
	}
	if r.out, err = r.query.Project.Apply(r.out[:0], doc, r.filter); err != nil {
		return err
	}
	return fn(r.out)
}
