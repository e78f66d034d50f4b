package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// State says how the index of a search stands.
type State string

// The states.
const (
	Ready      State = "ready"
	Building   State = "building"   // there is none yet: searches wait, or are told to come again
	Rebuilding State = "rebuilding" // the one before answers until the new one is made
	Stale      State = "stale"      // the one before answers: the config has changed, and autoRegenerate is off
)

// Queue is what a collection has to index yet.
type Queue struct {
	Pending   int       // records that wait, for their vectors, too
	InFlight  int       // records that are being indexed
	Failed    int       // records that could not be indexed as they are: a group refuses their text, or the script of a search fails
	Since     time.Time // how long the oldest one waits; zero: none does
	LastError error     // of the last try, or of a script; nil: it went well
	Searches  []SearchStatus
}

// SearchStatus is how one search stands.
type SearchStatus struct {
	Name    string
	Mode    search.Mode
	State   State
	Records int   // that can be found
	Disk    int64 // bytes, about
	Memory  int64 // bytes, about
	// Done and Total are records of the index that is being made; Total is about.
	Done, Total int64
	// Failed are the records for which its script fails.
	Failed int
	// Of mode vector: the group, how many records wait for their vector and have none because the group refuses their text, and
	// the error of the last try.
	Group            string
	Waiting, Refused int
	Failure          error
	// Offline is what searches of mode vector fail with for now: there are no vectors for words that are looked for; nil: there are.
	Offline error
}

// Queue says how the searches of a collection stand.
func (e *Engine) Queue(p *project.Project, c *project.Collection) Queue {
	t, err := e.tenant(p, false)
	if t == nil || err != nil {
		return Queue{}
	}
	s := t.shelf(p, c)
	if s == nil {
		return Queue{}
	}
	return s.queue()
}

func (s *shelf) queue() Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := Queue{Pending: len(s.dirty) + len(s.behind), InFlight: s.inFlight, LastError: s.lastError}
	if q.Pending+q.InFlight > 0 {
		q.Since = s.since
	}
	for name, one := range s.searches {
		x := SearchStatus{Name: name, Mode: one.config.Mode, State: one.state(), Group: one.config.Group}
		if one.live != nil {
			if stats, err := one.live.ix.Stats(); err == nil {
				x.Records, x.Disk, x.Memory = stats.Records, int64(stats.Disk), stats.Memory //nolint:gosec // no disk has as much
			}
		}
		if x.Mode == search.Vector {
			x.Offline = s.offline(one)
		}
		if one.next != nil {
			x.Done, x.Total = one.next.done.Load(), one.next.total.Load()
		}
		q.lacking(&x, one)
		q.Searches = append(q.Searches, x)
	}
	slices.SortFunc(q.Searches, func(a, b SearchStatus) int { return strings.Compare(a.Name, b.Name) })
	return q
}

// lacking takes in the records of a search that are in its index without their vector, or without the text of its script.
func (q *Queue) lacking(x *SearchStatus, one *searched) {
	for _, b := range []*built{one.live, one.next} {
		if b == nil {
			continue
		}
		waiting, refused, since, failed := b.standing.counts()
		x.Waiting, x.Refused = x.Waiting+waiting, x.Refused+refused
		if b == one.live {
			x.Records -= waiting + refused
		}
		if waiting > 0 && failed != nil {
			x.Failure, q.LastError = failed, cmp.Or(q.LastError, failed)
		}
		if waiting > 0 && (q.Since.IsZero() || since.Before(q.Since)) {
			q.Since = since
		}
	}
	q.Pending, q.Failed = q.Pending+x.Waiting, q.Failed+x.Refused
	var failure error
	if x.Failed, failure = one.failed(); one.live != nil {
		x.Records -= x.Failed
	}
	q.Failed, q.LastError = q.Failed+x.Failed, cmp.Or(q.LastError, failure)
}

// offline says why a search of mode vector gets no vectors for now; nil: it does.
func (s *shelf) offline(one *searched) error {
	group, err := s.t.e.o.Groups.Group(one.config.Group)
	if one.live != nil && one.live.state.Form.Mode == search.Vector {
		group, err = one.live.group()
	}
	if err != nil {
		return err
	}
	return group.Err()
}

// failed is for how many records the script of a search fails, and why for the last of them.
func (one *searched) failed() (int, error) {
	switch {
	case one.live != nil:
		return one.live.parking.count()
	case one.next != nil:
		return one.next.parking.count()
	}
	return 0, nil
}

func (one *searched) state() State {
	switch {
	case one.live == nil:
		return Building
	case one.next != nil:
		return Rebuilding
	case one.stale:
		return Stale
	}
	return Ready
}

// Progress is told how far the index of a search is; total is about.
type Progress func(collection, search string, done, total int64)

// Regenerate makes indexes anew while those of before answer: those of a search of a collection, of all of its searches for "", or of
// the whole project for no collection. It calls progress every now and then, until it is done here, and goes on without
// whoever asked for it. Other instances do the same when they serve the project the next time.
func (e *Engine) Regenerate(ctx context.Context, p *project.Project, c *project.Collection, name string, progress Progress) error {
	var keys []epochKey
	for stored, in := range searchedIn(p) {
		for _, s := range in.Searches {
			if (c == nil || in.Name == c.Name) && (name == "" || s.Name == name) && s.Mode.Indexed() {
				keys = append(keys, epochKey{stored, s.Name})
			}
		}
	}
	if len(keys) == 0 {
		return errs.New(errs.NotFound, "unknown_search", "there is no search with an index to make anew")
	}
	t, err := e.tenant(p, true)
	if err == nil {
		err = t.forgive(ctx)
	}
	if err == nil {
		err = t.raise(ctx, keys)
	}
	if err == nil {
		err = t.serve(p, false)
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for _, k := range keys {
		for b := t.making(k); b != nil; b = t.instead(k, b) {
			for made := false; !made; {
				select {
				case <-b.finished:
					made = true
				case <-tick.C:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				progress(b.s.name(), b.name.search, b.done.Load(), b.total.Load())
			}
		}
	}
	return e.ctx.Err()
}

// progressEvery is how often whoever waits for an index is told how far it is.
const progressEvery = 500 * time.Millisecond

// name is what the config calls the collection.
func (s *shelf) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.collection.Name
}
