package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Lease is a lease while it is held, and afterwards. It is safe for concurrent use.
type Lease struct {
	leases *Leases
	id     bson.RawValue
	name   string
	token  int64
	key    string
	ttl    time.Duration

	mu      sync.Mutex
	renewed time.Time // before the last renewal that succeeded
}

// Token is the number of this holding. Every later one of the same lease has a larger one, after a release too, unless
// the database is dropped.
func (l *Lease) Token() int64 { return l.token }

// Renew says that the holder is alive. It fails with ErrLost if somebody else has taken over, or after a Release.
func (l *Lease) Renew(ctx context.Context) error {
	began := l.leases.clock.Now()
	results, err := l.leases.coll.Write(ctx, []store.Op{l.beat()}, false)
	if err != nil {
		return err
	}
	if err := lost(results[0].Err); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if began.After(l.renewed) {
		l.renewed = began
	}
	return nil
}

// beat is the write of a holder who is alive. That it changes the document is what contenders look at, and what makes
// two transactions meet.
func (l *Lease) beat() store.Op {
	alive := mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "beat", Value: int64(1)}}}})
	return store.Op{Kind: store.Update, ID: l.id, If: l.ours(), Update: alive}
}

func (l *Lease) ours() *mql.Filter {
	return mql.MustCompile(bson.D{{Key: "token", Value: l.token}, {Key: "holder", Value: l.leases.holder}, {Key: "key", Value: l.key}})
}

// Release gives the lease back, so that others need not wait for its time to pass. It fails with ErrLost if it was
// lost before.
func (l *Lease) Release(ctx context.Context) error {
	nobody := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "holder", Value: ""}}}})
	op := store.Op{Kind: store.Update, ID: l.id, If: l.ours(), Update: nobody}
	results, err := l.leases.coll.Write(ctx, []store.Op{op}, false)
	if err != nil {
		return err
	}
	return lost(results[0].Err)
}

// Fence makes a transaction of the lease's database one that only the holder can commit: it fails with ErrLost if
// somebody else has taken over, and who tries to while the transaction runs waits for its end. It also renews the lease.
func (l *Lease) Fence(ctx context.Context, tx store.Tx) error {
	results, err := tx.Collection(collectionName).Write(ctx, []store.Op{l.beat()}, true)
	if err != nil {
		return err
	}
	return lost(results[0].Err)
}

// lost turns the error of a conditional write into one of a lease.
func lost(err error) error {
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return ErrLost
	}
	return err
}

// Keep runs fn and meanwhile renews the lease three times in its time. When the lease is lost, or could not be renewed
// for so long that it has to be taken for lost, fn's context ends with the cause ErrLost. Keep waits for fn, and
// returns ErrLost then, whatever fn did, and otherwise fn's error. It does not release the lease.
func (l *Lease) Keep(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewer sync.WaitGroup
	renewer.Go(func() {
		if l.renewUntilLost(ctx) {
			cancel(ErrLost)
		}
	})
	err := func() error {
		defer renewer.Wait()
		defer cancel(context.Canceled) // also if fn panics: nobody would hold what is renewed for ever
		return fn(ctx)
	}()
	if errors.Is(context.Cause(ctx), ErrLost) {
		return ErrLost
	}
	return err
}

// Hold acquires a lease, runs fn as Keep does, and releases the lease. It fails with fn's error, or with one of Acquire, Keep or
// Release.
func (l *Leases) Hold(ctx context.Context, name string, ttl time.Duration, fn func(ctx context.Context, held *Lease) error) error {
	held, err := l.Acquire(ctx, name, ttl)
	if err != nil {
		return err
	}
	err = held.Keep(ctx, func(ctx context.Context) error { return fn(ctx, held) })
	if release := held.Release(context.WithoutCancel(ctx)); err == nil && !errors.Is(release, ErrLost) {
		err = release
	}
	return err
}

// renewUntilLost returns true when the lease is lost, and false when ctx ends.
func (l *Lease) renewUntilLost(ctx context.Context) bool {
	for {
		if l.leases.clock.Wait(ctx, min(l.ttl/3, max(0, l.left()))) != nil {
			return false
		}
		left := l.left()
		if left <= 0 {
			return true
		}
		attempt, done := context.WithTimeout(ctx, left)
		err := l.Renew(attempt)
		done()
		if errors.Is(err, ErrLost) {
			return true
		}
		// Another error may pass, and another attempt is made until the time is over.
	}
}

// left gives how long nobody else can have taken over.
func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl - l.leases.clock.Now().Sub(l.renewed)
}
