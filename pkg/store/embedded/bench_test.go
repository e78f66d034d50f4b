package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

const benchDocs = 20_000

// article is a document of about half a kilobyte.
func article(tb testing.TB, id bson.ObjectID, n int) bson.D {
	tb.Helper()
	return bson.D{
		{Key: "_id", Value: id},
		{Key: "title", Value: fmt.Sprintf("Article number %d", n)},
		{Key: "status", Value: []string{"draft", "published"}[n%2]},
		{Key: "author", Value: fmt.Sprintf("author-%d", n%100)},
		{Key: "n", Value: n},
		{Key: "tags", Value: bson.A{fmt.Sprint("tag", n%7), fmt.Sprint("tag", n%11)}},
		{Key: "body", Value: fmt.Sprintf("%0400d", n)},
	}
}

func benchStore(b *testing.B, docs int) (store.Collection, []bson.RawValue) {
	b.Helper()
	c := collection(open(b, embedded.Options{Dir: b.TempDir()}))
	createIndex(b, c, index("status_n", "status", "-n"))
	createIndex(b, c, index("author", "author"))
	createIndex(b, c, index("tags", "tags"))
	ids := make([]bson.RawValue, docs)
	var ops []store.Op
	for i := range docs {
		id := bson.NewObjectID()
		ids[i] = value(b, id)
		ops = append(ops, insert(b, article(b, id, i)))
		if len(ops) == 1000 || i == docs-1 {
			must(b, c, ops...)
			ops = ops[:0]
		}
	}
	return c, ids
}

func BenchmarkGet(b *testing.B) {
	c, ids := benchStore(b, benchDocs)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(b.Context(), ids[rand.IntN(len(ids))]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList20(b *testing.B) {
	c, _ := benchStore(b, benchDocs)
	q := store.Query{Filter: mql.MustCompile(bson.D{{Key: "status", Value: "published"}}), Sort: sortBy("-n"), Limit: 20}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := c.Find(b.Context(), q, func(bson.Raw) error { n++; return nil }); err != nil || n != 20 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	c, _ := benchStore(b, benchDocs)
	f := mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$lt", Value: 10}}}, {Key: "status", Value: bson.D{{Key: "$ne", Value: "draft"}}}})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Count(b.Context(), f, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInsert(b *testing.B) {
	benchWrite(b, 1000, func([]bson.RawValue, int) store.Op { return insert(b, article(b, bson.NewObjectID(), 1)) })
}

// BenchmarkUpdate changes a field with an index, by _id.
func BenchmarkUpdate(b *testing.B) {
	benchWrite(b, benchDocs, func(ids []bson.RawValue, n int) store.Op {
		return store.Op{Kind: store.Update, ID: ids[n%len(ids)], Update: setTo("author", n)}
	})
}

// BenchmarkUpdateByFilter does the same to a document that it has to find by another field.
func BenchmarkUpdateByFilter(b *testing.B) {
	benchWrite(b, benchDocs, func(_ []bson.RawValue, n int) store.Op {
		n %= benchDocs
		filter := mql.MustCompile(bson.D{{Key: "status", Value: []string{"draft", "published"}[n%2]}, {Key: "n", Value: n}})
		return store.Op{Kind: store.Update, Filter: filter, Update: inc("times", 1)}
	})
}

// benchWrite measures writes of single ops, from one and from many sides.
func benchWrite(b *testing.B, docs int, op func(ids []bson.RawValue, n int) store.Op) {
	b.Helper()
	for _, parallel := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("parallel ", parallel), func(b *testing.B) {
			c, ids := benchStore(b, docs)
			var n atomic.Int64
			work := make(chan store.Op)
			done := make(chan error, parallel)
			for range parallel {
				go func() {
					for op := range work {
						if results, err := c.Write(b.Context(), []store.Op{op}, false); err != nil || results[0].Err != nil {
							done <- fmt.Errorf("%w %v", err, results)
							return
						}
					}
					done <- nil
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				select {
				case work <- op(ids, int(n.Add(1))):
				case err := <-done:
					b.Fatal(err)
				}
			}
			close(work)
			for range parallel {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
