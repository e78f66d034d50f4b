package embedded

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

const (
	buildChunk    = 500 // documents that are indexed while writers wait
	maxViolations = 5
)

// Indexes lists the indexes that are ready, by name.
func (c *Collection) Indexes(ctx context.Context) ([]store.Index, error) {
	done, err := c.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out := []store.Index{}
	for _, x := range c.currentIndexes().ready {
		def := x.def
		def.Keys = slices.Clone(def.Keys)
		out = append(out, def)
	}
	return out, nil
}

// CreateIndex builds an index while reads and writes go on. First it is marked: from then on, writers keep it up to
// date (and, if it is unique, to it). Then the documents that are there are indexed, some at a time. An end of the
// process or of ctx in between leaves nothing behind.
func (c *Collection) CreateIndex(ctx context.Context, def store.Index) error {
	done, err := c.s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := errors.Join(c.name.check(), checkIndex(def)); err != nil {
		return err
	}
	if err := c.s.disk.check(); err != nil {
		return err
	}
	select {
	case c.s.building <- struct{}{}:
		defer func() { <-c.s.building }()
	case <-ctx.Done():
		return contextError(ctx)
	case <-c.s.state.closing:
		return errClosed
	}
	coll, x, err := c.markIndex(def)
	if err != nil || x == nil {
		return err
	}
	b := build{s: c.s, coll: coll, index: x, next: docPrefix(coll.id)}
	if err := b.run(ctx); err != nil {
		return errors.Join(err, c.s.removeIndex(coll, x))
	}
	return nil
}

func checkIndex(def store.Index) error {
	if def.Name == "" || strings.HasPrefix(def.Name, "_id") || len(def.Keys) == 0 || len(def.Keys) > 32 {
		return errBadIndex
	}
	for i, k := range def.Keys {
		same := func(o store.IndexKey) bool { return o.Path == k.Path }
		if slices.Contains(strings.Split(k.Path, "."), "") || strings.ContainsRune(k.Path, 0) ||
			slices.ContainsFunc(def.Keys[:i], same) {
			return errBadIndex
		}
	}
	return nil
}

// markIndex adds an index that is not ready. It gives nil if an equal one exists.
func (c *Collection) markIndex(def store.Index) (coll *collection, x *index, err error) {
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll = c.s.cat.get(c.name)
	if coll != nil {
		if old := coll.indexes.Load().find(def.Name); old != nil {
			if old.def.Unique != def.Unique || old.def.Sparse != def.Sparse || !slices.Equal(old.def.Keys, def.Keys) {
				return nil, nil, errIndexTaken
			}
			return coll, nil, nil
		}
	}
	var set *indexSet
	err = c.s.write(func(b *pebble.Batch) (err error) {
		if coll == nil {
			if coll, err = c.s.cat.create(b, c.name); err != nil {
				return err
			}
		}
		id, err := c.s.cat.newID(b)
		if err != nil {
			return internal(err, "number an index")
		}
		x = newIndex(id, def)
		set = coll.indexes.Load().with(x, false)
		return coll.put(b, set)
	})
	if err != nil {
		return nil, nil, err
	}
	coll.indexes.Store(set)
	c.s.cat.add(coll)
	return coll, x, nil
}

// DropIndex removes an index.
func (c *Collection) DropIndex(ctx context.Context, name string) error {
	done, err := c.s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	coll := c.s.cat.get(c.name)
	if coll == nil {
		return nil
	}
	x := coll.indexes.Load().find(name)
	if x == nil {
		return nil
	}
	return c.s.removeIndex(coll, x)
}

// removeIndex takes an index away, ready or not, if it is still there.
func (s *Store) removeIndex(coll *collection, x *index) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if !s.has(coll, x) {
		return nil
	}
	set := coll.indexes.Load().without(x)
	coll.indexes.Store(set) // before the entries go: see collection.indexes
	return s.write(func(b *pebble.Batch) error {
		prefix := indexPrefix(coll.id, x.id)
		return errors.Join(b.DeleteRange(prefix, keyAfter(prefix), nil), coll.put(b, set))
	})
}

// has says whether an index exists. The caller holds the commit mutex.
func (s *Store) has(coll *collection, x *index) bool {
	return s.cat.get(coll.name) == coll && slices.Contains(coll.indexes.Load().all, x)
}

// dropUnfinished removes the indexes whose building was cut short.
func (s *Store) dropUnfinished(ctx context.Context) error {
	for _, coll := range s.cat.sorted() {
		set := coll.indexes.Load()
		for _, x := range set.all {
			if slices.Contains(set.ready, x) {
				continue
			}
			if ctx.Err() != nil {
				return contextError(ctx)
			}
			if err := s.removeIndex(coll, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// build is the making of one index.
type build struct {
	s     *Store
	coll  *collection
	index *index
	next  []byte // key of the document to go on with; nil: all done

	violators []bson.RawValue
	seen      map[string]bool // their keys
}

func (b *build) run(ctx context.Context) error {
	for b.next != nil && len(b.violators) < maxViolations {
		select {
		case <-ctx.Done():
			return contextError(ctx)
		case <-b.s.state.closing:
			return errClosed
		default:
		}
		if err := b.step(); err != nil {
			return err
		}
	}
	if len(b.violators) > 0 {
		return &store.ViolationError{Index: b.index.def.Name, IDs: b.violators}
	}
	return b.finish()
}

// step indexes the next documents. Writers wait meanwhile, so none of them can change underneath. The batch need not
// be durable: an index that is not ready is removed when the store is opened, and the mark of readiness comes behind
// it in the log.
func (b *build) step() error {
	b.s.commit.Lock()
	defer b.s.commit.Unlock()
	if !b.s.has(b.coll, b.index) {
		return errDropped
	}
	batch := b.s.db.NewIndexedBatch()
	defer batch.Close() //nolint:errcheck // returns memory only
	if err := b.fill(batch); err != nil {
		return err
	}
	if batch.Empty() {
		return nil
	}
	return b.s.applyLazily(batch)
}

func (b *build) fill(batch *pebble.Batch) (err error) {
	it, err := b.s.db.NewIter(&pebble.IterOptions{LowerBound: b.next, UpperBound: keyAfter(docPrefix(b.coll.id))})
	if err != nil {
		return internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n > buildChunk || len(b.violators) >= maxViolations {
			b.next = bytes.Clone(it.Key())
			return nil
		}
		if err := b.document(batch, it.Key()[len(docPrefix(b.coll.id)):], it.Value()); err != nil {
			return err
		}
	}
	b.next = nil
	return internal(it.Error(), "read documents")
}

func (b *build) document(batch *pebble.Batch, id, stored []byte) error {
	doc, err := storedDoc(stored)
	if err != nil {
		return err
	}
	e, err := b.index.entriesOf(doc)
	if err != nil {
		return err
	}
	b.index.multikey.Or(e.multikey)
	prefix := indexPrefix(b.coll.id, b.index.id)
	for _, key := range e.keys {
		if b.index.def.Unique {
			holder, err := holderOf(batch, b.coll, b.index, key, id)
			if err != nil {
				return err
			}
			if holder != nil {
				return b.violation(holder, id, doc)
			}
		}
		if err := setEntry(batch, prefix, key, id); err != nil {
			return internal(err, "stage an index entry")
		}
	}
	return nil
}

// violation notes two documents that share a key. The second is not indexed.
func (b *build) violation(holder, id []byte, doc bson.Raw) error {
	first, err := getDoc(b.s.db, docKey(b.coll.id, holder))
	if err != nil {
		return err
	}
	b.note(holder, first)
	b.note(id, bytes.Clone(doc))
	return nil
}

func (b *build) note(id []byte, doc bson.Raw) {
	if b.seen[string(id)] || len(b.violators) == maxViolations {
		return
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[string(id)] = true
	v, _ := lookup(doc, "_id")
	b.violators = append(b.violators, v)
}

// finish marks the index ready.
func (b *build) finish() error {
	b.s.commit.Lock()
	defer b.s.commit.Unlock()
	if !b.s.has(b.coll, b.index) {
		return errDropped
	}
	set := b.coll.indexes.Load().with(b.index, true)
	if err := b.s.write(func(batch *pebble.Batch) error { return b.coll.put(batch, set) }); err != nil {
		return err
	}
	b.coll.indexes.Store(set)
	return nil
}
