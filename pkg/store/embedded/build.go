package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

const (
	buildDocs     = 500     // documents that are indexed in one step, at most
	buildEntries  = 2000    // and about as many entries
	buildBytes    = 4 << 20 // and about as many bytes of documents
	buildTurn     = 16      // documents that are read in one go, before others have their turn
	buildChanged  = 1000    // documents that may have changed meanwhile; else the step is taken anew
	maxViolations = 5
)

// build is the making of one index, in a goroutine of its own. In steps, it reads documents on a snapshot and works out
// their entries while writes go on; then it takes the commit mutex, looks again at those documents that were written to
// since the snapshot, and commits. How far it is stands in the same batch, so that it can go on there after a crash.
type build struct {
	s      *Store
	collID uint32
	index  *index
	ctx    context.Context //nolint:containedctx // ends with the store, or when the index is dropped
	cancel context.CancelFunc
	next   []byte // key of the _id to go on with
	docs   int    // for the next step: fewer while too much changes during one

	// Guarded by the commit mutex.
	coll    *collection
	waiters int // calls of CreateIndex

	done chan struct{}
	err  error // once done is closed
}

func newBuild(s *Store, coll *collection, x *index) *build {
	b := &build{s: s, coll: coll, collID: coll.id, index: x, docs: buildDocs, done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(s.ctx)
	x.build = b
	return b
}

// start lets b run. The caller holds the commit mutex.
func (b *build) start() {
	b.s.background(func(context.Context) {
		defer close(b.done)
		defer b.cancel()
		b.err = errBuildPanic
		b.err = b.run()
	})
}

// resumeBuilds goes on with the builds that an end of the process has cut short.
func (s *Store) resumeBuilds() error {
	s.commit.Lock()
	defer s.commit.Unlock()
	for _, coll := range s.cat.sorted() {
		set := coll.indexes.Load()
		for _, x := range set.all {
			if slices.Contains(set.ready, x) {
				continue
			}
			b := newBuild(s, coll, x)
			if err := b.load(); err != nil {
				return err
			}
			b.start()
		}
	}
	return nil
}

// load reads how far the build was. Lists that were met until then are known to be in the index.
func (b *build) load() error {
	value, err := b.s.get(buildKey(b.collID, b.index.id))
	if err != nil || value == nil {
		return err
	}
	if len(value) < 4 {
		return errors.New("damaged progress of a build")
	}
	b.index.multikey.Or(binary.BigEndian.Uint32(value))
	b.next = value[4:]
	return nil
}

// leave is for a waiter whose ctx has ended. The last one removes the index, unless it has just become ready.
func (b *build) leave(ctx context.Context) error {
	b.s.commit.Lock()
	b.waiters--
	var err error
	if b.waiters == 0 && b.has() {
		if slices.Contains(b.coll.indexes.Load().ready, b.index) {
			b.s.commit.Unlock()
			return nil
		}
		err = b.s.removeIndex(b.coll, b.index)
	}
	last := b.waiters == 0
	b.s.commit.Unlock()
	if last {
		<-b.done
	}
	return errors.Join(store.Ended(ctx), err)
}

// has says whether the index still exists, and follows its collection to another name. The caller holds the commit
// mutex.
func (b *build) has() bool {
	for b.coll.renamed != nil {
		b.coll = b.coll.renamed
	}
	return b.s.has(b.coll, b.index)
}

func (b *build) run() error {
	select { // one at a time
	case b.s.building <- struct{}{}:
		defer func() { <-b.s.building }()
	case <-b.ctx.Done():
		return b.ended()
	}
	err := b.make()
	if err == nil {
		return nil
	}
	b.s.commit.Lock()
	defer b.s.commit.Unlock()
	b.index.changed = nil
	if b.s.ctx.Err() != nil || b.s.failed.Load() != nil {
		return err // it goes on when the store is opened again
	}
	if b.waiters == 0 && b.has() {
		b.s.opts.Logger.Error("store index not built", slog.String("collection", b.coll.name.String()),
			slog.String("index", b.index.def.Name), slog.Any("error", err))
	}
	if b.has() {
		err = errors.Join(err, b.s.removeIndex(b.coll, b.index))
	}
	return err
}

// ended is why ctx did.
func (b *build) ended() error {
	if b.s.ctx.Err() != nil {
		return store.ErrClosed
	}
	return errDropped
}

func (b *build) make() error {
	var snap *pebble.Snapshot
	batch := b.s.db.NewBatch()
	defer func() {
		_ = batch.Close() // returns memory only
		if snap != nil {
			_ = snap.Close() // a snapshot has no failure of its own
		}
	}()
	commit := func(c *buildChunk) (ok bool, err error) {
		b.s.commit.Lock()
		defer b.s.commit.Unlock()
		if !b.has() {
			return false, errDropped
		}
		if c != nil {
			if ok, err = b.commit(c, batch); err != nil {
				return false, err
			}
			_ = snap.Close()
		}
		b.index.changed = map[string]struct{}{}
		snap = b.s.db.NewSnapshot()
		return ok, nil
	}
	if _, err := commit(nil); err != nil {
		return err
	}
	for {
		if err := b.room(); err != nil {
			return err
		}
		c, err := b.collect(snap)
		if err != nil {
			return err
		}
		if len(c.violators) > 0 {
			return &store.ViolationError{Index: b.index.def.Name, IDs: c.violators}
		}
		if err := b.stage(c, batch); err != nil {
			return err
		}
		ok, err := commit(c)
		if err != nil {
			return err
		}
		if !ok { // too much has changed
			b.docs = max(b.docs/4, 1)
			continue
		}
		b.docs = min(b.docs*2, buildDocs)
		if c.end == nil {
			return b.finish()
		}
		b.next = c.end
	}
}

// room waits until the disk has room.
func (b *build) room() error {
	for b.s.disk.check() != nil {
		select {
		case <-b.ctx.Done():
			return b.ended()
		case <-time.After(time.Second):
		}
	}
	if b.ctx.Err() != nil {
		return b.ended()
	}
	return nil
}

// buildChunk is the documents of one step.
type buildChunk struct {
	docs      []builtDoc // by id
	end       []byte     // id of the document behind them; nil: there is none
	entries   int
	bytes     int
	multikey  uint32
	holders   map[string][]byte // in a unique index, the id for each key
	violators []bson.RawValue
	seen      map[string]bool // their ids
}

type builtDoc struct {
	id   []byte // key of the _id
	keys [][]byte
}

// collect reads the next documents on a snapshot and works out their entries.
func (b *build) collect(snap *pebble.Snapshot) (c *buildChunk, err error) {
	c = &buildChunk{holders: map[string][]byte{}, seen: map[string]bool{}}
	prefix := docPrefix(b.collID)
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: docKey(b.collID, b.next), UpperBound: document.KeyAfter(prefix)})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	taken, err := b.newProbe(snap)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, taken.Close)
	for ok := it.First(); ok; ok = it.Next() {
		id := bytes.Clone(it.Key()[len(prefix):])
		if len(c.docs) == b.docs || c.entries >= buildEntries || c.bytes >= buildBytes {
			c.end = id
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, internal(err, "read a document")
		}
		c.bytes += len(value)
		if err := b.document(c, snap, taken, id, value); err != nil {
			return nil, err
		}
		if b.ctx.Err() != nil {
			return nil, b.ended()
		}
		if len(c.docs)%buildTurn == 0 {
			runtime.Gosched() // else those who can go on wait for as long as a goroutine may run
		}
	}
	return c, internal(it.Error(), "read documents")
}

// newProbe looks for entries that are there; only a unique index needs it.
func (b *build) newProbe(snap *pebble.Snapshot) (*pebble.Iterator, error) {
	prefix := indexPrefix(b.collID, b.index.id)
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: document.KeyAfter(prefix)})
	return it, internal(err, "open an iterator")
}

func (b *build) document(c *buildChunk, snap *pebble.Snapshot, taken *pebble.Iterator, id, stored []byte) error {
	doc, err := storedDoc(stored)
	if err != nil {
		return err
	}
	e, err := b.index.entriesOf(doc)
	if err != nil {
		return err
	}
	c.multikey |= e.multikey
	c.entries += len(e.keys)
	c.docs = append(c.docs, builtDoc{id: id, keys: e.keys})
	if !b.index.def.Unique {
		return nil
	}
	for _, key := range e.keys {
		holder := c.holders[string(key)]
		if holder == nil {
			if holder, err = holderOf(taken, append(indexPrefix(b.collID, b.index.id), key...), id); err != nil {
				return err
			}
		}
		if holder == nil {
			c.holders[string(key)] = id
			continue
		}
		first, err := getDoc(snap, docKey(b.collID, holder))
		if err != nil {
			return err
		}
		c.violated(holder, first)
		c.violated(id, bytes.Clone(doc))
	}
	return nil
}

// violated notes a document that shares a key.
func (c *buildChunk) violated(id []byte, doc bson.Raw) {
	if c.seen[string(id)] || len(c.violators) == maxViolations || doc == nil {
		return
	}
	c.seen[string(id)] = true
	v, _ := document.Field(doc, "_id")
	c.violators = append(c.violators, v)
}

// stage puts the entries of c into a batch.
func (b *build) stage(c *buildChunk, batch *pebble.Batch) error {
	batch.Reset()
	prefix := indexPrefix(b.collID, b.index.id)
	for _, d := range c.docs {
		for _, key := range d.keys {
			if err := setEntry(batch, prefix, key, d.id); err != nil {
				return internal(err, "stage an index entry")
			}
		}
	}
	return nil
}

// commit applies a batch with the entries of c, and how far the build is. Documents that were written to since the
// snapshot are taken as they are now; if those are too many to do so while writers wait, ok is false. The caller holds
// the commit mutex. The batch need not be durable: what is lost of it in a crash is built again.
func (b *build) commit(c *buildChunk, batch *pebble.Batch) (ok bool, err error) {
	if len(b.index.changed) > buildChanged && b.docs > 1 {
		return false, nil
	}
	again := false
	for id := range b.index.changed {
		again = c.forget([]byte(id)) || again
	}
	for id := range b.index.changed {
		if err := b.recheck(c, []byte(id)); err != nil {
			return false, err
		}
	}
	if len(c.violators) > 0 {
		return false, &store.ViolationError{Index: b.index.def.Name, IDs: c.violators}
	}
	if again {
		if err := b.stage(c, batch); err != nil {
			return false, err
		}
	}
	b.index.multikey.Or(c.multikey)
	progress := binary.BigEndian.AppendUint32(nil, b.index.multikey.Load())
	if err := batch.Set(buildKey(b.collID, b.index.id), append(progress, c.end...), nil); err != nil {
		return false, internal(err, "stage progress")
	}
	return true, b.s.applyLazily(batch)
}

// find says which of the documents of c has an id.
func (c *buildChunk) find(id []byte) (i int, found bool) {
	return slices.BinarySearchFunc(c.docs, id, func(d builtDoc, id []byte) int { return bytes.Compare(d.id, id) })
}

// forget takes away what was worked out for a document; ok says that there was something.
func (c *buildChunk) forget(id []byte) (ok bool) {
	i, found := c.find(id)
	if !found {
		return false
	}
	for _, key := range c.docs[i].keys {
		if bytes.Equal(c.holders[string(key)], id) {
			delete(c.holders, string(key))
		}
	}
	c.docs[i].keys = nil
	return true
}

// recheck takes a document as it is now. Writers have seen to its entries but for those that it has in common with what
// it was before, and to that no document indexed before has them.
func (b *build) recheck(c *buildChunk, id []byte) error {
	doc, err := getDoc(b.s.db, docKey(b.collID, id))
	if err != nil || doc == nil {
		return err
	}
	e, err := b.index.entriesOf(doc)
	if err != nil {
		return err
	}
	if i, found := c.find(id); found {
		c.docs[i].keys = e.keys
		c.multikey |= e.multikey
	}
	if !b.index.def.Unique {
		return nil
	}
	for _, key := range e.keys {
		holder := c.holders[string(key)]
		if holder == nil || bytes.Equal(holder, id) {
			c.holders[string(key)] = id
			continue
		}
		other, err := getDoc(b.s.db, docKey(b.collID, holder))
		if err != nil {
			return err
		}
		c.violated(holder, other)
		c.violated(id, doc)
	}
	return nil
}

// finish marks the index ready.
func (b *build) finish() error {
	b.s.commit.Lock()
	defer b.s.commit.Unlock()
	if !b.has() {
		return errDropped
	}
	set := b.coll.indexes.Load().with(b.index, true)
	err := b.s.write(func(batch *pebble.Batch) error {
		return errors.Join(b.coll.put(batch, set), batch.Delete(buildKey(b.collID, b.index.id), nil))
	})
	if err != nil {
		return err
	}
	b.index.changed, b.index.build = nil, nil
	b.s.cat.setIndexes(b.coll, set)
	return nil
}

func (n collectionName) String() string { return fmt.Sprintf("%s/%s", n.database, n.collection) }
