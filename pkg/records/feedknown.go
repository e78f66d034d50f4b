package records

import (
	"context"
	"encoding/binary"
	"errors"
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
	lateTold = 1000      // events that a reader may have missed of those that were sent
)

// known is what the reader of a feed has in sight: ids, with the number of the event that told of each.
type known struct {
	present map[bson.ObjectID]uint64
	left    map[bson.ObjectID]uint64 // what went out of sight lately: it comes back if the reader has not been told
}

func newKnown() *known {
	return &known{present: map[bson.ObjectID]uint64{}, left: map[bson.ObjectID]uint64{}}
}

// note says that event n told of a record.
func (k *known) note(id bson.ObjectID, seen bool, n uint64) {
	if seen {
		if _, had := k.present[id]; !had {
			k.present[id] = n
		}
		delete(k.left, id)
		return
	}
	delete(k.present, id)
	k.left[id] = n
	if len(k.left) > 2*lateTold {
		for id, at := range k.left {
			if at+lateTold < n {
				delete(k.left, id)
			}
		}
	}
}

// since takes back what events behind n have told: they did not arrive.
func (k *known) since(n uint64) {
	for id, at := range k.present {
		if at > n {
			delete(k.present, id)
		}
	}
	for id, at := range k.left {
		if at > n {
			k.present[id] = n
		}
	}
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
	}()
	if f.known == nil {
		return nil
	}
	coll := f.db.Collection(feedsName)
	err := coll.CreateIndex(ctx, store.Index{Name: "at", Keys: []store.IndexKey{{Path: "at"}}, ExpireAfter: feedKept})
	if err != nil {
		return err
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: f.id.Hex()},
		{Key: "reader", Value: f.params.Reader},
		{Key: "collection", Value: f.name},
		{Key: "at", Value: f.s.now()},
		{Key: "present", Value: pack(f.known.present)},
		{Key: "left", Value: pack(f.known.left)},
	})
	if err != nil {
		return errs.Wrap(err, "keep what a feed has told")
	}
	return store.WriteAll(ctx, coll, store.Op{Kind: store.Insert, Doc: doc})
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
	k.since(f.count)
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
