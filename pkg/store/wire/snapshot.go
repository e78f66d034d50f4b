package wire

import (
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

const (
	maxSnapshots = 64
	// snapshotTime is how long one can be read; views last no longer.
	snapshotTime = 5 * time.Minute
)

// snapshots are the views that clients have read with the read concern "snapshot", by the time that they were told.
type snapshots struct {
	mu  sync.Mutex
	all []snapshot // the oldest first
}

type snapshot struct {
	db     string
	at     bson.Timestamp
	opened time.Time
	view   store.View
}

// add keeps a view, in place of the oldest where there are many.
func (s *snapshots) add(n snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, n)
	if len(s.all) > maxSnapshots {
		_ = s.all[0].view.Close() // it only frees
		s.all = slices.Delete(s.all, 0, 1)
	}
}

func (s *snapshots) find(db string, at bson.Timestamp) store.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.all {
		if n.db == db && n.at.Equal(at) {
			return n.view
		}
	}
	return nil
}

func (s *snapshots) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.all {
		_ = n.view.Close() // it only frees
	}
	s.all = nil
}

// expire closes those that were opened before.
func (s *snapshots) expire(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(n snapshot) bool {
		old := n.opened.Before(before)
		if old {
			_ = n.view.Close() // it only frees
		}
		return old
	})
}

// snapshotOf is reader for reads that may ask for a state that others are to be read in, too. extra is for the answer, so
// that the client can ask for the same state again.
func (k *call) snapshotOf(db store.Database, coll string) (r store.Reader, extra bson.D, err error) {
	concern := k.args.document("readConcern")
	if k.tx != nil || k.readLevel() != "snapshot" {
		return k.reader(db, coll), nil, nil
	}
	if t, i, ok := concern.Lookup("atClusterTime").TimestampOK(); ok {
		at := bson.Timestamp{T: t, I: i}
		view := k.server.snapshots.find(k.db, at)
		if view == nil {
			return nil, nil, fail(codeSnapshotTooOld, "there is no snapshot of this time and database any more, or never was: they last 5 minutes")
		}
		return view.Collection(coll), bson.D{{Key: "atClusterTime", Value: at}}, nil
	}
	view, err := db.View(k.ctx)
	if err != nil {
		return nil, nil, err
	}
	n := snapshot{db: k.db, at: k.server.clock.next(), opened: k.server.opts.Now(), view: view}
	k.server.snapshots.add(n)
	return view.Collection(coll), bson.D{{Key: "atClusterTime", Value: n.at}}, nil
}

// withCursorFields adds fields to the cursor of a reply.
func withCursorFields(reply, extra bson.D) bson.D {
	if len(reply) > 0 && len(extra) > 0 {
		if c, ok := reply[0].Value.(bson.D); ok {
			c = append(c, extra...)
			reply[0].Value = c
		}
	}
	return reply
}
