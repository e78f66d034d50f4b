package controller

import (
	"math/rand/v2"
	"sync"
	"time"
)

// backoff is the rate limiter of a queue: a key's delay doubles with each failure up to a maximum, with ±25 % of
// jitter, so that keys that failed together don't come back together.
type backoff struct {
	base, limit time.Duration

	mu       sync.Mutex
	failures map[string]int
}

func newBackoff(base, limit time.Duration) *backoff {
	return &backoff{base: base, limit: limit, failures: map[string]int{}}
}

// When counts a failure of key and gives the delay before its next try.
func (b *backoff) When(key string) time.Duration {
	b.mu.Lock()
	n := b.failures[key]
	b.failures[key] = n + 1
	b.mu.Unlock()
	return jitter(delay(b.base, b.limit, n))
}

// NumRequeues gives the failures of key since the last success.
func (b *backoff) NumRequeues(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures[key]
}

// Forget ends the count of key.
func (b *backoff) Forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
}

// delay is base doubled n times, at most limit.
func delay(base, limit time.Duration, n int) time.Duration {
	for range n {
		if base >= limit {
			break
		}
		base *= 2
	}
	return min(base, limit)
}

// jitter moves d by up to a quarter either way.
func jitter(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - d/4 + rand.N(d/2) //nolint:gosec // nothing secret depends on it
}
