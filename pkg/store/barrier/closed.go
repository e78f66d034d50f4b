package barrier

import (
	"context"

	"github.com/svcctl/svc/pkg/store/gate"
)

// closed is a database that this process shuts for another one.
type closed struct {
	life   context.Context    //nolint:containedctx // of what goes on aside for it
	end    context.CancelFunc // of life, when nobody wants it shut any more
	shut   gate.Shut          // nil: writers are waited for
	reads  bool               // are refused, too
	ending bool               // what a dead process has begun is being ended
	told   bool               // that this has failed
}

// close shuts a database here that another process wants shut. Writers are waited for aside.
func (b *Barrier) close(ctx context.Context, w wish) *closed {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.shut[w.Key]
	if c == nil {
		c = &closed{}
		c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
		b.shut[w.Key] = c
		b.waits.Go(func() { b.awaitWriters(w, c) })
		return c
	}
	if c.shut != nil && w.Reads && !c.reads {
		c.reads = c.shut.Reads(ctx) == nil // else the next look does it
	}
	return c
}

// isDone says that all is shut that is wished for.
func (b *Barrier) isDone(wishes []wish) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range wishes {
		if c := b.shut[w.Key]; c != nil && (c.shut == nil || w.Reads && !c.reads) {
			return false
		}
	}
	return true
}

// awaitWriters waits for the writers of a database. What comes too late is opened again.
func (b *Barrier) awaitWriters(w wish, c *closed) {
	shut, err := b.o.Gate.Shut(c.life, w.Database)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil: // its end was meant to be
	case b.shut[w.Key] != c:
		shut.Open()
	default:
		c.shut = shut
	}
}

// openOthers opens what nobody wants shut any more.
func (b *Barrier) openOthers(wanted map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, c := range b.shut {
		if wanted[key] {
			continue
		}
		delete(b.shut, key)
		c.end()
		if c.shut != nil {
			c.shut.Open()
		}
	}
}

// abandoned ends what a dead process has begun, aside: that may take long.
func (b *Barrier) abandoned(w wish, c *closed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.ending {
		return
	}
	c.ending = true
	b.waits.Go(func() {
		err := b.o.Abandoned(c.life, w.Database)
		if err == nil {
			err = b.withdraw(c.life, w)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil && c.life.Err() == nil && !c.told { // it is tried twice a second, for as long as no instance serves the project
			c.told = true
			b.o.Logger.WarnContext(c.life, "what an instance that is gone has begun can't be ended; that is tried again and again", "database", w.Database, "holder", w.By, "error", err)
		}
		c.ending = false
	})
}
