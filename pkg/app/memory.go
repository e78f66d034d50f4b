package app

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/svcctl/svc/pkg/store/embedded"
)

// memory is how many bytes this process may use: by GOMEMLIMIT, its control group or the machine, whichever is least; 0 if
// that is not known.
func memory() int64 {
	least := debug.SetMemoryLimit(-1) // which only asks
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := limit(); err == nil && n < uint64(least) { //nolint:gosec // a limit is not negative
			least = int64(n) //nolint:gosec // below another int64
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// How much of the memory the embedded store's cache takes unless told.
const (
	cacheShare = 32
	maxCache   = 1 << 30
)

// cacheFor is the size of the embedded store's cache for a process that may use so many bytes; 0 is not known. A cache that
// holds what is read often saves the greater part of what reading it costs; it is empty at first, and grows with what is read.
func cacheFor(memory int64) int64 {
	return min(max(memory/cacheShare, embedded.DefaultCacheSize), maxCache)
}

// How much of the memory the bodies of requests take at once. What is made of a body is about twice as large.
const (
	bodyShare = 12
	minBodies = 128 << 20
)

// bodiesFor is how much memory the bodies of requests may take in a process that may use so much, 0 is not known: some of the
// largest at least.
func bodiesFor(memory, largest int64) int64 {
	return max(memory/bodyShare, minBodies, 4*largest)
}

// maxMemTable is what four of, as many as a burst of writes makes, can still be put on a disk that has embedded.DefaultMinFree.
const maxMemTable = 16 << 20

// memTableFor is the size of the embedded store's table of recent writes beside a cache. Twice as large, it is written, and
// merged with what is there, half as often.
func memTableFor(cache int64) uint64 {
	return uint64(min(max(cache/16, embedded.DefaultMemTableSize), maxMemTable))
}
