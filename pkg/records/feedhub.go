package records

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/store"
)

// What waits for a reader of a hub. Who has more waiting is waited for a little, and reads the store's feed by themselves then.
const (
	maxQueued      = 256
	maxQueuedBytes = 1 << 20
	hubPatience    = time.Second
)

// maxCatchUps is how many feeds read the store's feed by themselves at once: each has a connection to the database.
const maxCatchUps = 32

// errBehind is for who is not told of everything any more by a hub.
var errBehind = errors.New("behind the hub")

// hubs has all feeds of a collection share one reading of the store's feed: the cost of a write does not grow with those who
// follow it, nor does the number of connections to the database.
type hubs struct {
	mu sync.Mutex
	of map[hubKey]*hub

	catchUps *turns
}

type hubKey struct{ database, collection string }

// hub reads the store's feed of a collection for as long as it has readers. The last one to leave waits for its end.
type hub struct {
	hubs   *hubs
	key    hubKey
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	readers map[*hubReader]bool
}

// hubReader is told what a hub reads.
type hubReader struct {
	hub  *hub
	wake chan struct{} // there is something to take
	room chan struct{} // something was taken

	mu    sync.Mutex
	queue []store.Event // those without a Kind say that there was nothing else up to their position
	size  int
	live  bool  // it takes what there is, so that it is worth waiting for
	err   error // errBehind, or why the hub has ended
}

// join makes a reader of a collection's hub, which is told of all changes from now on. A hub that is new begins behind after.
func (h *hubs) join(ctx context.Context, db store.Database, key hubKey, after store.Position) *hubReader {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.of[key]
	if one == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one = &hub{hubs: h, key: key, cancel: cancel, done: make(chan struct{}), readers: map[*hubReader]bool{}}
		h.of[key] = one
		go one.run(ctx, db, after)
	}
	r := &hubReader{hub: one, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.readers[r] = true
	return r
}

// drop forgets a hub, under h.mu, unless another one has come in its place.
func (h *hubs) drop(one *hub) {
	if h.of[one.key] == one {
		delete(h.of, one.key)
	}
}

func (h *hub) run(ctx context.Context, db store.Database, after store.Position) {
	defer close(h.done)
	err := db.Watch(ctx, store.Watch{After: after, Collections: []string{h.key.collection}, Documents: true, OnIdle: func(p store.Position) error {
		h.tell(ctx, store.Event{Position: p})
		return nil
	}}, func(e store.Event) error {
		h.tell(ctx, e)
		return nil
	})
	h.hubs.mu.Lock()
	h.hubs.drop(h)
	h.hubs.mu.Unlock()
	for _, r := range h.all() {
		r.end(err)
	}
}

func (h *hub) all() []*hubReader {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.readers))
}

// tell tells all readers. Those who have too much waiting are waited for, for a short time together.
func (h *hub) tell(ctx context.Context, e store.Event) {
	var full []*hubReader
	for _, r := range h.all() {
		if !r.push(e) {
			full = append(full, r)
		}
	}
	if len(full) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	for _, r := range full {
		for !r.push(e) {
			select {
			case <-r.room:
			case <-ctx.Done():
				r.end(errBehind)
			}
		}
	}
}

// push is false if there is no room for an event.
func (r *hubReader) push(e store.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.queue) - 1
	switch full := last+1 >= maxQueued || last >= 0 && r.size+len(e.Doc) > maxQueuedBytes; {
	case r.err != nil:
		return true
	case e.Kind == 0 && last >= 0 && r.queue[last].Kind == 0:
		r.queue[last] = e
		return true
	case full && e.Kind == 0: // it only says how far it is
		return true
	case full && !r.live:
		r.err = errBehind
		return true
	case full:
		return false
	}
	r.queue = append(r.queue, e)
	r.size += len(e.Doc)
	signal(r.wake)
	return true
}

// end has the reader be told of nothing more.
func (r *hubReader) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	signal(r.wake)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take waits for events, and gives all there are. Behind the last one comes the error.
func (r *hubReader) take(ctx context.Context) ([]store.Event, error) {
	for {
		r.mu.Lock()
		events, err := r.queue, r.err
		r.queue, r.size, r.live = nil, 0, true
		r.mu.Unlock()
		signal(r.room)
		if len(events) > 0 || err != nil {
			if len(events) > 0 {
				err = nil
			}
			return events, err
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil, store.Ended(ctx)
		}
	}
}

// skip takes out what comes up to the last of some events that the reader knows already. Of one that is told nothing more it
// takes out all: they have to read anew from where they are, and what waits may be far behind that.
func (r *hubReader) skip(known map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		r.queue = nil
		return
	}
	for i, e := range slices.Backward(r.queue) {
		if e.Kind != 0 && known[string(e.Position)] {
			r.queue = r.queue[i+1:]
			return
		}
	}
}

// leave ends the reader, and the hub with the last one.
func (r *hubReader) leave() {
	r.end(errBehind)
	signal(r.room)
	h := r.hub
	h.hubs.mu.Lock()
	h.mu.Lock()
	delete(h.readers, r)
	last := len(h.readers) == 0
	if last {
		h.hubs.drop(h)
	}
	h.mu.Unlock()
	h.hubs.mu.Unlock()
	if last {
		h.cancel()
		<-h.done
	}
}
