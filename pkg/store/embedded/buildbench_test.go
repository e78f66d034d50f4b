package embedded_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// BenchmarkBuild builds an index over 100 000 articles, alone and beside a writer, whose waiting it tells of.
func BenchmarkBuild(b *testing.B) {
	c := collection(open(b, embedded.Options{Dir: b.TempDir()}))
	for i := range 100 {
		ops := make([]store.Op, 1000)
		for j := range ops {
			ops[j] = insert(b, article(b, bson.NewObjectID(), 1000*i+j))
		}
		must(b, c, ops...)
	}
	build := func(b *testing.B) {
		b.Helper()
		createIndex(b, c, index("n", "status", "-n"))
		b.StopTimer()
		if err := c.DropIndex(b.Context(), "n"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			build(b)
		}
	})
	b.Run("beside a writer", func(b *testing.B) {
		ctx, stop := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		var took []time.Duration
		wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				must(b, c, insert(b, article(b, bson.NewObjectID(), len(took))))
				took = append(took, time.Since(start))
			}
		})
		for b.Loop() {
			build(b)
		}
		stop()
		wg.Wait()
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
		b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
	})
}
