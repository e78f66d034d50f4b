package system

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Events tell what the controllers did with a project, and why: the latest of them, in one document of the store, so that
// whichever instance is asked knows them all. One that comes again is counted, not repeated.
type Events struct {
	db   store.Database
	coll store.Collection
	now  func() time.Time
}

const (
	// KeptEvents is how many events of a project are kept.
	KeptEvents = 100
	// maxEventMessage bounds a message, in bytes.
	maxEventMessage = 1 << 10
)

// The types of event, as Kubernetes has them.
const (
	EventNormal  = "Normal"
	EventWarning = "Warning"
)

// Note is what is to be told.
type Note struct {
	Concern    string // what it is about, such as the indexes of a project
	Type       string // EventNormal or EventWarning
	Reason     string // a stable word
	Message    string // for people
	Object     string // such as "job/cleanup"; "": the project
	Generation int64  // that was looked at; 0: none

	// Happened: something has happened, and is told each time. Otherwise this is how the concern stands, as several
	// instances find at their time, and told only when it is another state than the one before.
	Happened bool
	// Once: it is not told again while it is remembered.
	Once bool
	// Recovery: it is told only behind another state of its concern, which was found before.
	Recovery bool
	// At is when it was found, which may be long before it is told; zero: now.
	At time.Time
}

// Event is what was told.
type Event struct {
	ID         int64     `bson:"id"` // grows each time that it is told
	Concern    string    `bson:"concern"`
	Type       string    `bson:"type"`
	Reason     string    `bson:"reason"`
	Message    string    `bson:"message"`
	Object     string    `bson:"object,omitempty"`
	Generation int64     `bson:"generation,omitempty"`
	Count      int64     `bson:"count"`
	FirstSeen  time.Time `bson:"firstSeen"`
	LastSeen   time.Time `bson:"lastSeen"`
}

// eventRing has the events of a project, in the order of their ids.
type eventRing struct {
	Project string  `bson:"_id"`
	Rev     int64   `bson:"_rev"`
	Last    int64   `bson:"last"` // id
	Items   []Event `bson:"items"`
}

// Append tells of notes, in one write, or in none where nothing is new.
func (e *Events) Append(ctx context.Context, projectID string, notes ...Note) error {
	return retry(ctx, func() error {
		ring, err := get[eventRing](ctx, e.coll, store.Name(projectID))
		missing := errors.Is(err, errs.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		ring.Project = projectID
		changed := false
		for _, n := range notes {
			changed = ring.add(n, e.now()) || changed
		}
		if !changed {
			return nil
		}
		rev := ring.Rev
		ring.Rev++
		if missing {
			if err = insert(ctx, e.coll, ring); isDuplicate(err) {
				return store.ErrStale
			}
			return err
		}
		op, err := replaceOp(ring, rev)
		if err != nil {
			return err
		}
		if err = store.WriteAll(ctx, e.coll, op); errors.Is(err, errs.ErrNotFound) {
			return nil // the registration is gone
		}
		return err
	})
}

// add takes a note, unless it tells nothing new.
func (r *eventRing) add(n Note, now time.Time) bool {
	if n.At.IsZero() {
		n.At = now
	}
	if len(n.Message) > maxEventMessage {
		n.Message = strings.ToValidUTF8(n.Message[:maxEventMessage-len("…")], "") + "…" // no half of a character
	}
	same := func(e Event) bool {
		return e.Concern == n.Concern && e.Type == n.Type && e.Reason == n.Reason && e.Message == n.Message && e.Object == n.Object
	}
	at := slices.IndexFunc(r.Items, same)
	if !n.Happened {
		latest := Event{}
		for _, e := range r.Items {
			if e.Concern == n.Concern {
				latest = e
			}
		}
		switch {
		case n.Recovery && (latest.ID == 0 || n.At.Before(latest.LastSeen)), latest.ID != 0 && same(latest), n.Generation < latest.Generation, n.Once && at >= 0:
			return false
		}
	}
	r.Last++
	next := Event{
		ID: r.Last, Concern: n.Concern, Type: n.Type, Reason: n.Reason, Message: n.Message, Object: n.Object,
		Generation: n.Generation, Count: 1, FirstSeen: n.At, LastSeen: n.At,
	}
	if at >= 0 {
		next.Count, next.FirstSeen = r.Items[at].Count+1, r.Items[at].FirstSeen
		r.Items = slices.Delete(r.Items, at, at+1)
	}
	r.Items = append(r.Items, next)
	if over := len(r.Items) - KeptEvents; over > 0 {
		r.Items = slices.Delete(r.Items, 0, over)
	}
	return true
}

// List gives the events of a project, the oldest first.
func (e *Events) List(ctx context.Context, projectID string) ([]Event, error) {
	ring, err := get[eventRing](ctx, e.coll, store.Name(projectID))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil
	}
	return ring.Items, err
}

// Follow calls fn with the events of a project behind an id, those that there are and those that come, until ctx ends or fn
// fails.
func (e *Events) Follow(ctx context.Context, projectID string, after int64, fn func(Event) error) error {
	from, err := e.db.Position(ctx)
	if err != nil {
		return err
	}
	read := func() error {
		items, err := e.List(ctx, projectID)
		for _, item := range items {
			if item.ID <= after {
				continue
			}
			if err := fn(item); err != nil {
				return err
			}
			after = item.ID
		}
		return err
	}
	if err := read(); err != nil {
		return err
	}
	return e.db.Watch(ctx, store.Watch{After: from, Collections: []string{eventsName}}, func(change store.Event) error {
		if id, ok := change.ID.StringValueOK(); !ok || id != projectID {
			return nil
		}
		return read()
	})
}

// Remove forgets the events of a project whose registration is gone.
func (e *Events) Remove(ctx context.Context, projectID string) error {
	return drop(ctx, e.coll, projectID)
}
