package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// collectionName is where leases are. One document each:
//
//	{_id: name, token: long, beat: long, holder: text, key: text, ttl: long}
//
// token grows with each holder, beat with each renewal by one; holder is "" after a release; key is drawn for each
// holding: when a database is dropped and made anew, tokens come again, and keys do not; ttl is in milliseconds. A
// document stays after a release, so that no token comes again.
const collectionName = "svc.leases"

// Errors, for errors.Is.
var (
	// ErrHeld says that somebody else has the lease. Its RetryAfter is when to try again.
	ErrHeld = errs.New(errs.Conflict, "lease_held", "somebody else is doing this: try again later")
	// ErrLost says that a lease is no longer this holder's.
	ErrLost = errs.New(errs.Conflict, "lease_lost", "somebody else has taken over meanwhile")
)

// Clock tells time and waits for it. What it tells must never go back.
type Clock interface {
	Now() time.Time
	// Wait returns after d, or with ctx's error when ctx ends before.
	Wait(ctx context.Context, d time.Duration) error
}

// Leases gives the leases of one database to one holder. It is safe for concurrent use.
type Leases struct {
	coll   store.Collection
	holder string
	clock  Clock

	mu   sync.Mutex
	seen map[string]sighting // by name: leases that others hold
}

// sighting is a state of a lease that somebody else holds, and since when it has been like that for us.
type sighting struct {
	token, beat int64
	key         string
	since       time.Time
}

// New gives the leases of db. holder names this process to people who look at the database. clock may be nil: the
// machine's monotonic clock.
func New(db store.Database, holder string, clock Clock) *Leases {
	if clock == nil {
		clock = machineClock{}
	}
	return &Leases{coll: db.Collection(collectionName), holder: holder, clock: clock, seen: map[string]sighting{}}
}

// Acquire takes a lease that nobody holds, or whose holder has not renewed it for the ttl it has asked for. Otherwise it
// fails with ErrHeld: call it again until it succeeds, at most ttl apart, because how long a lease has been silent is
// known only from calls before, or from Watch. A lease that this process holds already is held like any other. ttl is at least 1 ms.
func (l *Leases) Acquire(ctx context.Context, name string, ttl time.Duration) (*Lease, error) {
	if name == "" || l.holder == "" || ttl < time.Millisecond {
		return nil, errs.New(errs.Invalid, "bad_lease", "a lease needs a name, a holder and a time of at least 1 ms")
	}
	s, left, err := l.look(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case left > 0:
		return nil, held(left)
	}
	return l.take(ctx, name, ttl.Truncate(time.Millisecond), s) // as others read it
}

// Watch looks at a lease that this process may have to take over later, so that it is known by then for how long its holder has been silent.
func (l *Leases) Watch(ctx context.Context, name string) error {
	_, _, err := l.look(ctx, name)
	return err
}

// look reads a lease, the zero state if nobody has ever had it, and says how long it has to stay as it is before it may be taken over.
func (l *Leases) look(ctx context.Context, name string) (s state, left time.Duration, err error) {
	asked := l.clock.Now()
	doc, err := l.coll.Get(ctx, store.Name(name))
	if errors.Is(err, errs.ErrNotFound) {
		return state{}, 0, nil
	}
	if err != nil {
		return state{}, 0, err
	}
	if err := bson.Unmarshal(doc, &s); err != nil {
		return state{}, 0, errs.Wrap(err, "lease "+name)
	}
	return s, l.left(name, s, asked), nil
}

// state is a lease's document.
type state struct {
	Token  int64  `bson:"token"`
	Beat   int64  `bson:"beat"`
	Holder string `bson:"holder"`
	Key    string `bson:"key"`
	TTL    int64  `bson:"ttl"` // ms
}

func (s state) ttl() time.Duration { return time.Duration(s.TTL) * time.Millisecond }

// left gives how long a lease has to stay as it is before it may be taken over. A new state counts from when its answer
// was here, and its age is taken to when it was asked for: both too young rather than too old.
func (l *Leases) left(name string, s state, asked time.Time) time.Duration {
	if s.Holder == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.seen[name]
	if !ok || before.token != s.Token || before.beat != s.Beat || before.key != s.Key {
		l.seen[name] = sighting{token: s.Token, beat: s.Beat, key: s.Key, since: l.clock.Now()}
		return s.ttl()
	}
	return s.ttl() - asked.Sub(before.since)
}

func held(left time.Duration) error {
	e := *ErrHeld
	e.RetryAfter = left
	return &e
}

// take makes the lease ours unless it has changed since it was as s says (the zero state: unless it exists).
func (l *Leases) take(ctx context.Context, name string, ttl time.Duration, s state) (*Lease, error) {
	id, began, key := store.Name(name), l.clock.Now(), rand.Text()
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: name},
		{Key: "token", Value: s.Token + 1},
		{Key: "beat", Value: int64(0)},
		{Key: "holder", Value: l.holder},
		{Key: "key", Value: key},
		{Key: "ttl", Value: ttl.Milliseconds()},
	})
	if err != nil {
		return nil, errs.Wrap(err, "lease "+name)
	}
	op := store.Op{Kind: store.Insert, Doc: doc}
	if s.Token > 0 {
		op.Kind = store.Replace
		op.If = mql.MustCompile(bson.D{{Key: "token", Value: s.Token}, {Key: "beat", Value: s.Beat}, {Key: "holder", Value: s.Holder}, {Key: "key", Value: s.Key}})
	}
	results, err := l.coll.Write(ctx, []store.Op{op}, false)
	if err != nil {
		return nil, err
	}
	_, taken := errors.AsType[*store.DuplicateKeyError](results[0].Err)
	switch err := results[0].Err; {
	case err == nil:
		l.forget(name)
		return &Lease{leases: l, id: id, name: name, token: s.Token + 1, key: key, ttl: ttl, renewed: began}, nil
	case taken, errors.Is(err, store.ErrStale), errors.Is(err, errs.ErrNotFound):
		return nil, held(ttl) // somebody was faster, or has renewed it at the last moment
	default:
		return nil, err
	}
}

func (l *Leases) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, name)
}

// machineClock is the clock of this machine; the times that it tells carry the monotonic one.
type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
