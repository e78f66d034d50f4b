package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How often the pace of Go's garbage collector is looked at, and how much may become garbage before it runs, in bytes, even if little is
// in use.
const (
	gcInterval    = 250 * time.Millisecond
	gcLeastGrowth = 64 << 20
	gcMost        = 100 // percent: Go's own pace
)

// paceGC keeps the pace of the garbage collector until stop is called, once.
//
// Left to itself it runs when the heap has doubled. Most of a large heap of ours are caches of the stores and vectors, which it need not look
// into: they cost a collection next to nothing, and to leave as much room again for garbage would double the memory of the process.
// What has to be looked into is the measure here.
func paceGC() (stop func()) {
	if os.Getenv("GOGC") != "" { // somebody knows better
		return func() {}
	}
	done := make(chan struct{})
	var pacing sync.WaitGroup
	pacing.Go(func() {
		tick := time.NewTicker(gcInterval)
		defer tick.Stop()
		sizes := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
		for percent := gcMost; ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			metrics.Read(sizes)
			next := gcPercent(sizes[0].Value.Uint64(), sizes[1].Value.Uint64())
			if 10*next < 9*percent || 9*next > 10*percent || next == gcMost && percent != gcMost { // for less the world need not stop
				debug.SetGCPercent(next)
				percent = next
			}
		}
	})
	return func() {
		close(done)
		pacing.Wait()
	}
}

// gcPercent is by how much a heap may grow before it is collected, in percent of what is in use. scan is how much has to be looked into for
// pointers.
func gcPercent(live, scan uint64) int {
	growth := gcLeastGrowth + scan
	if growth >= live {
		return gcMost
	}
	return int(100 * growth / live) //nolint:gosec // below gcMost
}
