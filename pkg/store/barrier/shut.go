package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// wish is for a database to be shut.
type wish struct {
	Database string `bson:"_id"`
	Key      string `bson:"key"`
	By       string `bson:"by"` // id of the presence
	Reads    bool   `bson:"reads"`
}

// Shut has every process refuse writes of a database, and returns when writes have ended in all of them that are alive. If ctx ends
// before, or the store fails, all is open as it was. A database that somebody else has shut is waited for.
func (b *Barrier) Shut(ctx context.Context, database string) (gate.Shut, error) {
	w := wish{Database: database, Key: rand.Text(), By: b.id}
	b.mu.Lock()
	b.ours[w.Key] = true
	b.mu.Unlock()
	s := &everywhere{b: b, w: w, life: context.WithoutCancel(ctx)}
	err := b.wish(ctx, w)
	if err == nil {
		if s.here, err = b.o.Gate.Shut(ctx, database); err == nil {
			err = b.await(ctx, w.Key, noWrites)
		}
	}
	if err != nil {
		s.Open()
		return nil, err
	}
	return s, nil
}

// everywhere is a database that all processes have shut for this one.
type everywhere struct {
	b    *Barrier
	w    wish
	here gate.Shut       // nil: it was not reached
	life context.Context //nolint:containedctx // for Open, which has none
}

func (s *everywhere) Reads(ctx context.Context) error {
	reads := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "reads", Value: true}}}})
	err := store.WriteAll(ctx, s.b.o.DB.Collection(barriers), store.Op{Kind: store.Update, ID: store.Name(s.w.Database), If: s.w.same(), Update: reads})
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return errLost.With(err)
	}
	if err == nil {
		err = s.here.Reads(ctx)
	}
	if err == nil {
		err = s.b.await(ctx, s.w.Key, nothing)
	}
	return err
}

// errLost is for a process that was taken for dead.
var errLost = errs.New(errs.Unavailable, "barrier_lost", "the other instances took this one for dead, so that nothing was done: try again")

// openTime bounds how long the others are told to open. Later looks tell them, too.
const openTime = 10 * time.Second

func (s *everywhere) Open() {
	s.b.mu.Lock()
	ours := s.b.ours[s.w.Key]
	delete(s.b.ours, s.w.Key)
	s.b.mu.Unlock()
	if !ours {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, openTime)
	defer cancel()
	if err := s.b.withdraw(ctx, s.w); err != nil {
		s.b.o.Logger.WarnContext(ctx, "the other instances can't be told to go on; that is tried again", "error", err)
	}
	if s.here != nil {
		s.here.Open()
	}
}

// same is a wish as it was made.
func (w wish) same() *mql.Filter { return mql.MustCompile(bson.D{{Key: "key", Value: w.Key}}) }

// wish notes it when there is no other one for the database.
func (b *Barrier) wish(ctx context.Context, w wish) error {
	doc, err := bson.Marshal(w)
	if err != nil {
		return errs.Wrap(err, "shut a database")
	}
	for {
		err := store.WriteAll(ctx, b.o.DB.Collection(barriers), store.Op{Kind: store.Insert, Doc: doc})
		if _, taken := errors.AsType[*store.DuplicateKeyError](err); !taken {
			return err
		}
		if !store.Wait(ctx, b.o.Beat) {
			return store.Ended(ctx)
		}
	}
}

// withdraw takes a wish back.
func (b *Barrier) withdraw(ctx context.Context, w wish) error {
	err := store.WriteAll(ctx, b.o.DB.Collection(barriers), store.Op{Kind: store.Delete, ID: store.Name(w.Database), If: w.same()})
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

func (b *Barrier) wants(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ours[key]
}

// await waits until all others that are alive have shut a database.
func (b *Barrier) await(ctx context.Context, key, how string) error {
	for {
		missing, err := b.missing(ctx, key, how)
		if err != nil || !missing {
			return err
		}
		if !store.Wait(ctx, b.o.Beat/4) {
			return store.Ended(ctx)
		}
	}
}

// missing says whether somebody who is alive has not shut it.
func (b *Barrier) missing(ctx context.Context, key, how string) (bool, error) {
	b.looking.Lock()
	defer b.looking.Unlock()
	all, err := b.presences(ctx)
	if err != nil {
		return false, err
	}
	var without []presence
	for _, p := range all {
		is := p.Shut[key]
		if p.ID == b.id || is == how || is == nothing {
			continue
		}
		if !b.isDead(p.ID) {
			return true, nil
		}
		without = append(without, p)
	}
	return b.removeDead(ctx, without)
}

func (b *Barrier) wishes(ctx context.Context) ([]wish, error) {
	return find[wish](ctx, b.o.DB.Collection(barriers))
}

func find[T any](ctx context.Context, from store.Collection) (all []T, err error) {
	err = from.Find(ctx, store.Query{}, func(doc bson.Raw) error {
		var one T
		if err := bson.Unmarshal(doc, &one); err != nil {
			return errs.Wrap(err, "look at the other instances")
		}
		all = append(all, one)
		return nil
	})
	return all, err
}
