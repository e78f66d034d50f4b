package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	collectionName = "svc.idempotency"

	// Lifetime is how long a key is remembered.
	Lifetime = 24 * time.Hour
	// How long a request counts as under way when its process is another one than that which asks. What may be repeated does
	// no harm where it is carried out twice at once.
	leaseOnce       = time.Minute
	leaseRepeatable = 10 * time.Second
	// MaxBody is how many bytes of an answer are kept.
	MaxBody = 1 << 20

	maxRounds  = 5 // of others who are faster
	retryAfter = time.Second
)

// Errors of Begin.
var (
	ErrRunning = &errs.Error{
		Kind: errs.Conflict, Code: "idempotency_running", RetryAfter: retryAfter,
		Message: "the first request with this Idempotency-Key is still under way: repeat this one later",
	}
	ErrUnknown = errs.New(errs.Conflict, "idempotency_unknown",
		"the first request with this Idempotency-Key was cut off, or takes very long: look whether it was carried out, and use another key to do it again")
	ErrReused = errs.New(errs.Limit, "idempotency_key_reused",
		"this Idempotency-Key was used for another request: use a new key for each")
)

// Options are what Keys need from outside.
type Options struct {
	Store store.Store      // required
	Now   func() time.Time // required
	Alone bool             // no other process works on the store: requests of another one are over
}

// Keys are the keys of all databases of a store. They are safe for concurrent use.
type Keys struct {
	opts    Options
	process string

	mu    sync.Mutex
	ready map[string]bool // databases whose index is there
	live  map[string]bool // tokens of the claims that this process has
}

// New makes Keys.
func New(o Options) *Keys {
	return &Keys{opts: o, process: rand.Text(), ready: map[string]bool{}, live: map[string]bool{}}
}

// Request is a request with a key.
type Request struct {
	Database   string   // where the key is remembered
	Scope      string   // within which the key counts, such as who asks for what
	Key        string   // as the caller gave it; it is not stored
	Hash       [32]byte // of all that the request asks for
	Repeatable bool     // it may be done again with the ids of its Claim
}

// Answer is what a request was answered.
type Answer struct {
	Status int               `bson:"status"`
	Header map[string]string `bson:"header"`
	Body   []byte            `bson:"body"`
	Rights []byte            `bson:"rights"` // what the caller could see then, for whoever asks to compare
	Kept   bool              `bson:"kept"`   // Body is all of it
}

// The states of an entry.
const (
	running = "running"
	done    = "done"
	free    = "free" // it failed, and may be done again
)

// entry is what is remembered of a key.
type entry struct {
	ID     string    `bson:"_id"`
	Hash   []byte    `bson:"hash"`
	State  string    `bson:"state"`
	Holder string    `bson:"holder"` // the process
	Token  string    `bson:"token"`  // of the one request that may say how it ended
	At     time.Time `bson:"at"`     // of the first request; the entry goes a day later
	Until  time.Time `bson:"until"`  // while it runs
	Answer *Answer   `bson:"answer,omitempty"`
}

// Claim is the right to carry out a request. It has to be ended by Done or Release.
type Claim struct {
	keys  *Keys
	coll  store.Collection
	entry entry
	again bool
}

// Begin gives the claim to carry out a request, or the answer that it has had already.
func (k *Keys) Begin(ctx context.Context, r Request) (*Claim, *Answer, error) {
	coll := k.opts.Store.Database(r.Database).Collection(collectionName)
	if err := k.prepare(ctx, r.Database, coll); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(r.Scope + "\x00" + r.Key))
	now, lease := k.opts.Now().UTC().Truncate(time.Millisecond), leaseOnce
	if r.Repeatable {
		lease = leaseRepeatable
	}
	mine := entry{
		ID: hex.EncodeToString(sum[:]), Hash: r.Hash[:], State: running, Holder: k.process, Token: rand.Text(), At: now, Until: now.Add(lease),
	}
	k.setLive(mine.Token, true) // before anybody can find it
	claimed := false
	defer func() {
		if !claimed {
			k.setLive(mine.Token, false)
		}
	}()
	for range maxRounds {
		c := &Claim{keys: k, coll: coll, entry: mine}
		err := write(ctx, coll, store.Insert, mine, "")
		if err == nil {
			claimed = true
			return c, nil, nil
		}
		if _, taken := errors.AsType[*store.DuplicateKeyError](err); !taken {
			return nil, nil, err
		}
		there, err := read(ctx, coll, mine.ID)
		if errors.Is(err, errs.ErrNotFound) { // its day is over
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if now.Sub(there.At) < Lifetime {
			if answer, err := k.judge(there, r, now); answer != nil || err != nil {
				return nil, answer, err
			}
			c.again, c.entry.At = true, there.At
		}
		if err = write(ctx, coll, store.Replace, c.entry, there.Token); err == nil {
			claimed = true
			return c, nil, nil
		}
		if !errors.Is(err, store.ErrStale) && !errors.Is(err, errs.ErrNotFound) {
			return nil, nil, err
		}
	}
	return nil, nil, ErrRunning
}

// judge says what becomes of a request whose key has an entry: both nil, it is to be carried out again.
func (k *Keys) judge(e entry, r Request, now time.Time) (*Answer, error) {
	switch {
	case !bytes.Equal(e.Hash, r.Hash[:]):
		return nil, ErrReused
	case e.State == done && e.Answer != nil:
		return e.Answer, nil
	case e.State == free:
		return nil, nil //nolint:nilnil // as said above
	case k.isRunning(e, now):
		return nil, ErrRunning
	case !r.Repeatable:
		return nil, ErrUnknown
	}
	return nil, nil //nolint:nilnil // as said above
}

// isRunning says whether an entry's request may be under way.
func (k *Keys) isRunning(e entry, now time.Time) bool {
	if e.Holder != k.process {
		return !k.opts.Alone && now.Before(e.Until)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.live[e.Token]
}

func (k *Keys) setLive(token string, on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if on {
		k.live[token] = true
	} else {
		delete(k.live, token)
	}
}

// prepare makes the index that ends entries, once for each process and database.
func (k *Keys) prepare(ctx context.Context, database string, coll store.Collection) error {
	k.mu.Lock()
	ready := k.ready[database]
	k.mu.Unlock()
	if ready {
		return nil
	}
	err := coll.CreateIndex(ctx, store.Index{Name: "at", Keys: []store.IndexKey{{Path: "at"}}, ExpireAfter: Lifetime})
	if errors.Is(err, store.ErrFull) {
		return nil // a first key that may use the reserve goes without, another one is refused when it is written; a later one makes it
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[database] = true
	return nil
}

func read(ctx context.Context, coll store.Collection, id string) (e entry, err error) {
	doc, err := coll.Get(ctx, store.Name(id))
	if err != nil {
		return e, err
	}
	if err := bson.Unmarshal(doc, &e); err != nil {
		return e, errs.Wrap(err, "read the entry of an idempotency key")
	}
	return e, nil
}

// write stores an entry; one that is replaced must have token.
func write(ctx context.Context, coll store.Collection, kind store.OpKind, e entry, token string) error {
	doc, err := bson.Marshal(e)
	if err != nil {
		return errs.Wrap(err, "write the entry of an idempotency key")
	}
	op := store.Op{Kind: kind, Doc: doc}
	if kind == store.Replace {
		op.If = mql.MustCompile(bson.D{{Key: "token", Value: token}})
	}
	results, err := coll.Write(ctx, []store.Op{op}, false)
	if err != nil {
		return err
	}
	return results[0].Err
}

// Again says that the request may have been carried out before.
func (c *Claim) Again() bool { return c.again }

// ID gives the id of what the request makes, by its place, which is below 1<<24. It is the same when the request is done
// again. Ids rise with the place and, from request to request, with the time, as others do: so what is made in an order is
// listed in it.
func (c *Claim) ID(place int) bson.ObjectID {
	at := c.entry.At
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(c.entry.ID), uint64(at.UnixMilli())))
	ms := at.UnixMilli() % 1000
	id := bson.NewObjectIDFromTimestamp(at)
	id[4], id[5] = byte(ms>>2), byte(ms<<6)|sum[0]>>2 //nolint:gosec // 10 bits of it
	copy(id[6:9], sum[1:])
	id[9], id[10], id[11] = byte(place>>16), byte(place>>8), byte(place) //nolint:gosec // 24 bits
	return id
}

// Done remembers the answer.
func (c *Claim) Done(ctx context.Context, a Answer) error {
	if len(a.Body) > MaxBody {
		a.Body, a.Kept = nil, false
	}
	a.Header = maps.Clone(a.Header)
	return c.end(ctx, done, &a)
}

// Release has the request be carried out again when it is repeated.
func (c *Claim) Release(ctx context.Context) error { return c.end(ctx, free, nil) }

func (c *Claim) end(ctx context.Context, state string, a *Answer) error {
	defer c.keys.setLive(c.entry.Token, false)
	e := c.entry
	e.State, e.Answer = state, a
	err := write(ctx, c.coll, store.Replace, e, e.Token)
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) { // it took so long that it is another's now, or nobody's
		return nil
	}
	return err
}
