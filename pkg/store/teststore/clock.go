package teststore

import (
	"sync"
	"time"
)

// Clock is a time that tests set.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock makes a clock that stands at t.
func NewClock(t time.Time) *Clock { return &Clock{t: t} }

// Now gives the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
