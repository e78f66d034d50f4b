package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// commit is one batch that is put together under the commit mutex and then applied as a whole, with what the feed and
// the counters have to know of it.
type commit struct {
	s       *Store
	batch   *pebble.Batch
	reader  pebble.Reader // sees what is in batch, if that is more than one change
	writers []*writer
	ledger  ledger
	first   writer // most commits have only one
	number  uint64 // in the order of commits, once it is applied
}

// writer is the part of a commit that is on one collection.
type writer struct {
	*commit
	name     collectionName
	coll     *collection // nil: it comes into being with its first document
	created  bool
	indexes  *indexSet
	multikey []uint32     // new bits, in the order of indexes.all
	self     *transaction // whose commit this is, if it is one's
	matching int          // Work of the filters that were matched under the commit mutex
	holder   []byte       // key of the _id of the document that the last DuplicateKeyError is about
}

// newCommit starts a commit. With several changes, each sees those before it.
func (s *Store) newCommit(several bool) *commit {
	if several {
		b := s.db.NewIndexedBatch()
		return &commit{s: s, batch: b, reader: b}
	}
	return &commit{s: s, batch: s.db.NewBatch(), reader: s.db}
}

// writer adds a collection to the commit.
func (c *commit) writer(name collectionName) *writer {
	w := &c.first
	if len(c.writers) > 0 {
		w = &writer{}
	}
	*w = writer{commit: c, name: name, coll: c.s.cat.get(name), indexes: noIndexes}
	if w.coll != nil {
		w.indexes = w.coll.indexes.Load()
	}
	if len(w.indexes.all) > 0 {
		w.multikey = make([]uint32, len(w.indexes.all))
	}
	c.writers = append(c.writers, w)
	return w
}

// noIndexes is the indexes of a collection that does not exist.
var noIndexes = &indexSet{} //nolint:gochecknoglobals // a constant

// stored gives a copy of a document as the commit leaves it; nil if there is none.
func (w *writer) stored(id []byte) (bson.Raw, error) {
	if w.coll == nil {
		return nil, nil
	}
	return getDoc(w.reader, docKey(w.coll.id, id))
}

// unchanged says whether a document is want, to the byte (nil: there is none), as it was when it was seen.
func (w *writer) unchanged(id []byte, want bson.Raw, when seen) (bool, error) {
	if w.coll == nil {
		return want == nil, nil
	}
	if w.untouched(id, when) {
		return true, nil
	}
	return sameDoc(w.reader, docKey(w.coll.id, id), want)
}

func sameDoc(r pebble.Reader, key []byte, want bson.Raw) (bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return want == nil, nil
	}
	if err != nil {
		return false, internal(err, "read a document")
	}
	same := len(value) > 0 && value[0] == docHeader && bytes.Equal(value[1:], want)
	return same, internal(closer.Close(), "close a read")
}

// stage adds an edit, or refuses it and adds nothing. The caller has seen to it that the document is edit.old.
func (w *writer) stage(e *edit) error {
	if e.same {
		return nil
	}
	if err := w.room(); err != nil {
		return err
	}
	if e.indexes != w.indexes {
		if err := e.plan(w.indexes); err != nil {
			return err
		}
	}
	for i := range e.moves {
		if err := w.checkUnique(&e.moves[i], e.id); err != nil {
			return err
		}
	}
	if err := w.unindex(e); err != nil {
		return err
	}
	return w.put(e)
}

// room refuses a commit that has become too large; the engine itself would panic, at 4 GiB.
func (w *writer) room() error {
	if w.batch.Len() > w.s.limits.commit {
		return errBatchSize
	}
	return nil
}

// put adds the document of an edit and its new entries.
func (w *writer) put(e *edit) error {
	if w.coll == nil {
		coll, err := w.s.cat.create(w.batch, w.name)
		if err != nil {
			return err
		}
		w.coll, w.created = coll, true
		w.indexes = coll.indexes.Load()
	}
	for i := range e.moves {
		m := &e.moves[i]
		w.multikey[m.at] |= m.multikey
		prefix := indexPrefix(w.coll.id, m.index.id)
		for _, key := range m.add {
			if err := setEntry(w.batch, prefix, key, e.id); err != nil {
				return internal(err, "stage an index entry")
			}
		}
	}
	w.touch(e.id)
	w.coll.chased(e.id)
	w.tell(e)
	w.tally(e)
	if e.new == nil {
		return internal(w.batch.Delete(docKey(w.coll.id, e.id), nil), "stage a delete")
	}
	return internal(setDoc(w.batch, w.coll.id, e.id, e.new), "stage a document")
}

// unindex adds that the entries go which an edit takes away.
func (w *writer) unindex(e *edit) error {
	for i := range e.moves {
		prefix := indexPrefix(w.coll.id, e.moves[i].index.id)
		for _, key := range e.moves[i].remove {
			op := w.batch.DeleteDeferred(len(prefix) + len(key) + len(e.id))
			joinInto(op.Key, prefix, key, e.id)
			if err := op.Finish(); err != nil {
				return internal(err, "stage an index entry")
			}
		}
	}
	return nil
}

// checkUnique refuses entries that another document has in a unique index.
func (w *writer) checkUnique(m *move, id []byte) error {
	if !m.index.def.Unique {
		return nil
	}
	for _, key := range m.add {
		if t := w.s.heldKey(w.name, m.index, key, w.self); t != nil {
			return held{t}
		}
		holder, err := holderIn(w.reader, w.coll, m.index, key, id)
		if err != nil {
			return err
		}
		if holder != nil {
			w.holder = holder
			return m.index.duplicate()
		}
	}
	return nil
}

func (x *index) duplicate() error {
	dup := &store.DuplicateKeyError{Index: x.def.Name}
	for _, k := range x.def.Keys {
		dup.Paths = append(dup.Paths, k.Path)
	}
	return dup
}

// holderIn gives the key of the _id of a document other than id that has an entry; nil if there is none.
func holderIn(r pebble.Reader, coll *collection, x *index, key, id []byte) (holder []byte, err error) {
	prefix := append(indexPrefix(coll.id, x.id), key...)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: document.KeyAfter(prefix)})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	return holderOf(it, prefix, id)
}

// holderOf is holderIn by an iterator that is there: prefix is that of the key's entries.
func holderOf(it *pebble.Iterator, prefix, id []byte) ([]byte, error) {
	for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		if other := it.Key()[len(prefix):]; !bytes.Equal(other, id) {
			return bytes.Clone(other), nil
		}
	}
	return nil, internal(it.Error(), "look for a key")
}

func entryKey(prefix, key, id []byte) []byte {
	return bytes.Join([][]byte{prefix, key, id}, nil)
}

func setEntry(b *pebble.Batch, prefix, key, id []byte) error {
	var value [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(value[:], uint64(len(id)))
	op := b.SetDeferred(len(prefix)+len(key)+len(id), n)
	joinInto(op.Key, prefix, key, id)
	copy(op.Value, value[:n])
	return op.Finish()
}

func joinInto(dst, prefix, key, id []byte) {
	n := copy(dst, prefix)
	n += copy(dst[n:], key)
	copy(dst[n:], id)
}

func setDoc(b *pebble.Batch, coll uint32, id []byte, doc bson.Raw) error {
	op := b.SetDeferred(5+len(id), 1+len(doc))
	op.Key[0] = spaceDocs
	binary.BigEndian.PutUint32(op.Key[1:], coll)
	copy(op.Key[5:], id)
	op.Value[0] = docHeader
	copy(op.Value[1:], doc)
	return op.Finish()
}

// tell takes up an edit for the feed and the counters.
func (w *writer) tell(e *edit) {
	switch {
	case e.old == nil:
		id, _ := document.Field(e.new, "_id")
		w.log(store.Inserted, id, nil)
		w.count(1, int64(len(e.new)))
	case e.new == nil:
		id, _ := document.Field(e.old, "_id")
		w.log(store.Deleted, id, w.details(e))
		w.count(-1, -int64(e.before))
	default:
		id, _ := document.Field(e.new, "_id")
		w.log(store.Updated, id, w.details(e))
		w.count(0, int64(len(e.new)-e.before))
	}
}

// apply makes the commit visible, after what readers have to know first. The caller waits for it.
func (c *commit) apply() error {
	for _, w := range c.writers {
		if err := w.markLists(); err != nil {
			return errors.Join(err, c.discard())
		}
	}
	if err := c.seal(); err != nil {
		return errors.Join(err, c.discard())
	}
	if err := c.s.apply(c.batch); err != nil {
		return err
	}
	c.number = c.s.applied.Add(1)
	for _, w := range c.writers {
		if w.created {
			c.s.cat.add(w.coll)
		}
	}
	c.applied()
	return nil
}

// markLists notes in the catalog that indexes have come to hold lists.
func (w *writer) markLists() error {
	lists := false
	for i, bits := range w.multikey {
		x := w.indexes.all[i]
		if old := x.multikey.Or(bits); old|bits != old {
			lists = true
		}
	}
	if !lists {
		return nil
	}
	return w.coll.put(w.batch, w.indexes)
}

// wait returns when the commit is on disk, and releases it.
func (c *commit) wait() error {
	err := c.s.wait(c.batch)
	if err == nil {
		c.s.noteSynced(c.number)
		c.durable()
	}
	return errors.Join(err, c.discard())
}

// finish applies the commit if there is anything in it, else it releases it. The caller waits for it.
func (c *commit) finish() (applied bool, err error) {
	if c.batch.Empty() {
		return false, c.discard()
	}
	return true, c.apply()
}

// commit lets decide stage writes to c under the commit mutex, and applies them unless it says not to keep them or fails.
// The caller waits for the commit, which is nil if nothing was written. Where several writes are staged, each sees those
// before it.
func (c *Collection) commit(ctx context.Context, several bool, decide func(w *writer) (keep bool, err error)) (*commit, error) {
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	if ctx.Err() != nil { // it may have taken long to get here
		return nil, store.Ended(ctx)
	}
	w := c.s.newCommit(several).writer(c.name)
	keep, err := decide(w)
	if err != nil || !keep {
		return nil, also(err, w.discard())
	}
	applied, err := w.finish()
	if err != nil || !applied {
		return nil, err
	}
	return w.commit, nil
}

// acks is commits that are applied but may not be on disk yet.
type acks struct{ open []*commit }

// maxOpen is how many commits of one Write may wait for the disk at once.
const maxOpen = 8

func (a *acks) add(c *commit) error {
	a.open = append(a.open, c)
	if len(a.open) < maxOpen {
		return nil
	}
	first := a.open[0]
	a.open = append(a.open[:0], a.open[1:]...)
	return first.wait()
}

// take adds a commit (nil: none) whose making ended with err. If that was because a transaction is in the way, it waits
// for its end, and the rest has to be tried again.
func (a *acks) take(ctx context.Context, c *commit, err error) (again bool, _ error) {
	if c != nil {
		err = also(err, a.add(c))
	}
	h, ok := err.(held) //nolint:errorlint // never wrapped
	if !ok {
		return false, err
	}
	return true, h.by.s.await(ctx, h.by, nil)
}

// wait returns when all of them are on disk.
func (a *acks) wait() error {
	var err error
	for _, c := range a.open {
		err = errors.Join(err, c.wait())
	}
	a.open = nil
	return err
}

// discard releases the commit, applied or not.
func (c *commit) discard() error { return internal(c.batch.Close(), "close a batch") }
