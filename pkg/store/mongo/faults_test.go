package mongo_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

const (
	faultCallTime = 4 * time.Second  // that a call has under faults
	faultOverrun  = 5 * time.Second  // that it may take longer, on a machine with much else to do
	healTime      = 60 * time.Second // for the set to take writes again after a fault
)

// TestR10ReplicaSet does harm to a replica set of three while clients count, insert, change many documents, run
// transactions, take leases, build indexes, read views and follow the feed. What was acknowledged is there, once; what
// was not is there once or not at all; the feed tells each change once and in order; calls end in time, and with an error
// that says to try again. FAULTS is the number of faults.
func TestR10ReplicaSet(t *testing.T) {
	faults, _ := strconv.Atoi(os.Getenv("FAULTS"))
	if faults == 0 {
		t.Skip("NOT TESTED with a replica set of three: FAULTS=20 does 20 faults to it, and make soak some in each round")
	}
	set, err := mongotest.StartSet(t.Context(), 3)
	if err != nil {
		t.Skipf("NOT TESTED with a replica set of three: %v", err)
	}
	t.Cleanup(func() { _ = set.Stop() })
	s := open(t, set.URI)
	a := newAttack(t, s)
	a.start()
	for i := range faults {
		a.harm(set, i)
		a.heal()
	}
	a.finish()
}

// fault is harm done to a set, and undone.
type fault struct {
	name string
	do   func(ctx context.Context, a *attack, set *mongotest.Set) error
}

func faultKinds() []fault {
	return []fault{
		{"the primary steps down", func(ctx context.Context, a *attack, set *mongotest.Set) error {
			primary, _, err := set.Primary(ctx)
			if err != nil {
				return err
			}
			command := bson.D{{Key: "replSetStepDown", Value: 5}, {Key: "secondaryCatchUpPeriodSecs", Value: 2}, {Key: "force", Value: true}}
			direct := admin(a.t, "mongodb://"+primary.Addr()+"/?directConnection=true")
			return direct.Database("admin").RunCommand(ctx, command).Err()
		}},
		{"the primary is killed", func(ctx context.Context, _ *attack, set *mongotest.Set) error {
			primary, _, err := set.Primary(ctx)
			if err != nil {
				return err
			}
			return during(4*time.Second, primary.Kill, primary.Restart)
		}},
		{"the primary stands still", func(ctx context.Context, _ *attack, set *mongotest.Set) error {
			primary, _, err := set.Primary(ctx)
			if err != nil {
				return err
			}
			return during(8*time.Second, primary.Pause, primary.Resume)
		}},
		{"a secondary stands still", func(ctx context.Context, _ *attack, set *mongotest.Set) error {
			_, others, err := set.Primary(ctx)
			if err != nil {
				return err
			}
			return during(3*time.Second, others[0].Pause, others[0].Resume)
		}},
		{"no majority is left", func(ctx context.Context, _ *attack, set *mongotest.Set) error {
			_, others, err := set.Primary(ctx)
			if err != nil {
				return err
			}
			return during(4*time.Second, func() error {
				if err := others[0].Kill(); err != nil {
					return err
				}
				return others[1].Pause()
			}, func() error {
				if err := others[1].Resume(); err != nil {
					return err
				}
				return others[0].Restart()
			})
		}},
		{"the primary is killed twice", func(ctx context.Context, _ *attack, set *mongotest.Set) error {
			for range 2 {
				primary, _, err := set.Primary(ctx)
				if err != nil {
					return err
				}
				if err := during(2*time.Second, primary.Kill, primary.Restart); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

// during does something, and undoes it after a while.
func during(d time.Duration, do, undo func() error) error {
	if err := do(); err != nil {
		return err
	}
	time.Sleep(d)
	return undo()
}

// attack is what happens to a store under faults.
type attack struct {
	t       *testing.T
	ledgers []*ledger
	watched *watched
	running sync.WaitGroup
	stop    context.CancelFunc
	life    context.Context // of the clients

	mu      sync.Mutex
	acked   int
	unknown map[string]int // outcomes by error code
	slowest time.Duration  // over the time of a call
	slow    string         // which
}

// call does something once, and says whether it is known to have been done. Errors must say that it can be tried again.
func (a *attack) call(what string, fn func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(a.t.Context(), faultCallTime)
	defer cancel()
	start := time.Now()
	err := fn(ctx)
	late := time.Since(start) - faultCallTime
	a.mu.Lock()
	defer a.mu.Unlock()
	if late > a.slowest {
		a.slowest, a.slow = late, what
	}
	if late > faultOverrun {
		a.t.Errorf("%s: ended %v after its time: %v", what, late, err)
	}
	if err == nil {
		a.acked++
		return true
	}
	if kind := errs.KindOf(err); kind != errs.Unavailable && kind != errs.Timeout {
		a.t.Errorf("%s: %v", what, err)
	}
	a.unknown[what+" "+errs.From(err).Code]++
	return false
}

// harm does a fault to the set.
func (a *attack) harm(set *mongotest.Set, i int) {
	a.t.Helper()
	kinds := faultKinds()
	f := kinds[i%len(kinds)]
	a.t.Logf("fault %d: %s", i, f.name)
	if err := f.do(a.t.Context(), a, set); err != nil {
		a.t.Fatalf("%s: %v", f.name, err)
	}
}

// heal waits until every client has had a success again.
func (a *attack) heal() {
	a.t.Helper()
	start := time.Now()
	for _, l := range a.ledgers {
		for before := l.done.Load(); l.done.Load() == before; time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > healTime {
				a.t.Fatalf("%s: no success for %v after the fault", l.name, healTime)
			}
		}
	}
	a.t.Logf("all clients at work again after %v", time.Since(start).Round(10*time.Millisecond))
}

// start lets all clients begin.
func (a *attack) start() {
	for _, l := range a.ledgers {
		a.running.Go(func() {
			for n := 0; a.life.Err() == nil; n++ {
				l.tried.Add(1)
				if a.call(l.name, func(ctx context.Context) error { return l.step(ctx, n) }) {
					l.done.Add(1)
				}
			}
		})
	}
	a.running.Go(func() { a.watched.follow(a.life) })
}

// finish stops the clients and compares what they know with what is stored and what the feed has told.
func (a *attack) finish() {
	a.stop()
	a.running.Wait()
	a.t.Logf("%d calls acknowledged, not: %v; latest end %v over time (%s)",
		a.acked, a.unknown, a.slowest.Round(time.Millisecond), a.slow)
	ctx := a.t.Context()
	for _, l := range a.ledgers {
		if err := l.check(ctx, l.done.Load(), l.tried.Load()); err != nil {
			a.t.Errorf("%s, %d acknowledged of %d: %v", l.name, l.done.Load(), l.tried.Load(), err)
		}
	}
	if err := a.watched.check(ctx); err != nil {
		a.t.Errorf("the feed: %v", err)
	}
}

// between says that n is not in what is known to have been done at least and tried at most.
func between(what string, n, done, tried int64) error {
	if n < done || n > tried {
		return fmt.Errorf("%s is %d, not in %d to %d", what, n, done, tried)
	}
	return nil
}
