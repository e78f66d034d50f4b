package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// checkedFor is how long a credential is not checked again that was good. What ends it is looked at on each request all
// the same: the record of the user and of the token, and when it expires.
const checkedFor = time.Minute

// checked remembers what credentials say that were good, by their hash: the signature of a session token and the keyed
// hash of a personal access token cost more to check than a record to read.
type checked[V any] struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]checkedEntry[V]
}

type checkedEntry[V any] struct {
	value V
	at    time.Time
}

func newChecked[V any]() *checked[V] {
	return &checked[V]{entries: map[[sha256.Size]byte]checkedEntry[V]{}}
}

func (c *checked[V]) get(credential string, now time.Time) (V, bool) {
	sum := sha256.Sum256([]byte(credential))
	c.mu.Lock()
	e, ok := c.entries[sum]
	c.mu.Unlock()
	age := now.Sub(e.at)
	return e.value, ok && age >= 0 && age < checkedFor
}

func (c *checked[V]) add(credential string, v V, now time.Time) {
	sum := sha256.Sum256([]byte(credential))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheSize {
		clear(c.entries)
	}
	c.entries[sum] = checkedEntry[V]{value: v, at: now}
}

// forget empties it: the keys are others now.
func (c *checked[V]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}
