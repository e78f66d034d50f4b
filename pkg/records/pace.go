package records

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Reads that go on for long take turns, so that a core is left for those that don't: on a machine whose cores are all busy, a
// read of one record waits for tens of milliseconds until it comes to one at all, and several times on its way. A read is
// long when it has looked at more than a few records and taken some time; it then has to have one of a few places, and gives
// it to the next after a while.
const (
	pacedSteps = 4                    // of 32 records each, that are anybody's
	pacedAfter = 2 * time.Millisecond // and so is this time
	pacedSlice = 5 * time.Millisecond // after which who waits is next
)

// An operating system lets a thread that works go on for 3 or 4 ms before another has the core. Within restFor after somebody
// has asked for something, a long read therefore rests after each restAfter for restTime, or a little longer: a timer's least.
const (
	restAfter = 500 * time.Microsecond
	restTime  = 100 * time.Microsecond
	restFor   = 100 * time.Millisecond
)

// longReads is how many long reads go on at once: one core is left for the others. svcd has twice as many processors as there
// are cores.
func longReads() int { return max(runtime.GOMAXPROCS(0)/2-1, 1) }

var errNoPlace = &errs.Error{
	Kind: errs.Throttled, Code: "too_many_queries", RetryAfter: time.Second,
	Message: "other queries are running that read many records: try again, or narrow the filter, or sort and filter by an indexed field",
}

// pacing is what the long reads of a service share.
type pacing struct {
	places    *turns
	after     time.Duration // pacedAfter
	restAfter time.Duration
	rest      func()
	asked     atomic.Int64 // when somebody last asked for anything, in nanoseconds since 1970
}

func newPacing() pacing {
	return pacing{places: newTurns(longReads()), after: pacedAfter, restAfter: restAfter, rest: func() { time.Sleep(restTime) }}
}

// pace is that of the reads of one request, which run one after the other.
type pace struct {
	*pacing
	who string

	steps  int
	began  time.Time
	had    time.Time // when it came to its place
	rested time.Time
	waited time.Duration
	back   func() // gives the place back; nil: there is none
}

// paced is withDeadline for reads that may be long, near as there. What is in a transaction goes on: others wait for that.
func (s *Service) paced(ctx context.Context, c *Call, near ...*Call) (context.Context, context.CancelFunc) {
	ctx, cancel := withDeadline(ctx, c, near...)
	if sessionOf(ctx, c.Project.Namespace) != nil {
		return ctx, cancel
	}
	p := &pace{pacing: &s.pacing, who: whose(c), began: time.Now()}
	return store.WithPace(ctx, p), func() {
		p.Leave()
		cancel()
	}
}

// Step lets others go first when it is their turn.
func (p *pace) Step(ctx context.Context) error {
	if p.steps++; p.steps <= pacedSteps {
		return nil
	}
	now := time.Now()
	switch {
	case p.back != nil && (now.Sub(p.had) < pacedSlice || !p.places.wanted()):
		p.restAt(now)
		return nil
	case p.back == nil && now.Sub(p.began) < p.after:
		return nil
	}
	p.Leave()
	back, err := p.places.take(ctx, p.who)
	p.had, p.rested = time.Now(), time.Now()
	p.waited += p.had.Sub(now)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTooSlow) && 2*p.waited > p.had.Sub(p.began) {
			return errNoPlace // its own work was the least of it
		}
		return err
	}
	p.back = back
	return nil
}

// restAt rests when it is time to, and others have asked since this read began.
func (p *pace) restAt(now time.Time) {
	if now.Sub(p.rested) < p.restAfter {
		return
	}
	if asked := p.asked.Load(); asked > p.began.UnixNano() && now.UnixNano()-asked < int64(restFor) {
		p.rest()
	}
	p.rested = time.Now()
}

// Leave gives the place back.
func (p *pace) Leave() {
	if p.back != nil {
		p.back()
		p.back = nil
	}
}
