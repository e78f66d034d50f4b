package embedded_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

const readDocs = 100_000

// readBench is a collection of articles, and the bare engine with the same bytes in it, to compare with.
type readBench struct {
	c    store.Collection
	db   *pebble.DB
	ids  []bson.RawValue
	keys [][]byte // of the documents in db, in order
}

// BenchmarkRead reads 100,000 documents of 0.5 KB. Each "bare" does the same on the engine alone: the least it can take.
func BenchmarkRead(b *testing.B) {
	rb := newReadBench(b)
	filter := func(path, op string, v any) *mql.Filter {
		return mql.MustCompile(bson.D{{Key: path, Value: bson.D{{Key: op, Value: v}}}})
	}
	half := readDocs / 2

	b.Run("get", func(b *testing.B) {
		each(b, func() error {
			_, err := rb.c.Get(b.Context(), rb.ids[rand.IntN(readDocs)])
			return err
		})
	})
	b.Run("get bare", func(b *testing.B) {
		each(b, func() error { return rb.get(rb.keys[rand.IntN(readDocs)]) })
	})
	b.Run("list 50 as JSON", func(b *testing.B) {
		q := store.Query{Filter: filter("status", "$eq", "published"), Sort: sortBy("-n"), Limit: 50}
		var out []byte
		each(b, func() error {
			out = out[:0]
			return rb.c.Find(b.Context(), q, func(doc bson.Raw) error {
				out = append(document.AppendJSON(out, doc, nil), '\n')
				return nil
			})
		})
	})
	b.Run("fetch 1000 correlated", func(b *testing.B) { rb.find(b, 1000, store.Query{Filter: filter("n", "$gte", half), Limit: 1000}) })
	b.Run("fetch 1000 correlated bare", func(b *testing.B) { rb.fetch(b, "n") })
	b.Run("fetch 1000 random", func(b *testing.B) { rb.find(b, 1000, store.Query{Filter: filter("h", "$gte", half), Limit: 1000}) })
	b.Run("fetch 1000 random bare", func(b *testing.B) { rb.fetch(b, "h") })
	b.Run("scan with 2 conditions", func(b *testing.B) {
		f := mql.MustCompile(bson.D{{Key: "m", Value: bson.D{{Key: "$lt", Value: 10}}}, {Key: "body", Value: bson.D{{Key: "$ne", Value: "x"}}}})
		rb.find(b, readDocs/100, store.Query{Filter: f})
	})
	b.Run("scan bare", func(b *testing.B) { rb.scan(b, "d") })
	b.Run("count by bounds", func(b *testing.B) {
		f := filter("n", "$gte", 0)
		each(b, func() error {
			if n, err := rb.c.Count(b.Context(), f, 0); err != nil || n != readDocs {
				return fmt.Errorf("%d: %w", n, err)
			}
			return nil
		})
	})
	b.Run("count by bounds bare", func(b *testing.B) { rb.scan(b, "n") })
	b.Run("top 20", func(b *testing.B) { rb.find(b, 20, store.Query{Sort: sortBy("m", "_id"), Limit: 20}) })
	b.Run("in 20 lists by order", func(b *testing.B) {
		authors := bson.A{}
		for i := range 20 {
			authors = append(authors, fmt.Sprint("author-", i))
		}
		rb.find(b, 20, store.Query{Filter: filter("author", "$in", authors), Sort: sortBy("n"), Limit: 20})
	})
	b.Run("either of two", func(b *testing.B) {
		f := mql.MustCompile(bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "n", Value: bson.D{{Key: "$lt", Value: 10}}}}, bson.D{{Key: "h", Value: bson.D{{Key: "$lt", Value: 10}}}},
		}}})
		rb.find(b, 20, store.Query{Filter: f})
	})
	b.Run("distinct by index", func(b *testing.B) {
		each(b, func() error {
			if v, err := rb.c.Distinct(b.Context(), "author", nil); err != nil || len(v) != 100 {
				return fmt.Errorf("%d: %w", len(v), err)
			}
			return nil
		})
	})
	b.Run("distinct by scan", func(b *testing.B) {
		each(b, func() error {
			if v, err := rb.c.Distinct(b.Context(), "m", nil); err != nil || len(v) != 1000 {
				return fmt.Errorf("%d: %w", len(v), err)
			}
			return nil
		})
	})
}

func each(b *testing.B, fn func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := fn(); err != nil {
			b.Fatal(err)
		}
	}
}

// find runs q, which finds want documents.
func (rb *readBench) find(b *testing.B, want int, q store.Query) {
	b.Helper()
	each(b, func() error {
		n := 0
		err := rb.c.Find(b.Context(), q, func(bson.Raw) error { n++; return nil })
		if n != want {
			return fmt.Errorf("%d documents, want %d: %w", n, want, err)
		}
		return err
	})
}

func newReadBench(b *testing.B) *readBench {
	b.Helper()
	rb := &readBench{c: collection(open(b, embedded.Options{Dir: b.TempDir()}))}
	for _, x := range []store.Index{index("status_n", "status", "-n"), index("n", "n"), index("h", "h"), index("author_n", "author", "n")} {
		createIndex(b, rb.c, x)
	}
	cache := pebble.NewCache(embedded.DefaultCacheSize)
	defer cache.Unref()
	opts := &pebble.Options{
		Cache: cache, MemTableSize: embedded.DefaultMemTableSize, FormatMajorVersion: pebble.FormatWALSyncChunks,
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	var err error
	if rb.db, err = pebble.Open(b.TempDir(), opts); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := rb.db.Close(); err != nil {
			b.Error(err)
		}
	})
	r := rand.New(rand.NewPCG(1, 1))
	var ops []store.Op
	for n, h := range r.Perm(readDocs) {
		id := bson.NewObjectID()
		doc := article(b, id, n)
		doc[len(doc)-1].Value = fmt.Sprintf("%0340d", n) // the body; with the rest 500 bytes
		doc = append(doc, bson.E{Key: "h", Value: h}, bson.E{Key: "m", Value: h % 1000})
		op := insert(b, doc)
		rb.ids = append(rb.ids, value(b, id))
		rb.keys = append(rb.keys, append([]byte("d"), id[:]...))
		ops = append(ops, op)
		rb.put(b, rb.keys[n], op.Doc)
		for name, v := range map[string]int{"n": n, "h": h} {
			rb.put(b, append(binary.BigEndian.AppendUint32([]byte(name), uint32(v)), id[:]...), []byte{12})
		}
		if len(ops) == 1000 {
			must(b, rb.c, ops...)
			ops = ops[:0]
		}
	}
	return rb
}

func (rb *readBench) put(b *testing.B, key, value []byte) {
	b.Helper()
	if err := rb.db.Set(key, value, pebble.NoSync); err != nil {
		b.Fatal(err)
	}
}

func (rb *readBench) get(key []byte) error {
	value, closer, err := rb.db.Get(key)
	if err != nil {
		return err
	}
	_ = append([]byte(nil), value...)
	return closer.Close()
}

func (rb *readBench) iterate(prefix string) (*pebble.Iterator, error) {
	return rb.db.NewIter(&pebble.IterOptions{LowerBound: []byte(prefix), UpperBound: []byte{prefix[0] + 1}})
}

func (rb *readBench) scan(b *testing.B, prefix string) {
	b.Helper()
	each(b, func() error {
		it, err := rb.iterate(prefix)
		if err != nil {
			return err
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			if _, err := it.ValueAndErr(); err != nil {
				return err
			}
			n++
		}
		if n != readDocs {
			return fmt.Errorf("%d keys", n)
		}
		return errors.Join(it.Error(), it.Close())
	})
}

// fetch reads the documents of 1000 entries.
func (rb *readBench) fetch(b *testing.B, prefix string) {
	b.Helper()
	each(b, func() error {
		it, err := rb.iterate(prefix)
		if err != nil {
			return err
		}
		docs, err := rb.iterate("d")
		if err != nil {
			return err
		}
		key := []byte("d")
		ok := it.SeekGE(binary.BigEndian.AppendUint32([]byte(prefix), readDocs/2))
		for range 1000 {
			if !ok {
				break
			}
			key = append(key[:1], it.Key()[len(prefix)+4:]...)
			if !docs.SeekGE(key) {
				return errors.New("no document")
			}
			if _, err := docs.ValueAndErr(); err != nil {
				return err
			}
			ok = it.Next()
		}
		return errors.Join(it.Close(), docs.Close())
	})
}
