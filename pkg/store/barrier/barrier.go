package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// Collections of the shared database.
const (
	instances = "svc.instances" // a presence for each process
	barriers  = "svc.barriers"  // a wish for each database that is to be shut
)

// Times of Options that are 0.
const (
	DefaultBeat = 500 * time.Millisecond
	DefaultDead = 15 * time.Second
)

// Options are what a Barrier needs of its surroundings.
type Options struct {
	Gate   *gate.Gate
	DB     store.Database // that all processes know
	Holder string         // names this process for people
	Logger *slog.Logger
	// Abandoned is asked when whoever wanted a database shut is dead. It ends what that one has begun, or fails, and is asked again.
	Abandoned func(ctx context.Context, database string) error
	// Wanted is told at each look of a database that another one wants shut, from before that one can be dead: so Abandoned may know for how long it has been silent in
	// other ways, too. nil: nobody is. It must take no longer than a look.
	Wanted func(ctx context.Context, database string)

	Beat time.Duration // between two looks
	Dead time.Duration // of a process that does not show for so long
}

// Barrier is this process among those that share a store. It is safe for concurrent use.
type Barrier struct {
	o  Options
	id string

	looking sync.Mutex // one look at a time
	me      self
	seen    map[string]sighting // of others, and of those that want something and do not show
	read    gate.Instant        // when the presences were last read
	wished  []wish              // at the last look
	missed  bool                // others took this process for dead, and the gate does not know
	waits   sync.WaitGroup      // for what goes on aside

	mu   sync.Mutex
	ours map[string]bool    // keys of wishes of this process
	shut map[string]*closed // by key of the wishes of others
}

// New makes it. It works from Start on.
func New(o Options) *Barrier {
	if o.Beat == 0 {
		o.Beat = DefaultBeat
	}
	if o.Dead == 0 {
		o.Dead = DefaultDead
	}
	return &Barrier{
		o: o, id: o.Holder + "/" + rand.Text(), seen: map[string]sighting{}, ours: map[string]bool{}, shut: map[string]*closed{},
	}
}

// Start has the others know of this process, and shuts what they want shut. Call it before anything is served.
func (b *Barrier) Start(ctx context.Context) error {
	for {
		if err := b.look(ctx); err != nil {
			return err
		}
		if b.isDone(b.wished) {
			return nil
		}
		if !store.Wait(ctx, b.o.Beat/10) {
			return store.Ended(ctx)
		}
	}
}

// Run does what the others want, until ctx ends. Then they know that this process is gone.
func (b *Barrier) Run(ctx context.Context) {
	failed := false
	for store.Wait(ctx, b.o.Beat) {
		err := b.look(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil && !failed {
			b.o.Logger.WarnContext(ctx, "the other instances can't be looked at; that is tried again", "error", err)
		}
		failed = err != nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.o.Dead)
	defer cancel()
	b.mu.Lock()
	for _, c := range b.shut {
		c.end()
	}
	b.mu.Unlock()
	b.waits.Wait()
	_ = store.WriteAll(ctx, b.o.DB.Collection(instances), store.Op{Kind: store.Delete, ID: store.Name(b.id)}) // else it is dead soon
}

// look says that this process is alive, and does what the others want.
func (b *Barrier) look(ctx context.Context) error {
	b.looking.Lock()
	defer b.looking.Unlock()
	began := b.o.Gate.Clock()
	missed, err := b.show(ctx) // before the wishes are read: who has one looks at the presences behind it
	if err != nil {
		return err
	}
	b.missed = b.missed || missed
	all, err := b.presences(ctx)
	if err != nil {
		return err
	}
	wishes, err := b.wishes(ctx)
	if err != nil {
		return err
	}
	b.noteAbsent(all, wishes)
	if _, err := b.removeDead(ctx, all); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, w := range wishes {
		there[w.Key] = true
		if w.By == b.id {
			if !b.wants(w.Key) { // it could not be taken back
				err = errors.Join(err, b.withdraw(ctx, w))
			}
			continue
		}
		c := b.close(ctx, w)
		if b.o.Wanted != nil {
			b.o.Wanted(ctx, w.Database)
		}
		if b.isDead(w.By) {
			b.abandoned(w, c)
		}
	}
	b.openOthers(there)
	b.wished = wishes
	if b.refuses(wishes) { // else the next look says so
		b.o.Gate.See(began, b.o.Dead*2/3, b.missed)
		b.missed = false
	}
	return err
}

// refuses says that no write begins any more in what others want shut.
func (b *Barrier) refuses(wishes []wish) bool {
	for _, w := range wishes {
		if w.By != b.id && !b.o.Gate.IsShut(w.Database) {
			return false
		}
	}
	return true
}
