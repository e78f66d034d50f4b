// Package cache is the module cache of scripts: a small memory that lasts from run to run, for each project its own, in
// this process only.
//
// What does not live here: anything that must not be lost. What is old, or too much, is dropped.
package cache

import (
	"container/list"
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Limits of one project's cache.
const (
	MaxBytes = 16 << 20
	maxKey   = 1 << 10
	overhead = 128 // bytes that an entry takes beside its key and value
)

// Cache is one project's. It implements script.Host for cache.*.
type Cache struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*list.Element
	recent  *list.List // of entry, the most recently used first
	bytes   int
}

type entry struct {
	key     string
	value   bson.RawValue
	expires time.Time // zero: never
}

func (e *entry) size() int { return len(e.key) + len(e.value.Value) + overhead }

// New makes an empty cache.
func New(now func() time.Time) *Cache {
	return &Cache{now: now, entries: map[string]*list.Element{}, recent: list.New()}
}

// Call is cache.get, cache.set or cache.delete.
func (c *Cache) Call(_ context.Context, op string, args bson.A) (any, error) {
	if len(args) == 0 {
		return nil, errs.New(errs.Invalid, "cache_invalid", "cache: a key is missing")
	}
	key, ok := args[0].(string)
	if !ok || len(key) > maxKey {
		return nil, errs.New(errs.Invalid, "cache_invalid", "cache: a key is a text of at most %d bytes", maxKey)
	}
	switch op {
	case "cache.get":
		return c.get(key), nil
	case "cache.set":
		if len(args) < 2 {
			return nil, errs.New(errs.Invalid, "cache_invalid", "cache: a value is missing")
		}
		ttl := time.Duration(0)
		if len(args) > 2 {
			ttl = seconds(args[2])
		}
		return nil, c.set(key, args[1], ttl)
	case "cache.delete":
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := c.entries[key]; e != nil {
			c.drop(e)
		}
		return nil, nil
	}
	return nil, errs.New(errs.Invalid, "no_module", "%s is not there", op)
}

// seconds reads a time to live; nothing is forever, and nothing is longer than a year.
func seconds(v any) time.Duration {
	const year = 365 * 24 * 3600
	var s float64
	switch v := v.(type) {
	case int32:
		s = float64(v)
	case int64:
		s = float64(v)
	case float64:
		s = v
	default:
		return 0
	}
	return time.Duration(max(min(s, year), 0.001) * float64(time.Second))
}

func (c *Cache) get(key string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		return nil
	}
	at := of(e)
	if !at.expires.IsZero() && !c.now().Before(at.expires) {
		c.drop(e)
		return nil
	}
	c.recent.MoveToFront(e)
	return document.Decode(at.value) // a copy
}

func of(e *list.Element) *entry { return e.Value.(*entry) } //nolint:errcheck // only entries are put in

func (c *Cache) set(key string, value any, ttl time.Duration) error {
	raw, err := document.MarshalValue(value)
	if err != nil {
		return err
	}
	at := &entry{key: key, value: raw}
	if ttl > 0 {
		at.expires = c.now().Add(ttl)
	}
	if at.size() > MaxBytes/4 {
		return errs.New(errs.TooLarge, "cache_too_large", "cache: a value is at most %d bytes", MaxBytes/4)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.drop(e)
	}
	c.entries[key] = c.recent.PushFront(at)
	c.bytes += at.size()
	for c.bytes > MaxBytes {
		c.drop(c.recent.Back())
	}
	return nil
}

func (c *Cache) drop(e *list.Element) {
	at := of(e)
	c.recent.Remove(e)
	delete(c.entries, at.key)
	c.bytes -= at.size()
}
