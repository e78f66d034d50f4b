package engine

import (
	"context"
	"math"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/search/index"
)

// standingField is where an index of mode vector has which records have no vector, and why.
const standingField = math.MaxUint16 - 1

// What standingField has of such a record.
const (
	waitingTerm = "waiting"
	refusedTerm = "refused"
)

// standing is which records of an index have no vector.
type standing struct {
	mu      sync.Mutex
	waiting map[bson.ObjectID]bool // true: their vectors are kept, and they are about to be indexed once more
	idle    int                    // of waiting, those that are false
	refused map[bson.ObjectID]bool
	since   time.Time // that some have been waiting
	now     func() time.Time
	failed  error         // of the last try to get vectors; nil: it went well
	wake    func()        // whoever gets vectors; nil: nobody does yet
	change  chan struct{} // closed at each change
}

func newStanding(now func() time.Time) *standing {
	return &standing{
		now: now, waiting: map[bson.ObjectID]bool{}, refused: map[bson.ObjectID]bool{}, change: make(chan struct{}),
	}
}

// note takes in how records stand that were indexed.
func (s *standing) note(changes []index.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range changes {
		id := bson.ObjectID(changes[i].ID)
		s.forget(id)
		delete(s.refused, id)
		if changes[i].Gone || len(changes[i].Fields[standingField]) == 0 {
			continue
		}
		if changes[i].Fields[standingField][0].Term == refusedTerm {
			s.refused[id] = true
		} else {
			s.wait(id)
		}
	}
	s.changed()
}

// wait and forget need s.mu.
func (s *standing) wait(id bson.ObjectID) {
	s.forget(id)
	if len(s.waiting) == 0 {
		s.since = s.now()
	}
	s.waiting[id] = false
	s.idle++
}

func (s *standing) forget(id bson.ObjectID) {
	if indexing, ok := s.waiting[id]; ok && !indexing {
		s.idle--
	}
	delete(s.waiting, id)
}

// changed tells whoever waits. The caller holds s.mu.
func (s *standing) changed() {
	if s.idle > 0 && s.wake != nil {
		s.wake()
	}
	close(s.change)
	s.change = make(chan struct{})
}

// sample gives up to n records that wait for somebody to see to them.
func (s *standing) sample(n int) []bson.ObjectID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]bson.ObjectID, 0, min(n, s.idle))
	for id, indexing := range s.waiting {
		if len(out) == min(n, s.idle) {
			break
		}
		if !indexing {
			out = append(out, id)
		}
	}
	return out
}

// indexing notes that records are about to be indexed once more.
func (s *standing) indexing(ids []bson.ObjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if indexing, ok := s.waiting[id]; ok && !indexing {
			s.waiting[id] = true
			s.idle--
		}
	}
}

// counts gives how many records wait for a vector, and for how many there will be none, the error of the last try, and since when.
func (s *standing) counts() (waiting, refused int, since time.Time, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), len(s.refused), s.since, s.failed
}

// left gives how many records wait, and a channel that is closed when that changes.
func (s *standing) left() (waiting int, change <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.change
}

func (s *standing) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// restore finds out which records wait in an index that was there before.
func (b *built) restore(ctx context.Context) error {
	s := b.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	err := eachMarked(ctx, b.ix, standingField, []string{waitingTerm, refusedTerm}, s.wait)
	s.changed()
	return err
}
