package app_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

func TestCacheSizeGoesWithTheMemory(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]int64{
		0:         64 << 20, // not known
		512 << 20: 64 << 20,
		4 << 30:   128 << 20,
		24 << 30:  768 << 20,
		256 << 30: 1 << 30,
	} {
		if got := app.CacheFor(memory); got != want {
			t.Errorf("%d MiB for %d MiB of memory, want %d", got>>20, memory>>20, want>>20)
		}
	}
	for cache, want := range map[int64]uint64{64 << 20: 8 << 20, 192 << 20: 12 << 20, 1 << 30: 16 << 20} {
		if got := app.MemTableFor(cache); got != want {
			t.Errorf("%d MiB of recent writes beside a cache of %d MiB, want %d", got>>20, cache>>20, want>>20)
		}
	}
	if n := app.Memory(); n < 64<<20 {
		t.Errorf("this process may use %d bytes, it says", n)
	}
}
