package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const (
	chunkOps   = 100       // ops that are decided together at most, unless they are atomic
	chunkBytes = 4 << 20   // and bytes of their documents
	maxAtomic  = 512 << 20 // bytes of documents in one atomic write
)

// pending is an op with what can be worked out before the commit mutex is taken.
type pending struct {
	op      *store.Op
	result  *store.Result
	id      []byte    // key of the _id
	indexes *indexSet // those that entries are for
	entries []entries // of Doc, in the order of indexes.all
}

// Write applies ops in order and returns one Result for each. Every op is decided under the commit mutex, on the state
// that the ops before it leave; nothing is acknowledged before its fsync, which many calls share.
func (c *Collection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	done, err := c.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.name.check(); err != nil {
		return nil, err
	}
	if err := c.s.disk.check(); err != nil {
		return nil, err
	}
	results := make([]store.Result, len(ops))
	work := make([]pending, len(ops))
	indexes := c.currentIndexes()
	size := 0
	for i := range ops {
		work[i] = pending{op: &ops[i], result: &results[i]}
		results[i].Err = work[i].prepare(indexes)
		size += len(ops[i].Doc)
	}
	if atomic && size > maxAtomic {
		return nil, errBatchSize
	}
	if err := c.commit(ctx, work, atomic); err != nil {
		return nil, err
	}
	return results, nil
}

func (c *Collection) currentIndexes() *indexSet {
	if coll := c.s.cat.get(c.name); coll != nil {
		return coll.indexes.Load()
	}
	return &indexSet{}
}

// prepare checks an op and works out its keys.
func (p *pending) prepare(indexes *indexSet) error {
	id := p.op.ID
	switch p.op.Kind {
	case store.Delete:
	case store.Insert, store.Replace:
		doc := p.op.Doc
		if len(doc) > document.MaxSize {
			return errDocSize
		}
		if err := doc.Validate(); err != nil {
			return errBadDoc.With(err)
		}
		id, _ = lookup(doc, "_id")
	default:
		return errBadOp
	}
	if err := checkID(id); err != nil {
		return err
	}
	p.id = idKey(id)
	return p.index(indexes)
}

// index works out the entries of the new document.
func (p *pending) index(indexes *indexSet) error {
	p.indexes, p.entries = indexes, nil
	if p.op.Kind == store.Delete {
		return nil
	}
	p.entries = make([]entries, len(indexes.all))
	for i, x := range indexes.all {
		var err error
		if p.entries[i], err = x.entriesOf(p.op.Doc); err != nil {
			return err
		}
	}
	return nil
}

func checkID(id bson.RawValue) error {
	switch id.Type {
	case 0, bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return errBadID
	default:
		if id.Validate() != nil {
			return errBadID
		}
		return nil
	}
}

// commit applies work in chunks and waits until all of them are on disk.
func (c *Collection) commit(ctx context.Context, work []pending, atomic bool) error {
	var commits []*commit
	var err error
	for first := true; len(work) > 0 && err == nil; first = false {
		n := len(work)
		if !atomic {
			n = chunk(work)
		}
		var b *commit
		if b, err = c.commitChunk(ctx, work[:n], atomic, first); b != nil {
			commits = append(commits, b)
		}
		work = work[n:]
	}
	for _, b := range commits {
		err = errors.Join(err, b.wait())
	}
	return err
}

func chunk(work []pending) int {
	size := 0
	for i := range work {
		if size += len(work[i].op.Doc); i > 0 && (i == chunkOps || size > chunkBytes) {
			return i
		}
	}
	return len(work)
}

// commitChunk decides ops and makes their effects visible, in one batch. The caller waits for it and closes it; it is
// nil if nothing was written.
func (c *Collection) commitChunk(ctx context.Context, work []pending, atomic, first bool) (*commit, error) {
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	if first && ctx.Err() != nil { // it may have taken long to get here
		return nil, contextError(ctx)
	}
	w, err := c.newWriter(work)
	if err != nil {
		return nil, err
	}
	if w == nil { // no collection, and nothing that makes one
		settle(work, atomic, func(*pending) error { return errs.ErrNotFound })
		return nil, nil
	}
	ok := settle(work, atomic, w.decide)
	if w.broken != nil || !ok || w.batch.Empty() {
		return nil, errors.Join(w.broken, w.discard())
	}
	if err := w.apply(); err != nil {
		return nil, err
	}
	return w.commit, nil
}

// settle runs do for each op that is not refused yet and notes its outcome. With atomic it stops at the first error
// and aborts the others; it then says false.
func settle(work []pending, atomic bool, do func(p *pending) error) bool {
	for i := range work {
		p := &work[i]
		if p.result.Err == nil {
			p.result.Err = do(p)
		}
		if atomic && p.result.Err != nil {
			for j := range work {
				if j != i {
					work[j].result.Err = store.ErrAborted
				}
			}
			return false
		}
	}
	return true
}

// newWriter starts a batch. It makes the collection if an op needs it; else a missing one gives nil.
func (c *Collection) newWriter(work []pending) (*writer, error) {
	coll := c.s.cat.get(c.name)
	if coll == nil && !inserts(work) {
		return nil, nil
	}
	b := c.s.newCommit(len(work) > 1)
	w, err := b.writer(c.name, coll)
	if err != nil {
		return nil, errors.Join(err, b.discard())
	}
	return w, nil
}

func inserts(work []pending) bool {
	for i := range work {
		if work[i].op.Kind == store.Insert && work[i].result.Err == nil {
			return true
		}
	}
	return false
}

func (w *writer) decide(p *pending) error {
	err := w.stage(p)
	if e := (*errs.Error)(nil); errors.As(err, &e) && e.Kind == errs.Internal {
		w.broken = err
	}
	return err
}

// stage decides one op. If it may be, its effects are in the batch, else nothing is.
func (w *writer) stage(p *pending) error {
	key := docKey(w.coll.id, p.id)
	old, err := getDoc(w.reader, key)
	if err != nil {
		return err
	}
	if err := p.permitted(old); err != nil {
		return err
	}
	if p.indexes != w.indexes {
		if err := p.index(w.indexes); err != nil {
			return err
		}
	}
	before := make([]entries, len(w.indexes.all))
	for i, x := range w.indexes.all {
		if old != nil {
			if before[i], err = x.entriesOf(old); err != nil {
				return internal(err, "index a stored document")
			}
		}
		if err := w.checkUnique(x, before[i], p.after(i), p.id); err != nil {
			return err
		}
	}
	for i, x := range w.indexes.all {
		if err := w.move(x, before[i], p.after(i), p.id); err != nil {
			return internal(err, "stage index entries")
		}
		w.multikey[i] |= p.after(i).multikey
	}
	w.tell(old, p.op.Doc)
	if p.op.Kind == store.Delete {
		return internal(w.batch.Delete(key, nil), "stage a delete")
	}
	return internal(setDoc(w.batch, key, p.op.Doc), "stage a document")
}

// permitted checks an op against the stored document, if there is one.
func (p *pending) permitted(old bson.Raw) error {
	switch {
	case p.op.Kind == store.Insert && old != nil:
		return &store.DuplicateKeyError{Index: "_id", Paths: []string{"_id"}}
	case p.op.Kind == store.Insert:
		return nil
	case old == nil:
		return errs.ErrNotFound
	case !p.op.If.Match(old):
		return store.ErrStale
	default:
		return nil
	}
}

// after gives the entries in index i that the op leaves.
func (p *pending) after(i int) entries {
	if p.entries == nil {
		return entries{}
	}
	return p.entries[i]
}

// checkUnique refuses entries that another document has in a unique index.
func (w *writer) checkUnique(x *index, before, after entries, id []byte) error {
	if !x.def.Unique {
		return nil
	}
	for _, key := range after.keys {
		if before.has(key) {
			continue
		}
		holder, err := holderOf(w.reader, w.coll, x, key, id)
		if err != nil {
			return err
		}
		if holder != nil {
			dup := &store.DuplicateKeyError{Index: x.def.Name}
			for _, k := range x.def.Keys {
				dup.Paths = append(dup.Paths, k.Path)
			}
			return dup
		}
	}
	return nil
}

// holderOf gives the key of the _id of a document other than id that has an entry; nil if there is none.
func holderOf(r pebble.Reader, coll *collection, x *index, key, id []byte) (holder []byte, err error) {
	prefix := append(indexPrefix(coll.id, x.id), key...)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: keyAfter(prefix)})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	for ok := it.First(); ok; ok = it.Next() {
		if other := it.Key()[len(prefix):]; !bytes.Equal(other, id) {
			holder = bytes.Clone(other)
			break
		}
	}
	return holder, internal(errors.Join(it.Error(), it.Close()), "look for a key")
}

// move replaces the entries of a document in x.
func (w *writer) move(x *index, before, after entries, id []byte) error {
	prefix := indexPrefix(w.coll.id, x.id)
	for _, key := range before.keys {
		if after.has(key) {
			continue
		}
		if err := w.batch.Delete(entryKey(prefix, key, id), nil); err != nil {
			return err
		}
	}
	for _, key := range after.keys {
		if before.has(key) {
			continue
		}
		if err := setEntry(w.batch, prefix, key, id); err != nil {
			return err
		}
	}
	return nil
}

func entryKey(prefix, key, id []byte) []byte {
	return bytes.Join([][]byte{prefix, key, id}, nil)
}

func setEntry(b *pebble.Batch, prefix, key, id []byte) error {
	var value [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(value[:], uint64(len(id)))
	return b.Set(entryKey(prefix, key, id), value[:n], nil)
}

func setDoc(b *pebble.Batch, key []byte, doc bson.Raw) error {
	op := b.SetDeferred(len(key), 1+len(doc))
	copy(op.Key, key)
	op.Value[0] = docHeader
	copy(op.Value[1:], doc)
	return op.Finish()
}
