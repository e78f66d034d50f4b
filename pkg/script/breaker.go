package script

import (
	"sync"
	"time"
)

// The breaker of a program: after so many runaways in a row it rests, and then has one trial.
const (
	maxRunaways = 5
	rest        = 30 * time.Second
)

// maxApart is how many runs of a program go to a worker process after one that ran away by computing or by memory.
const maxApart = 50

// record is what the engine remembers of a program's runs.
type record struct {
	mu       sync.Mutex
	average  time.Duration // of computing, over about the last eight runs
	runaways int           // in a row
	apart    int           // runs that have yet to be in a worker process
	until    time.Time     // the program rests until then
	trial    bool          // the run that decides is under way
}

// State is what is known of a program's runs.
type State struct {
	Average   time.Duration // what a run computes
	Runaways  int           // runs in a row that took what was not theirs
	Suspended bool          // no run begins before Until
	Until     time.Time
}

// State tells how a program does.
func (p *Program) State(now time.Time) State {
	r := p.record
	r.mu.Lock()
	defer r.mu.Unlock()
	return State{Average: r.average, Runaways: r.runaways, Suspended: now.Before(r.until), Until: r.until}
}

// Fresh is the same program, of whose runs nothing is known yet.
func (p *Program) Fresh() *Program {
	fresh := *p
	fresh.record = &record{}
	return &fresh
}

// admit says whether a run may begin, and if not, when the next may.
func (r *record) admit(clock func() time.Time) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until.IsZero() { // as most often
		return 0, true
	}
	switch now := clock(); {
	case now.Before(r.until):
		return r.until.Sub(now), false
	case r.runaways < maxRunaways:
		return 0, true
	case r.trial:
		return time.Second, false
	}
	r.trial = true
	return 0, true
}

// lane says where a program's runs queue.
func (r *record) lane() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.average > slowAfter || r.apart > 0 {
		return slow
	}
	return fast
}

// isApart says whether the next run has to be in a worker process.
func (r *record) isApart() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.apart > 0
}

// slowed notes that a run computes for long: those that begin meanwhile queue where it belongs.
func (r *record) slowed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.average = max(r.average, 2*slowAfter)
}

// ran takes in how a run ended, and says whether the program is suspended from now on.
func (r *record) ran(clock func() time.Time, computed time.Duration, runaway, ended bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.average += (computed - r.average) / 8
	if computed > 8*slowAfter {
		r.average = max(r.average, 2*slowAfter)
	}
	r.trial = false
	if runaway && computed > slowAfter {
		r.apart = maxApart
	} else if ended {
		r.apart = max(0, r.apart-1)
	}
	switch {
	case runaway:
		r.runaways++
		if r.runaways >= maxRunaways {
			r.until = clock().Add(rest)
			return true
		}
	case ended:
		r.runaways = 0
	}
	return false
}
