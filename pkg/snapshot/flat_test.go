package snapshot_test

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/snapshot"
)

// TestRestoreFlat restores collections of 50,000 records and of 1,000,000: the second takes no more memory. SOAK=1 runs it.
func TestRestoreFlat(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("SOAK=1 runs it")
	}
	var peaks []uint64
	for _, records := range []int{50_000, 1_000_000} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			w := onDisk(t)
			var docs []bson.D
			for n := range records {
				docs = append(docs, bson.D{{Key: "_id", Value: idOf(n)}, {Key: "sku", Value: fmt.Sprint("sku ", n)}, {Key: "text", Value: "some words that every record has, and that are the same in all of them"}})
				if len(docs) == 2000 {
					w.insert("items", docs...)
					docs = docs[:0]
				}
			}
			info := w.create("daily")
			for _, mode := range []snapshot.RestoreMode{snapshot.Replace, snapshot.Merge} {
				since := time.Now()
				peak := peakOf(func() { w.restore(info, snapshot.RestoreOptions{Mode: mode}) })
				t.Logf("%s: %d MB of heap at most, %s", mode, peak>>20, time.Since(since).Round(time.Millisecond))
				peaks = append(peaks, peak)
			}
		})
	}
	for i := range 2 {
		if peaks[2+i] > peaks[i]+64<<20 {
			t.Errorf("a large restore took %d MB, and a small one %d MB", peaks[2+i]>>20, peaks[i]>>20)
		}
	}
}

// peakOf is how large the heap is at most while fn runs, as far as looks at it tell.
func peakOf(fn func()) (peak uint64) {
	runtime.GC()
	over := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	fn()
	close(over)
	looking.Wait()
	return peak
}
