package auth

import (
	"context"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/system"
)

const (
	// cacheTTL bounds how long a user's rights are taken from memory, so also how long another instance's
	// revocation takes to work here.
	cacheTTL = time.Second
	// cacheSize bounds the memory; a full cache starts again.
	cacheSize = 10_000
)

// userCache spares a read of the user on each request. A change in this process empties the entry at once.
type userCache struct {
	get func(ctx context.Context, id string) (system.User, error)
	now func() time.Time

	mu      sync.Mutex
	entries map[string]cached
	epoch   uint64 // grows with each change: what was read before one is not kept
}

type cached struct {
	user system.User
	at   time.Time
}

func newUserCache(users *system.Users, now func() time.Time) *userCache {
	c := &userCache{get: users.Get, now: now, entries: map[string]cached{}}
	users.OnChange(c.drop)
	return c
}

func (c *userCache) user(ctx context.Context, id string) (system.User, error) {
	c.mu.Lock()
	began := c.now()
	e, ok := c.entries[id]
	epoch := c.epoch
	c.mu.Unlock()
	if age := began.Sub(e.at); ok && age >= 0 && age < cacheTTL {
		return e.user, nil
	}
	u, err := c.get(ctx, id)
	if err != nil {
		return system.User{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == epoch {
		if len(c.entries) >= cacheSize {
			clear(c.entries)
		}
		c.entries[id] = cached{user: u, at: began}
	}
	return u, nil
}

func (c *userCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, id)
}
