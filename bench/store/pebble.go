package main

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// pebbleEngine is the least that an engine on Pebble can do: keys made by hand for these documents, no query language,
// no plans, no checks of what is written. It has the embedded store's settings of the engine. What the embedded store takes longer than this is what its generality costs.
//
// Keys: d id -> document; k kind seq id, s seq id, r rnd id, c score id -> nothing; f sequence -> id (the feed).
type pebbleEngine struct {
	db  *pebble.DB
	seq chan uint64 // the next feed number: held while a write is decided, as the embedded store holds its mutex
}

func openPebble(dir string) (*pebbleEngine, error) {
	opts := &pebble.Options{
		CacheSize: embedded.DefaultCacheSize, MemTableSize: embedded.DefaultMemTableSize, MemTableStopWritesThreshold: 4,
		FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{},
	}
	for i := range opts.Levels {
		l := &opts.Levels[i]
		l.BlockSize, l.IndexBlockSize, l.FilterPolicy = 16<<10, 256<<10, bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	e := &pebbleEngine{db: db, seq: make(chan uint64, 1)}
	e.seq <- 1
	return e, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) { panic("pebble failed") }

func docKey(id []byte) []byte { return append([]byte{'d'}, id...) }

func numberKey(prefix byte, n uint64, id []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{prefix}, n), id...)
}

func kindKey(kind string, seq uint64, id []byte) []byte {
	key := append([]byte{'k'}, kind...)
	return append(binary.BigEndian.AppendUint64(append(key, 0), seq), id...)
}

func (e *pebbleEngine) put(b *pebble.Batch, a article) error {
	id := a.ID[:]
	return errors.Join(
		b.Set(docKey(id), a.raw, nil),
		b.Set(kindKey(a.Kind, uint64(a.Seq), id), nil, nil), //nolint:gosec // not negative
		b.Set(numberKey('s', uint64(a.Seq), id), nil, nil),  //nolint:gosec // not negative
		b.Set(numberKey('r', uint64(a.Rnd), id), nil, nil),  //nolint:gosec // not negative
	)
}

// commit decides and writes one document's batch under the lock and waits for the disk outside of it.
func (e *pebbleEngine) commit(id []byte, fill func(b *pebble.Batch) error) error {
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // returns memory only
	seq := <-e.seq
	err := errors.Join(fill(b), b.Set(binary.BigEndian.AppendUint64([]byte{'f'}, seq), id, nil))
	if err == nil {
		err = e.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	e.seq <- seq + 1
	if err != nil {
		return err
	}
	return b.SyncWait()
}

func (e *pebbleEngine) load(_ context.Context, docs []article) error {
	b := e.db.NewBatch()
	for i, d := range docs {
		if err := e.put(b, d); err != nil {
			return err
		}
		if i%1000 == 999 || i == len(docs)-1 {
			if err := errors.Join(b.Commit(pebble.Sync), b.Close()); err != nil {
				return err
			}
			b = e.db.NewBatch()
		}
	}
	return b.Close()
}

func (e *pebbleEngine) get(_ context.Context, id bson.ObjectID) error {
	_, err := clone(e.db, docKey(id[:]))
	return err
}

func clone(r pebble.Reader, key []byte) (bson.Raw, error) {
	v, closer, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	doc := bytes.Clone(v)
	return doc, closer.Close()
}

// each calls fn for the keys from lo to before hi of one snapshot, then done.
func (e *pebbleEngine) each(
	lo, hi []byte, backwards bool, fn func(snap *pebble.Snapshot, key, value []byte) (bool, error), done ...func() error,
) error {
	snap := e.db.NewSnapshot()
	defer snap.Close() //nolint:errcheck // releases only
	for _, d := range done {
		defer d() //nolint:errcheck // releases only
	}
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // iterator errors come from Error
	ok, step := false, it.Next
	if backwards {
		ok, step = it.Last(), it.Prev
	} else {
		ok = it.First()
	}
	for ; ok; ok = step() {
		more, err := fn(snap, it.Key(), it.Value())
		if err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// fetcher finds documents by id with one iterator, which is quicker than a Get for each where the ids come in order.
type fetcher struct{ docs *pebble.Iterator }

func (f *fetcher) fetch(snap *pebble.Snapshot, id []byte) (doc bson.Raw, err error) {
	if f.docs == nil {
		if f.docs, err = snap.NewIter(&pebble.IterOptions{LowerBound: []byte{'d'}, UpperBound: []byte{'e'}}); err != nil {
			return nil, err
		}
	}
	key := docKey(id)
	if !f.docs.SeekGE(key) || !bytes.Equal(f.docs.Key(), key) {
		return nil, errors.Join(errors.New("not found"), f.docs.Error())
	}
	return f.docs.Value(), nil
}

func (f *fetcher) close() error {
	if f.docs == nil {
		return nil
	}
	return f.docs.Close()
}

func (e *pebbleEngine) page(_ context.Context, kind string, dst []byte) ([]byte, error) {
	n, f := 0, fetcher{}
	err := e.each(kindKey(kind, 0, nil), kindKey(kind, math.MaxUint64, nil), true, func(snap *pebble.Snapshot, key, _ []byte) (bool, error) {
		doc, err := f.fetch(snap, key[len(key)-12:])
		dst = document.AppendJSON(dst, doc, nil)
		n++
		return n < 50, err
	}, f.close)
	return dst, err
}

func (e *pebbleEngine) fetch(_ context.Context, field string, lo, hi int64, limit int) (n int, err error) {
	f := fetcher{}
	err = e.each(numberKey(field[0], uint64(lo), nil), numberKey(field[0], uint64(hi), nil), false, //nolint:gosec // not negative
		func(snap *pebble.Snapshot, key, _ []byte) (bool, error) {
			_, err := f.fetch(snap, key[len(key)-12:])
			n++
			return n < limit, err
		}, f.close)
	return n, err
}

func (e *pebbleEngine) scan(_ context.Context, status string, score float64) (n int, err error) {
	err = e.each([]byte{'d'}, []byte{'e'}, false, func(_ *pebble.Snapshot, _, v []byte) (bool, error) {
		s, _ := document.Lookup(v, "status")
		x, _ := document.Lookup(v, "score")
		if s.StringValue() == status && x.Double() >= score {
			n++
		}
		return true, nil
	})
	return n, err
}

func (e *pebbleEngine) count(_ context.Context, lo, hi int64) (n int, err error) {
	err = e.each(numberKey('s', uint64(lo), nil), numberKey('s', uint64(hi), nil), false, //nolint:gosec // not negative
		func(*pebble.Snapshot, []byte, []byte) (bool, error) { n++; return true, nil })
	return n, err
}

// scored is a document in the heap of the best ones, the worst of them on top.
type scored struct {
	score float64
	doc   []byte
}

type best []scored

func (h best) Len() int           { return len(h) }
func (h best) Less(i, j int) bool { return h[i].score < h[j].score }
func (h best) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *best) Push(x any)        { *h = append(*h, x.(scored)) } //nolint:errcheck,forcetypeassert // ours
func (h *best) Pop() any          { panic("unused") }

func (e *pebbleEngine) top(context.Context) (int, error) {
	var h best
	err := e.each([]byte{'d'}, []byte{'e'}, false, func(_ *pebble.Snapshot, _, v []byte) (bool, error) {
		x, _ := document.Lookup(v, "score")
		switch score := x.Double(); {
		case len(h) < 20:
			heap.Push(&h, scored{score, bytes.Clone(v)})
		case score > h[0].score:
			h[0] = scored{score, bytes.Clone(v)}
			heap.Fix(&h, 0)
		}
		return true, nil
	})
	return len(h), err
}

func (e *pebbleEngine) insert(_ context.Context, a article) error {
	return e.commit(a.ID[:], func(b *pebble.Batch) error {
		_, closer, err := e.db.Get(docKey(a.ID[:]))
		if err == nil {
			return errors.Join(errors.New("exists"), closer.Close())
		}
		return e.put(b, a)
	})
}

func (e *pebbleEngine) update(_ context.Context, id bson.ObjectID, rnd int64) error {
	return e.commit(id[:], func(b *pebble.Batch) error {
		doc, err := clone(e.db, docKey(id[:]))
		if err != nil {
			return err
		}
		old := doc.Lookup("rnd")                              // of the same length, so that it can be set in place
		oldKey := numberKey('r', uint64(old.Int64()), id[:])  //nolint:gosec // not negative
		binary.LittleEndian.PutUint64(old.Value, uint64(rnd)) //nolint:gosec // not negative
		return errors.Join(
			b.Delete(oldKey, nil),
			b.Set(numberKey('r', uint64(rnd), id[:]), nil, nil), //nolint:gosec // not negative
			b.Set(docKey(id[:]), doc, nil),
		)
	})
}

func (e *pebbleEngine) build(_ context.Context, done func()) error {
	b := e.db.NewBatch()
	n := 0
	err := e.each([]byte{'d'}, []byte{'e'}, false, func(_ *pebble.Snapshot, key, v []byte) (bool, error) {
		x, _ := document.Lookup(v, "score")
		n++
		err := b.Set(numberKey('c', math.Float64bits(x.Double()), key[1:]), nil, nil)
		if n%1000 == 0 && err == nil {
			err = errors.Join(b.Commit(pebble.NoSync), b.Close())
			b = e.db.NewBatch()
		}
		return true, err
	})
	if err := errors.Join(err, b.Commit(pebble.Sync), b.Close()); err != nil {
		return err
	}
	done()
	return e.db.DeleteRange([]byte{'c'}, []byte{'d'}, pebble.Sync)
}

func (e *pebbleEngine) backup(_ context.Context, dir string) error {
	return e.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

func (e *pebbleEngine) close() error { return e.db.Close() }
