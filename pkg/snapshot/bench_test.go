package snapshot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// onDisk is a world whose embedded store is on the disk.
func onDisk(tb testing.TB) *world {
	tb.Helper()
	s, err := embedded.Open(tb.Context(), embedded.Options{Dir: tb.TempDir(), OnFatal: func(err error) { panic(err) }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return newWorld(tb, s)
}

// fillLarge is 10,000 records of about a kilobyte, and 500 files of 200 KB.
func (w *world) fillLarge() {
	w.Helper()
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a benchmark
	var docs []bson.D
	for n := range 10_000 {
		d := bson.D{{Key: "_id", Value: idOf(n)}, {Key: "_rev", Value: int64(1)}, {Key: "title", Value: fmt.Sprint("record number ", n)}, {Key: "at", Value: time.UnixMilli(r.Int64N(1 << 40))}}
		for k := range 8 {
			text := make([]byte, 60+r.IntN(60))
			for i := range text {
				text[i] = "abcdefghij klmnopqrst uvwxyz"[r.IntN(28)]
			}
			d = append(d, bson.E{Key: fmt.Sprint("field", k), Value: string(text)})
		}
		if n%20 == 0 {
			content := make([]byte, 200<<10)
			for i := range content {
				content[i] = byte(r.Uint32())
			}
			d = append(d, bson.E{Key: "cover", Value: w.upload("posts", idOf(n), "cover", "cover.bin", string(content))})
		}
		docs = append(docs, d)
		if len(docs) == 500 {
			w.insert("posts", docs...)
			docs = nil
		}
	}
}

// BenchmarkCreate takes the first snapshot of a project, and one that has little to do since one was there before.
func BenchmarkCreate(b *testing.B) {
	w := onDisk(b)
	w.fillLarge()
	take := func(b *testing.B) snapshot.Info {
		b.Helper()
		info := w.create("daily")
		b.ReportMetric(float64(info.Counts.Bytes), "bytes/op")
		b.ReportMetric(float64(info.Counts.NewBytes), "new-bytes/op")
		return info
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			info := take(b)
			b.StopTimer()
			if err := w.snaps.Delete(context.Background(), w.p, info.ID); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		take(b)
		for b.Loop() {
			take(b)
		}
	})
	b.Run("verify", func(b *testing.B) {
		info := take(b)
		for b.Loop() {
			w.verify(info)
		}
	})
}

// BenchmarkRestore restores a snapshot of a project that is as the snapshot. shut-ms is for how long writes are refused.
func BenchmarkRestore(b *testing.B) {
	w := onDisk(b)
	w.fillLarge()
	info := w.create("daily")
	for _, mode := range []snapshot.RestoreMode{snapshot.Replace, snapshot.Merge} {
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			var shut time.Duration
			for b.Loop() {
				w.clock.Pass(time.Second)
				var since time.Time
				_, err := w.snaps.Restore(b.Context(), w.p, info.ID, w.p, snapshot.RestoreOptions{Media: true, Mode: mode}, func(now snapshot.Progress) {
					if now.Phase == snapshot.Safety && since.IsZero() {
						since = time.Now()
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				shut += time.Since(since)
			}
			b.ReportMetric(float64(shut.Milliseconds())/float64(b.N), "shut-ms/op")
		})
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.snaps.Compare(b.Context(), w.p, info.ID, snapshot.CompareOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("drill", func(b *testing.B) {
		for b.Loop() {
			if r, err := w.snaps.Drill(b.Context(), w.p, info.ID, nil); err != nil || r.Problems > 0 {
				b.Fatal(r, err)
			}
		}
	})
}
