package script

import (
	"sync"
	"time"
)

// slowAfter is when a script counts as slow: it queues in a lane of its own, and does not hold up short ones.
const slowAfter = 25 * time.Millisecond

// maxQueued is how many runs of one project may wait to begin.
const maxQueued = 100

// lanes bounds how many scripts compute at once. A run holds a place in one lane while it computes, and none while it
// waits for its Host. Projects take turns.
type lanes struct {
	mu   sync.Mutex
	lane [2]lane // fast, slow
}

const (
	fast = iota
	slow
)

type lane struct {
	places int
	taken  int
	queue  queue
}

func newLanes(parallel int) *lanes {
	return &lanes{lane: [2]lane{
		fast: {places: parallel, queue: newQueue()},
		slow: {places: max(1, parallel/2), queue: newQueue()},
	}}
}

// acquire waits for a place, until done, or until a time that is not zero. A run that begins is refused when too many of its
// project wait; one that goes on is not.
func (l *lanes) acquire(done <-chan struct{}, until time.Time, project string, which int, begins bool) (ok bool, why Reason) {
	l.mu.Lock()
	at := &l.lane[which]
	if at.taken < at.places && at.queue.empty() {
		at.taken++
		l.mu.Unlock()
		return true, ""
	}
	if begins && at.queue.length(project) >= maxQueued {
		l.mu.Unlock()
		return false, Busy
	}
	w := at.queue.push(project)
	l.mu.Unlock()
	var late <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.ready:
		return true, ""
	case <-done:
		why = Canceled
	case <-late:
		why = Timeout
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.ready: // it came at the same moment
		l.free(which)
	default:
		at.queue.remove(project, w)
	}
	return false, why
}

// tryAcquire takes a place if one is free.
func (l *lanes) tryAcquire(which int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := &l.lane[which]
	if at.taken >= at.places || !at.queue.empty() {
		return false
	}
	at.taken++
	return true
}

// release gives a place back.
func (l *lanes) release(which int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(which)
}

func (l *lanes) free(which int) {
	at := &l.lane[which]
	if at.taken <= at.places {
		if w := at.queue.pop(); w != nil {
			close(w.ready) // the place goes on to the next
			return
		}
	}
	at.taken--
}

// Lane is how many runs there are in a lane at a moment.
type Lane struct {
	Name      string // fast, for short scripts; slow, for those that compute for long
	Computing int    // runs that have a place
	Waiting   int    // runs that wait for one
}

// Lanes tells how many runs compute, and how many wait for their turn, in this order: fast, slow.
func (e *Engine) Lanes() []Lane {
	l := e.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Lane{{Name: "fast"}, {Name: "slow"}}
	for i := range out {
		out[i].Computing = l.lane[i].taken
		for _, of := range l.lane[i].queue.waiting {
			out[i].Waiting += len(of)
		}
	}
	return out
}

// maxOvertime is how many runs may be in the slow lane beyond its places. A script is met in the fast lane only until it
// is known to be slow: so many of them at the same moment do not hold up short ones.
const maxOvertime = 8

// slowDown moves a run that has computed for long to the slow lane, whose places it may be beyond.
func (l *lanes) slowDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lane[slow].taken >= l.lane[slow].places+maxOvertime {
		return false
	}
	l.lane[slow].taken++
	l.free(fast)
	return true
}

// waiter is a run in a queue.
type waiter struct{ ready chan struct{} }

// queue lets projects take turns.
type queue struct {
	turns   []string // projects that wait, in their order
	waiting map[string][]*waiter
}

func newQueue() queue { return queue{waiting: map[string][]*waiter{}} }

func (q *queue) empty() bool { return len(q.turns) == 0 }

func (q *queue) length(project string) int { return len(q.waiting[project]) }

func (q *queue) push(project string) *waiter {
	w := &waiter{ready: make(chan struct{})}
	if len(q.waiting[project]) == 0 {
		q.turns = append(q.turns, project)
	}
	q.waiting[project] = append(q.waiting[project], w)
	return w
}

func (q *queue) pop() *waiter {
	if len(q.turns) == 0 {
		return nil
	}
	project := q.turns[0]
	q.turns = q.turns[1:]
	w := q.waiting[project][0]
	if rest := q.waiting[project][1:]; len(rest) > 0 {
		q.waiting[project] = rest
		q.turns = append(q.turns, project)
	} else {
		delete(q.waiting, project)
	}
	return w
}

func (q *queue) remove(project string, w *waiter) {
	list := q.waiting[project]
	for i := range list {
		if list[i] != w {
			continue
		}
		list = append(list[:i:i], list[i+1:]...)
		if len(list) > 0 {
			q.waiting[project] = list
			return
		}
		delete(q.waiting, project)
		for t := range q.turns {
			if q.turns[t] == project {
				q.turns = append(q.turns[:t:t], q.turns[t+1:]...)
				return
			}
		}
	}
}
