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

// member is a user with what their teams and orgs give.
type member struct {
	system.User

	standing system.Standing
}

// userCache spares reads of the user and what they belong to on each request. A change of the user in this process
// empties the entry at once, one of a team or an org all of them.
type userCache struct {
	read func(ctx context.Context, id string) (member, error)
	now  func() time.Time

	mu      sync.Mutex
	entries map[string]cached
	epoch   uint64 // grows with each change: what was read before one is not kept
}

type cached struct {
	member member
	at     time.Time
}

func newUserCache(models *system.System, now func() time.Time) *userCache {
	c := &userCache{now: now, entries: map[string]cached{}}
	c.read = func(ctx context.Context, id string) (member, error) {
		u, err := models.Users.ByID(ctx, id)
		if err != nil {
			return member{}, err
		}
		st, err := models.Users.Standing(ctx, u)
		return member{User: u, standing: st}, err
	}
	models.Users.OnChange(c.drop)
	models.Teams.OnChange(c.dropAll)
	models.Orgs.OnChange(c.dropAll)
	return c
}

func (c *userCache) get(ctx context.Context, id string) (member, error) {
	c.mu.Lock()
	began := c.now()
	e, ok := c.entries[id]
	epoch := c.epoch
	c.mu.Unlock()
	if age := began.Sub(e.at); ok && age >= 0 && age < cacheTTL {
		return e.member, nil
	}
	m, err := c.read(ctx, id)
	if err != nil {
		return member{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == epoch {
		if len(c.entries) >= cacheSize {
			clear(c.entries)
		}
		c.entries[id] = cached{member: m, at: began}
	}
	return m, nil
}

func (c *userCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, id)
}

func (c *userCache) dropAll(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	clear(c.entries)
}
