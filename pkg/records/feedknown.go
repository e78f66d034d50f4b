package records

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	feedsName   = "svc.feeds"
	feedKeyName = "key"

	feedKept = time.Hour // how long it is known what the reader of a feed has seen
	lateTold = 1000      // events that a reader may have missed of those that were sent: they wait in buffers on the way

	// How many feeds are kept, of one owner and in all of a database: who comes and goes again and again fills no disk.
	maxKeptOfOwner = 64
	maxKept        = 2048
)

// known is what the reader of a feed has in sight: ids, with the number of the event that told of each.
type known struct {
	present map[bson.ObjectID]uint64
	left    map[bson.ObjectID]uint64 // what went out of sight lately: it comes back if the reader has not been told
	lost    uint64                   // left lacks what went up to this event: who has not been told of that much can't go on
}

func newKnown() *known {
	return &known{present: map[bson.ObjectID]uint64{}, left: map[bson.ObjectID]uint64{}}
}

// note says that event n told of a record. One that comes back stays in left, for readers who were told of neither.
func (k *known) note(id bson.ObjectID, seen bool, n uint64) {
	if seen {
		if _, had := k.present[id]; !had {
			k.present[id] = n
		}
		return
	}
	delete(k.present, id)
	k.left[id] = n
	if len(k.left) > 2*lateTold {
		for id, at := range k.left {
			if at+lateTold < n {
				delete(k.left, id)
				k.lost = max(k.lost, at)
			}
		}
	}
}

// since takes back what events behind n have told: they did not arrive. It is false if that is not known any more.
func (k *known) since(n uint64) bool {
	if n < k.lost {
		return false
	}
	for id, at := range k.present {
		if at > n {
			delete(k.present, id)
		}
	}
	for id, at := range k.left {
		if at > n {
			k.present[id] = n
			delete(k.left, id)
		}
	}
	return true
}

// feedHandover is how long who connects again waits for the end of the connection that they had.
const feedHandover = 5 * time.Second

// endFeed ends a feed of this instance whose reader has connected again, before it has noticed that they are gone.
func (s *Service) endFeed(ctx context.Context, id bson.ObjectID, next *Feed) error {
	v, _ := s.feeds.Load(id)
	old, ok := v.(*Feed)
	if !ok || old.params.Reader != next.params.Reader || old.name != next.name {
		return nil
	}
	old.stop()
	timer := time.NewTimer(feedHandover)
	defer timer.Stop()
	select {
	case <-old.closed:
		return nil
	case <-timer.C:
		return ErrFeedGone
	case <-ctx.Done():
		return store.Ended(ctx)
	}
}

// Close keeps for a while what the reader has seen, so that they can go on elsewhere.
func (f *Feed) Close(ctx context.Context) error {
	defer func() {
		f.stop()
		close(f.closed)
		f.s.feeds.Delete(f.id)
		f.s.feedIDs.Add(-f.held)
	}()
	f.mu.Lock()
	handed := f.handed // a stream that is about to end may still ask for tokens
	f.mu.Unlock()
	if f.known == nil || !handed {
		return nil
	}
	coll := f.db.Collection(feedsName)
	for _, index := range []store.Index{
		{Name: "at", Keys: []store.IndexKey{{Path: "at"}}, ExpireAfter: feedKept},
		{Name: "owner", Keys: []store.IndexKey{{Path: "owner"}, {Path: "at"}}},
	} {
		if err := coll.CreateIndex(ctx, index); err != nil {
			return err
		}
	}
	owner := ownerKey(f.params.Owner)
	if err := makeRoom(ctx, coll, owner); err != nil {
		return err
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: f.id.Hex()},
		{Key: "reader", Value: f.params.Reader},
		{Key: "owner", Value: owner},
		{Key: "collection", Value: f.name},
		{Key: "at", Value: f.s.now()},
		{Key: "present", Value: pack(f.known.present)},
		{Key: "left", Value: pack(f.known.left)},
		{Key: "lost", Value: int64(f.known.lost)}, //nolint:gosec // a number of events
	})
	if err != nil {
		return errs.Wrap(err, "keep what a feed has told")
	}
	return store.WriteAll(ctx, coll, store.Op{Kind: store.Insert, Doc: doc})
}

var errNoRoom = errs.New(errs.Limit, "too_many_feeds", "%d feeds are kept already", maxKept)

// ownerKey is an owner as it is kept: a caller may be an address, which is nobody's business.
func ownerKey(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:])
}

// makeRoom drops the oldest feeds that are kept of an owner.
func makeRoom(ctx context.Context, coll store.Collection, owner string) error {
	if n, err := coll.Count(ctx, nil, 0); err != nil || n >= maxKept {
		return cmp.Or(err, error(errNoRoom))
	}
	theirs := mql.MustCompile(bson.D{{Key: "owner", Value: owner}})
	n, err := coll.Count(ctx, theirs, 0)
	if err != nil || n < maxKeptOfOwner {
		return err
	}
	var ops []store.Op
	err = coll.Find(ctx, store.Query{
		Filter: theirs, Sort: mql.Sort{{Path: "at"}}, Limit: n - maxKeptOfOwner + 1, Project: idOnly(),
	}, func(doc bson.Raw) error {
		id := doc.Lookup("_id")
		id.Value = slices.Clone(id.Value)
		ops = append(ops, store.Op{Kind: store.Delete, ID: id})
		return nil
	})
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = coll.Write(ctx, ops, false) // another feed may drop the same
	return err
}

// load gives what a feed has told until it was closed, up to the event of the token.
func (f *Feed) load(ctx context.Context, id bson.ObjectID) (*known, error) {
	doc, err := f.db.Collection(feedsName).Get(ctx, store.Name(id.Hex()))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, ErrFeedGone
	}
	if err != nil {
		return nil, err
	}
	same := mql.MustCompile(bson.D{{Key: "reader", Value: f.params.Reader}, {Key: "collection", Value: f.name}})
	at, ok := doc.Lookup("at").TimeOK()
	if !ok || !same.Match(doc) || f.s.now().Sub(at) > feedKept {
		return nil, ErrFeedGone
	}
	k := &known{present: unpack(doc.Lookup("present")), left: unpack(doc.Lookup("left"))}
	lost, _ := doc.Lookup("lost").AsInt64OK()
	k.lost = uint64(max(lost, 0))
	if !k.since(f.count) {
		return nil, ErrFeedGone
	}
	return k, nil
}

func pack(ids map[bson.ObjectID]uint64) []byte {
	out := make([]byte, 0, 20*len(ids))
	for id, n := range ids {
		out = binary.BigEndian.AppendUint64(append(out, id[:]...), n)
	}
	return out
}

func unpack(v bson.RawValue) map[bson.ObjectID]uint64 {
	_, data, _ := v.BinaryOK()
	out := make(map[bson.ObjectID]uint64, len(data)/20)
	for ; len(data) >= 20; data = data[20:] {
		out[bson.ObjectID(data[:12])] = binary.BigEndian.Uint64(data[12:])
	}
	return out
}
