package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// checkedFor is how long the signature of a session token is not checked again. What ends a session is looked at on each
// request all the same: the user's record, and when the token expires.
const checkedFor = time.Minute

// checkedTokens remembers session tokens whose signature was good, by their hash: checking one costs nearly as much as a
// read of a record.
type checkedTokens struct {
	mu      sync.Mutex
	entries map[[32]byte]checkedToken
}

type checkedToken struct {
	claims claims
	at     time.Time
}

func newCheckedTokens() *checkedTokens {
	return &checkedTokens{entries: map[[32]byte]checkedToken{}}
}

func (c *checkedTokens) get(token string, now time.Time) (claims, bool) {
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	e, ok := c.entries[sum]
	c.mu.Unlock()
	age := now.Sub(e.at)
	return e.claims, ok && age >= 0 && age < checkedFor && now.Before(e.claims.ExpiresAt.Time)
}

func (c *checkedTokens) add(token string, cl claims, now time.Time) {
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheSize {
		clear(c.entries)
	}
	c.entries[sum] = checkedToken{claims: cl, at: now}
}

// forget empties it: the keys are others now.
func (c *checkedTokens) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}
