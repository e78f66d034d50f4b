package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// ErrShut is for whoever comes while the gate is shut.
var ErrShut = &errs.Error{
	Kind: errs.Unavailable, Code: "restoring", RetryAfter: time.Second,
	Message: "the records are being replaced by those of a snapshot: try again in a moment",
}

// Gate is a store whose databases can be shut. It is safe for concurrent use.
type Gate struct {
	store.Store

	Clock Clock // by which looks at other processes become too old; to be set before anything else is done

	swaps atomic.Int64 // how often records were replaced, of all databases
	sight sight        // of other processes

	mu    sync.Mutex
	doors map[string]*door // by database
}

// momentKey is of a context's number of swaps.
type momentKey struct{}

// Moment gives a context for something that is of several reads and writes, such as a request: once the records of a database are replaced,
// whatever goes through the gate to that with such a context from before is refused (ErrShut). So nothing is put together of old records and new ones, and
// no record is changed into what was made of an old one.
func (g *Gate) Moment(ctx context.Context) context.Context {
	return context.WithValue(ctx, momentKey{}, g.swaps.Load())
}

// New makes a gate before a store, all of it open. Its Close is the store's.
func New(s store.Store) *Gate { return &Gate{Store: s, Clock: MachineClock, doors: map[string]*door{}} }

// Database gives a handle through the gate. What is for bookkeeping is not gated, nor is the feed.
func (g *Gate) Database(name string) store.Database {
	return &database{g.Store.Database(name), g.door(name)}
}

// Shut is a database whose records nobody changes who goes through the gate. It is for one goroutine.
type Shut interface {
	// Reads refuses reads, too, from when it returns. Those that are under way fail: what they read may have been old records and new ones.
	Reads(ctx context.Context) error
	// Open lets everything through again. A second call does nothing.
	Open()
}

// Shut refuses all writes of a database from now on (ErrShut), and waits until those writes and transactions have ended that are under
// way. Reads go on. If ctx ends before, the gate is open, as it was.
func (g *Gate) Shut(ctx context.Context, database string) (Shut, error) {
	d := g.door(database)
	if err := d.shut(ctx); err != nil {
		return nil, err
	}
	return &shut{g: g, d: d}, nil
}

// Busy says that somebody writes to a database by this process, or did so within the last moment.
func (g *Gate) Busy(database string) bool {
	d := g.door(database)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writers > 0 || !d.wrote.IsZero() && time.Since(d.wrote) < busyFor
}

const busyFor = 100 * time.Millisecond

// IsShut says that no write of a database begins.
func (g *Gate) IsShut(database string) bool {
	d := g.door(database)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shuts != nil
}

// shut is one that this process has shut.
type shut struct {
	g      *Gate
	d      *door
	opened bool
}

func (s *shut) Reads(ctx context.Context) error {
	if err := store.Ended(ctx); err != nil || s.opened {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if !s.d.reads {
		s.d.reads, s.d.replaced = true, s.g.swaps.Add(1)
	}
	return nil
}

func (s *shut) Open() {
	if !s.opened {
		s.opened = true
		s.d.open()
	}
}

func (g *Gate) door(name string) *door {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doors[name]
	if d == nil {
		d = &door{gate: g}
		g.doors[name] = d
	}
	return d
}

// door is that of one database.
type door struct {
	gate *Gate

	mu      sync.Mutex
	shuts   chan struct{} // closed when it opens; nil: it is open
	reads   bool          // are refused, too
	writers int
	wrote   time.Time     // when a writer left last
	left    chan struct{} // closed when the last writer leaves; nil: nobody waits for that

	replaced int64 // the number of the last swap that was of this database
}

// check says whether reads may pass, and since when they do.
func (d *door) check(ctx context.Context) (began int64, err error) {
	if err := d.gate.await(ctx); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads || d.isOver(ctx) {
		return 0, ErrShut
	}
	return d.gate.swaps.Load(), nil
}

// isOver says that what a context is for has begun before the records were replaced. mu is held.
func (d *door) isOver(ctx context.Context) bool {
	began, ok := ctx.Value(momentKey{}).(int64)
	return ok && !d.isSince(began)
}

// isSince says that the records are those that they were at some time. mu is held.
func (d *door) isSince(began int64) bool {
	return began >= d.replaced && began >= d.gate.sight.lost.Load()
}

// still fails if the records were replaced since what came in has begun.
func (d *door) still(began int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isSince(began) {
		return ErrShut
	}
	return nil
}

// enter is for writers.
func (d *door) enter(ctx context.Context) (began int64, err error) {
	if err := d.gate.await(ctx); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shuts != nil || d.isOver(ctx) {
		return 0, ErrShut
	}
	d.writers++
	return d.gate.swaps.Load(), nil
}

func (d *door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrote = time.Now()
	if d.writers--; d.writers == 0 && d.left != nil {
		close(d.left)
		d.left = nil
	}
}

func (d *door) shut(ctx context.Context) error {
	for {
		mine, wait := d.tryShut()
		if !mine { // somebody else has shut it
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return store.Ended(ctx)
			}
		}
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
			return nil
		case <-ctx.Done():
			d.open()
			return store.Ended(ctx)
		}
	}
}

// tryShut shuts it if it is open, and gives what to wait for then, or before.
func (d *door) tryShut() (mine bool, wait <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shuts != nil {
		return false, d.shuts
	}
	d.shuts = make(chan struct{})
	if d.writers > 0 {
		d.left = make(chan struct{})
		return true, d.left
	}
	return true, nil
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.shuts)
	d.shuts, d.left, d.reads = nil, nil, false
}
