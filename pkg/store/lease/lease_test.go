package lease_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const ttl = 30 * time.Second

// clock is a clock that only the test moves.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	waiting chan struct{} // one value for each Wait that begins
	moved   chan struct{} // closed by the next move
}

func newClock() *clock {
	return &clock{now: time.Unix(1000, 0), waiting: make(chan struct{}, 1000), moved: make(chan struct{})}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	close(c.moved)
	c.moved = make(chan struct{})
}

// awaitRenewals waits until Keep has nothing to do but wait, or has given up.
func (c *clock) awaitRenewals(ctx context.Context) {
	select {
	case <-c.waiting:
	case <-ctx.Done():
	}
}

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	end := c.Now().Add(d)
	c.waiting <- struct{}{}
	for {
		c.mu.Lock()
		over, moved := !c.now.Before(end), c.moved
		c.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for _, c := range []struct {
			name string
			run  func(t *testing.T, db store.Database)
		}{
			{"one holder at a time", testOneHolder},
			{"silence counts from what a contender has seen", testSilence},
			{"silence counts from what was watched", testWatched},
			{"a renewed lease stays", testRenewed},
			{"tokens grow", testTokens},
			{"a paused holder is fenced off", testPaused},
			{"a fenced transaction and a take-over exclude each other", testFenceOrTakeOver},
			{"one of many contenders", testContenders},
			{"no counted step is lost under take-overs", testTakeOvers},
			{"hold acquires, keeps and releases", testHold},
			{"keep renews", testKeep},
			{"keep ends when the lease is lost", testKeepLost},
			{"keep ends when renewing fails for too long", testKeepOutage},
			{"keep ends with a panic", testKeepPanic},
			{"a holding ends with its database", testDropped},
			{"refusals", testRefusals},
		} {
			t.Run(c.name, func(t *testing.T) {
				name := "lease-" + strings.ToLower(rand.Text())
				t.Cleanup(func() {
					if err := s.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
						t.Error(err)
					}
				})
				c.run(t, s.Database(name))
			})
		}
	})
}

func acquire(t *testing.T, l *lease.Leases) *lease.Lease {
	t.Helper()
	held, err := l.Acquire(t.Context(), "work", ttl)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return held
}

// wantHeld checks that the lease can't be had, and gives when to try again.
func wantHeld(t *testing.T, l *lease.Leases) time.Duration {
	t.Helper()
	_, err := l.Acquire(t.Context(), "work", ttl)
	if !errors.Is(err, lease.ErrHeld) || errs.KindOf(err) != errs.Conflict {
		t.Fatalf("Acquire: %v, want ErrHeld", err)
	}
	again := errs.From(err).RetryAfter
	if again <= 0 || again > ttl {
		t.Fatalf("to try again in %v", again)
	}
	return again
}

func testOneHolder(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	first := acquire(t, a)
	wantHeld(t, b)
	wantHeld(t, a) // for others in this process
	if _, err := b.Acquire(t.Context(), "other work", ttl); err != nil {
		t.Errorf("another lease: %v", err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	acquire(t, b)
	wantHeld(t, a)
	if names, err := db.CollectionNames(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("leases show as collections %v, %v", names, err)
	}
}

// testSilence lets the clocks of the holder and the contender differ by years.
func testSilence(t *testing.T, db store.Database) {
	mine, theirs := newClock(), newClock()
	theirs.move(100_000 * time.Hour)
	acquire(t, lease.New(db, "a", mine))
	b := lease.New(db, "b", theirs)
	if again := wantHeld(t, b); again != ttl {
		t.Errorf("the first look waits %v, want all of %v", again, ttl)
	}
	theirs.move(ttl - time.Second)
	if again := wantHeld(t, b); again != time.Second {
		t.Errorf("try again in %v, want 1s", again)
	}
	theirs.move(time.Second)
	acquire(t, b)
}

// testWatched: who has only watched a lease knows for how long it has been silent.
func testWatched(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	watch := func() {
		if err := b.Watch(t.Context(), "work"); err != nil {
			t.Fatal(err)
		}
	}
	watch() // nobody has it
	held := acquire(t, a)
	watch()
	c.move(ttl - time.Second)
	if err := held.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch() // it lives
	c.move(ttl - time.Second)
	if again := wantHeld(t, b); again != time.Second {
		t.Errorf("try again in %v, want 1s", again)
	}
	c.move(time.Second)
	acquire(t, b)
}

func testRenewed(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	held := acquire(t, a)
	for range 5 {
		wantHeld(t, b)
		c.move(ttl - time.Second)
		if err := held.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, b)
	}
	c.move(ttl)
	acquire(t, b)
	if err := held.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew of a lost lease: %v", err)
	}
	if err := held.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release of a lost lease: %v", err)
	}
	wantHeld(t, a)
}

func testTokens(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	last := int64(0)
	for round := range 6 {
		l := a
		if round%3 == 2 {
			l = b
		}
		held := acquire(t, l)
		if held.Token() <= last {
			t.Errorf("round %d: token %d after %d", round, held.Token(), last)
		}
		last = held.Token()
		if round%2 == 0 {
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := held.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
				t.Errorf("Renew after Release: %v", err)
			}
			continue
		}
		for _, l := range []*lease.Leases{a, b} {
			wantHeld(t, l)
		}
		c.move(ttl)
	}
}

// count adds one to a counter in a transaction that the lease fences.
func count(ctx context.Context, db store.Database, held *lease.Lease, between func() error) error {
	one := mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
	return db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := held.Fence(ctx, tx); err != nil {
			return err
		}
		if err := between(); err != nil {
			return err
		}
		results, err := tx.Collection("work").Write(ctx, []store.Op{
			{Kind: store.Update, Filter: mql.MustCompile(bson.D{{Key: "_id", Value: "counter"}}), Update: one, Upsert: true},
		}, true)
		if err != nil {
			return err
		}
		return results[0].Err
	})
}

func nothing() error { return nil }

func counted(t *testing.T, db store.Database) int64 {
	t.Helper()
	n := int64(0)
	err := db.Collection("work").Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		n = doc.Lookup("n").AsInt64()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func testPaused(t *testing.T, db store.Database) {
	mine, theirs := newClock(), newClock()
	a, b := lease.New(db, "a", mine), lease.New(db, "b", theirs)
	paused := acquire(t, a)
	if err := count(t.Context(), db, paused, nothing); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, b)
	theirs.move(ttl) // the holder's own clock stands still, so it believes in its lease
	awake := acquire(t, b)
	if err := count(t.Context(), db, awake, nothing); err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), db, paused, nothing); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the paused holder wrote: %v", err)
	}
	if err := awake.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), db, paused, nothing); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the paused holder wrote after the release: %v", err)
	}
	if n := counted(t, db); n != 2 {
		t.Errorf("counted %d, want 2", n)
	}
}

// testFenceOrTakeOver begins a take-over while a fenced transaction runs. It waits for the transaction, and then finds the
// lease renewed.
func testFenceOrTakeOver(t *testing.T, db store.Database) {
	mine, theirs := newClock(), newClock()
	a, b := lease.New(db, "a", mine), lease.New(db, "b", theirs)
	held := acquire(t, a)
	wantHeld(t, b)
	theirs.move(ttl)
	var once sync.Once
	var g errgroup.Group
	err := count(t.Context(), db, held, func() error {
		once.Do(func() {
			g.Go(func() error { _, err := b.Acquire(t.Context(), "work", ttl); return err })
		})
		return nil
	})
	// Whoever was first: the other one can't have done it too.
	takeOver := g.Wait()
	switch {
	case err == nil && errors.Is(takeOver, lease.ErrHeld):
		if n := counted(t, db); n != 1 {
			t.Errorf("counted %d, want 1", n)
		}
	case errors.Is(err, lease.ErrLost) && takeOver == nil:
		if n := counted(t, db); n != 0 {
			t.Errorf("counted %d, want 0", n)
		}
	case err == nil && takeOver == nil: // after the transaction, but then the beat must have been seen
		t.Error("both the transaction and the take-over succeeded")
	default:
		t.Errorf("transaction: %v, take-over: %v", err, takeOver)
	}
}

func testContenders(t *testing.T, db store.Database) {
	const contenders = 16
	c := newClock()
	all := make([]*lease.Leases, contenders)
	for i := range all {
		all[i] = lease.New(db, fmt.Sprint("holder ", i), c)
	}
	for round := range 4 {
		var mu sync.Mutex
		var winners []*lease.Lease
		var g errgroup.Group
		for _, l := range all {
			g.Go(func() error {
				held, err := l.Acquire(t.Context(), "work", ttl)
				if errors.Is(err, lease.ErrHeld) {
					return nil
				}
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					winners = append(winners, held)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if len(winners) != 1 || winners[0].Token() != int64(round+1) {
			t.Fatalf("round %d: %d winners", round, len(winners))
		}
		for _, l := range all { // those who lost look at the winner, whose time then passes
			wantHeld(t, l)
		}
		if round%2 == 0 {
			c.move(ttl)
		} else if err := winners[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// testTakeOvers lets holders count while others take over all the time. Each count that was acknowledged has to be there
// and no other one; the tokens with which they were made only grow.
func testTakeOvers(t *testing.T, db store.Database) {
	const workers, steps = 4, 12
	var mu sync.Mutex
	done := int64(0)
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			c := newClock() // each runs ahead as it likes
			l := lease.New(db, fmt.Sprint("worker ", w), c)
			for step := 0; step < steps; {
				held, err := l.Acquire(t.Context(), "work", ttl)
				if errors.Is(err, lease.ErrHeld) {
					c.move(ttl)
					continue
				}
				if err != nil {
					return err
				}
				for range 3 {
					err := count(t.Context(), db, held, nothing)
					if errors.Is(err, lease.ErrLost) {
						break
					}
					if err != nil {
						return err
					}
					mu.Lock()
					done++
					mu.Unlock()
					step++
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := counted(t, db); n != done {
		t.Errorf("the counter says %d, %d were acknowledged", n, done)
	}
}

func testHold(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	errDone := errors.New("done")
	for _, want := range []error{nil, errDone} {
		ran := false
		err := a.Hold(t.Context(), "work", ttl, func(ctx context.Context, held *lease.Lease) error {
			ran = true
			wantHeld(t, b)
			if err := b.Hold(ctx, "work", ttl, func(context.Context, *lease.Lease) error {
				t.Error("two hold it at once")
				return nil
			}); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("the other one: %v", err)
			}
			return errors.Join(held.Renew(ctx), want)
		})
		if !ran || !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("it ran: %v, %v, want %v", ran, err, want)
		}
		if err := acquire(t, b).Release(t.Context()); err != nil { // it was released
			t.Error(err)
		}
	}
}

func testKeep(t *testing.T, db store.Database) {
	c := newClock()
	held := acquire(t, lease.New(db, "a", c))
	contender := lease.New(db, "b", c)
	errDone := errors.New("done")
	err := held.Keep(t.Context(), func(ctx context.Context) error {
		for range 7 {
			c.awaitRenewals(ctx) // the one before is over
			wantHeld(t, contender)
			c.move(ttl / 3)
		}
		return errors.Join(ctx.Err(), errDone)
	})
	if !errors.Is(err, errDone) || errors.Is(err, lease.ErrLost) {
		t.Errorf("Keep: %v", err)
	}
	if err := held.Renew(t.Context()); err != nil {
		t.Errorf("the lease is not held after Keep: %v", err)
	}
}

func testKeepLost(t *testing.T, db store.Database) {
	mine, theirs := newClock(), newClock()
	held := acquire(t, lease.New(db, "a", mine))
	contender := lease.New(db, "b", theirs)
	err := held.Keep(t.Context(), func(ctx context.Context) error {
		mine.awaitRenewals(ctx)
		wantHeld(t, contender)
		theirs.move(ttl)
		acquire(t, contender)
		mine.move(ttl / 3)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, lease.ErrLost) {
			t.Errorf("the context ended with %v", cause)
		}
		return nil
	})
	if !errors.Is(err, lease.ErrLost) {
		t.Errorf("Keep: %v", err)
	}
}

func testKeepOutage(t *testing.T, db store.Database) {
	c := newClock()
	broken := &outage{Database: db}
	held := acquire(t, lease.New(broken, "a", c))
	err := held.Keep(t.Context(), func(ctx context.Context) error {
		c.awaitRenewals(ctx)
		broken.down(true)
		c.move(ttl / 3)
		c.awaitRenewals(ctx) // one failure is no loss
		broken.down(false)
		c.move(ttl / 3)
		c.awaitRenewals(ctx)
		if ctx.Err() != nil {
			t.Error("the lease was taken for lost too early")
		}
		broken.down(true)
		for range 3 {
			c.move(ttl / 3)
			c.awaitRenewals(ctx)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, lease.ErrLost) {
		t.Errorf("Keep: %v", err)
	}
}

// outage is a database whose writes can be made to fail.
type outage struct {
	store.Database
	mu     sync.Mutex
	isDown bool
}

func (o *outage) down(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isDown = down
}

func (o *outage) Collection(name string) store.Collection {
	return brokenCollection{o.Database.Collection(name), o}
}

type brokenCollection struct {
	store.Collection
	outage *outage
}

func (c brokenCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	c.outage.mu.Lock()
	down := c.outage.isDown
	c.outage.mu.Unlock()
	if down {
		return nil, errs.New(errs.Unavailable, "down", "the store is down")
	}
	return c.Collection.Write(ctx, ops, atomic)
}

func testRefusals(t *testing.T, db store.Database) {
	l := lease.New(db, "a", nil)
	for _, c := range []struct {
		name string
		ttl  time.Duration
	}{{"", ttl}, {"work", 0}, {"work", time.Microsecond}} {
		if _, err := l.Acquire(t.Context(), c.name, c.ttl); errs.KindOf(err) != errs.Invalid {
			t.Errorf("Acquire(%q, %v): %v", c.name, c.ttl, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, "work", ttl); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire with a canceled context: %v", err)
	}
	held := acquire(t, l)
	if err := held.Renew(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Renew with a canceled context: %v", err)
	}
}

// testKeepPanic checks that nothing goes on renewing what a panic has ended.
func testKeepPanic(t *testing.T, db store.Database) {
	c := newClock()
	a, b := lease.New(db, "a", c), lease.New(db, "b", c)
	mine := acquire(t, a)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = mine.Keep(t.Context(), func(ctx context.Context) error {
			c.awaitRenewals(ctx)
			panic("at work")
		})
	}()
	wantHeld(t, b)
	c.move(ttl)
	acquire(t, b)
}

// testDropped checks that a holding is over when its database is dropped, though tokens begin anew with the next one.
func testDropped(t *testing.T, db store.Database) {
	c := newClock()
	a, same := lease.New(db, "a", c), lease.New(db, "a", c)
	before := acquire(t, a)
	if err := db.DropCollection(t.Context(), "svc.leases"); err != nil {
		t.Fatal(err)
	}
	after := acquire(t, same)
	if err := before.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew of a lease from before: %v", err)
	}
	err := db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error { return before.Fence(ctx, tx) })
	if !errors.Is(err, lease.ErrLost) {
		t.Errorf("Fence of a lease from before: %v", err)
	}
	if err := before.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release of a lease from before: %v", err)
	}
	if err := after.Renew(t.Context()); err != nil {
		t.Errorf("Renew: %v", err)
	}
}
