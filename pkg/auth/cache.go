package auth

import (
	"context"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/system"
)

const (
	// cacheTTL bounds how long a user's rights are taken from memory, so also how long another instance's
	// revocation takes to work here.
	cacheTTL = time.Second
	// cacheSize bounds the memory; a full cache starts again.
	cacheSize = 10_000
)

// member is a user, and the caller that they are with a session, by their own rights and by what their teams and orgs
// give. It is shared between requests and not changed.
type member struct {
	system.User

	principal *access.Principal
}

// cache spares reads of what callers show on each request: the users and what they belong to, and personal access
// tokens. A change in this process empties what it touches at once.
type cache[V any] struct {
	read func(ctx context.Context, id string) (V, error)
	now  func() time.Time

	mu      sync.Mutex
	entries map[string]cached[V]
	epoch   uint64 // grows with each change: what was read before one is not kept
}

type cached[V any] struct {
	value V
	at    time.Time
}

// newUserCache keeps users by id. A change of a user drops them, one of a team or an org everybody.
func newUserCache(models *system.System, now func() time.Time) *cache[*member] {
	c := &cache[*member]{now: now, entries: map[string]cached[*member]{}}
	c.read = func(ctx context.Context, id string) (*member, error) {
		u, err := models.Users.ByID(ctx, id)
		if err != nil {
			return nil, err
		}
		st, err := models.Users.Standing(ctx, u)
		if err != nil {
			return nil, err
		}
		return &member{User: u, principal: principal(u, st)}, nil
	}
	models.Users.OnChange(c.drop)
	models.Teams.OnChange(c.dropAll)
	models.Orgs.OnChange(c.dropAll)
	return c
}

func (c *cache[V]) get(ctx context.Context, id string) (V, error) {
	c.mu.Lock()
	began := c.now()
	e, ok := c.entries[id]
	epoch := c.epoch
	c.mu.Unlock()
	if age := began.Sub(e.at); ok && age >= 0 && age < cacheTTL {
		return e.value, nil
	}
	v, err := c.read(ctx, id)
	if err != nil {
		var zero V
		return zero, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == epoch {
		if len(c.entries) >= cacheSize {
			clear(c.entries)
		}
		c.entries[id] = cached[V]{value: v, at: began}
	}
	return v, nil
}

func (c *cache[V]) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, id)
}

func (c *cache[V]) dropAll(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	clear(c.entries)
}
