package engine

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/search/index"
)

// A record for which the script of a search fails is in its index without text, by a term that says so: that is how it is known again
// when the index is opened the next time. It is tried again after a while, and then after longer ones. What fails still is
// parked until it is written, or the index is made anew.

// parkedField is where an index has which records are without the text of a script, by parkedTerm.
const (
	parkedField = math.MaxUint16 - 2
	parkedTerm  = "parked"
)

// retries are the times after which a record is tried again whose script failed, if the options say nothing. They are longer together
// than a script rests that ran away.
var retries = []time.Duration{time.Second, 10 * time.Second, time.Minute} //nolint:gochecknoglobals // never written

// parking has the records of an index for which its script has failed.
type parking struct {
	mu      sync.Mutex
	records map[bson.ObjectID]parked
	last    error
	some    chan struct{} // has something when there is more to try again
}

// parked is a record for which a script has failed.
type parked struct {
	version int64 // of the record: another one begins anew
	tries   int
	next    time.Time // when it is tried again; zero: not by itself
}

func newParking() *parking {
	return &parking{records: map[bson.ObjectID]parked{}, some: make(chan struct{}, 1)}
}

// park adds to a change of an index that the script failed.
func park(c *index.Change) {
	c.Fields = map[index.Field][]index.Token{parkedField: {{Term: parkedTerm}}}
}

// note takes in what a script has said of records that were taken in.
func (p *parking) note(changes []index.Change, said map[bson.ObjectID]saying, now time.Time, after []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range changes {
		id := bson.ObjectID(changes[i].ID)
		err := said[id].failed
		if err == nil {
			delete(p.records, id)
			continue
		}
		r := p.records[id]
		if r.version != changes[i].Rev {
			r = parked{version: changes[i].Rev}
		}
		if wait := errs.From(err).RetryAfter; wait > 0 { // which is no fault of its own
			r.next = now.Add(wait)
		} else if r.tries++; r.tries <= len(after) {
			r.next = now.Add(after[r.tries-1])
		} else {
			r.next = time.Time{}
		}
		p.records[id], p.last = r, err
		select {
		case p.some <- struct{}{}:
		default:
		}
	}
}

// count is how many there are, and how the last failed.
func (p *parking) count() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.records) == 0 {
		return 0, nil
	}
	return len(p.records), p.last
}

// due gives some of those whose time has come, and else how long it is until then; 0: none is tried again.
func (p *parking) due(now time.Time) (ids []bson.ObjectID, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, r := range p.records {
		switch left := r.next.Sub(now); {
		case r.next.IsZero():
		case left <= 0:
			if ids = append(ids, id); len(ids) == chunk {
				return ids, 0
			}
		case wait == 0 || left < wait:
			wait = left
		}
	}
	return ids, wait
}

// restore finds out which records were parked when the index was there before. They are tried again.
func (p *parking) restore(ctx context.Context, ix *index.Index, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return eachMarked(ctx, ix, parkedField, []string{parkedTerm}, func(id bson.ObjectID) { p.records[id] = parked{next: now} })
}

// eachMarked calls fn for the records that have one of the terms in a field of the engine's own.
func eachMarked(ctx context.Context, ix *index.Index, field index.Field, terms []string, fn func(id bson.ObjectID)) error {
	view, err := ix.View()
	if err != nil {
		return err
	}
	found, err := view.Search(ctx, index.Query{Groups: []index.Group{{Leaves: []index.Leaf{{Field: field, Terms: terms}}}}})
	if err == nil {
		for h := range found.All() {
			fn(bson.ObjectID(h.ID))
		}
		found.Release()
	}
	return errors.Join(err, view.Close())
}

// retry has records be tried again when their time comes, some at a time, until the index is gone.
func (b *built) retry() {
	now := b.s.t.e.o.Now
	for b.ctx.Err() == nil {
		ids, wait := b.parking.due(now())
		if len(ids) > 0 {
			select {
			case <-b.s.again(ids):
			case <-b.ctx.Done():
			}
			continue
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-b.parking.some:
		case <-b.ctx.Done():
		}
	}
}
