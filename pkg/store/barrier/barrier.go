package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
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

	Beat time.Duration // between two looks
	Dead time.Duration // of a process that does not show for so long
}

// presence is what a process says of itself.
type presence struct {
	ID     string            `bson:"_id"`
	Holder string            `bson:"holder"`
	Beat   int64             `bson:"beat"`
	Shut   map[string]string `bson:"shut"` // how, by the key of a wish
}

// wish is for a database to be shut.
type wish struct {
	Database string `bson:"_id"`
	Key      string `bson:"key"`
	By       string `bson:"by"` // id of the presence
	Reads    bool   `bson:"reads"`
}

// How a process has shut a database.
const (
	noWrites = "writes"
	nothing  = "all"
)

// Barrier is this process among those that share a store. It is safe for concurrent use.
type Barrier struct {
	o  Options
	id string

	looking sync.Mutex // one look at a time
	beat    int64      // 0: it has never shown
	seen    map[string]sighting
	wished  []wish         // at the last look
	missed  bool           // others took this process for dead, and the gate does not know
	waits   sync.WaitGroup // for writers of databases that are being shut

	mu   sync.Mutex
	ours map[string]bool    // keys of wishes of this process
	shut map[string]*closed // by key of the wishes of others
}

// sighting is a presence of another process, and since when it has been like that for us.
type sighting struct {
	beat  int64
	since time.Time
}

// closed is a database that this process shuts for another one.
type closed struct {
	life   context.Context    //nolint:containedctx // of what goes on aside for it
	end    context.CancelFunc // of life, when nobody wants it shut any more
	shut   gate.Shut          // nil: writers are waited for
	reads  bool               // are refused, too
	ending bool               // what a dead process has begun is being ended
	told   bool               // that this has failed
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
	since := time.Now()
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
	b.sight(all)
	b.wonder(all, wishes)
	if _, err := b.bury(ctx, all); err != nil {
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
		if b.isDead(w.By) {
			b.abandoned(w, c)
		}
	}
	b.openOthers(there)
	b.wished = wishes
	if b.refuses(wishes) { // else the next look says so
		b.o.Gate.See(since.Add(b.o.Dead*2/3), b.missed)
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

// show writes the presence of this process. missed says that others have removed it: they took this process for dead.
func (b *Barrier) show(ctx context.Context) (missed bool, err error) {
	first := b.beat == 0
	b.beat++
	me := presence{ID: b.id, Holder: b.o.Holder, Beat: b.beat, Shut: map[string]string{}}
	b.mu.Lock()
	for key, c := range b.shut {
		switch {
		case c.shut == nil:
		case c.reads:
			me.Shut[key] = nothing
		default:
			me.Shut[key] = noWrites
		}
	}
	b.mu.Unlock()
	doc, err := bson.Marshal(me)
	if err != nil {
		return false, errs.Wrap(err, "show an instance")
	}
	is := mql.MustCompile(bson.D{{Key: "_id", Value: b.id}})
	results, err := b.o.DB.Collection(instances).Write(ctx, []store.Op{{Kind: store.Replace, Doc: doc, Filter: is, Upsert: true}}, true)
	if err != nil {
		return false, err
	}
	if err := results[0].Err; err != nil {
		return false, err
	}
	return !first && results[0].Upserted.Type != 0, nil
}

// sight notes since when processes have been as they are.
func (b *Barrier) sight(all []presence) {
	now := time.Now()
	for _, p := range all {
		if was, ok := b.seen[p.ID]; !ok || was.beat != p.Beat {
			b.seen[p.ID] = sighting{p.Beat, now}
		}
	}
}

// wonder notes since when those are not there who want something, and forgets others who are not.
func (b *Barrier) wonder(all []presence, wishes []wish) {
	known := map[string]bool{}
	for _, p := range all {
		known[p.ID] = true
	}
	for _, w := range wishes {
		if was, ok := b.seen[w.By]; !known[w.By] && (!ok || was.beat != gone) {
			b.seen[w.By] = sighting{gone, time.Now()}
		}
		known[w.By] = true
	}
	for id := range b.seen {
		if !known[id] {
			delete(b.seen, id)
		}
	}
}

// gone is the beat of a process that is not there.
const gone = -1

// isDead says that a process has not shown for long.
func (b *Barrier) isDead(id string) bool {
	was, ok := b.seen[id]
	return id != b.id && ok && time.Since(was.since) > b.o.Dead
}

// bury removes the presences of those who are dead, before anything goes on without them: so one that is alive after all learns it when it shows again.
// alive says that one has just done so.
func (b *Barrier) bury(ctx context.Context, all []presence) (alive bool, err error) {
	for _, p := range all {
		if !b.isDead(p.ID) {
			continue
		}
		as := mql.MustCompile(bson.D{{Key: "beat", Value: p.Beat}})
		err := store.WriteAll(ctx, b.o.DB.Collection(instances), store.Op{Kind: store.Delete, ID: store.Name(p.ID), If: as})
		switch {
		case errors.Is(err, store.ErrStale):
			alive = true
		case err != nil && !errors.Is(err, errs.ErrNotFound):
			return false, err
		}
	}
	return alive, nil
}
