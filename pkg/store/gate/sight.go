package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// sight is until when a process knows what others want. Behind that they may have gone on without it.
type sight struct {
	lost atomic.Int64 // the number of swaps when others had gone on without this process: which records they have replaced is not known

	mu    sync.Mutex
	at    Instant       // of the last look
	lasts time.Duration // how long it is good from then on; 0: for ever
	again chan struct{} // closed behind the next look; nil: nobody waits for that
}

// See is for who looks at other processes with which the store is shared. For a while from when a look has begun nothing of them is missed. Behind it, or when a clock was
// set, whoever uses records waits for the next call, and what was under way is not known to be good before that. missed says that others have gone on without this process:
// what has begun before is refused then, as if all databases had been replaced.
func (g *Gate) See(at Instant, lasts time.Duration, missed bool) {
	g.sight.mu.Lock()
	defer g.sight.mu.Unlock()
	if missed {
		g.sight.lost.Store(g.swaps.Add(1))
	}
	g.sight.at, g.sight.lasts = at, lasts
	if g.sight.again != nil {
		close(g.sight.again)
		g.sight.again = nil
	}
}

// OutcomeUnknown is the code of the error that says that a write may have been done.
const OutcomeUnknown = "outcome_unknown"

var (
	errBlind = &errs.Error{
		Kind: errs.Unavailable, Code: "instance_cut_off", RetryAfter: time.Second,
		Message: "this instance has not seen the others for a while, and can't tell whether they replace records: try again in a moment",
	}
	errMissed = &errs.Error{
		Kind: errs.Unavailable, Code: OutcomeUnknown, // without RetryAfter, which says that nothing was done
		Message: "this instance stood still until the others went on without it: see whether the write was done before you send it again",
	}
)

// blindTime is how long one waits for the next look at others. It takes as long when the store is away.
const blindTime = 10 * time.Second

// await waits until it is known what others want.
func (g *Gate) await(ctx context.Context) error {
	var patience <-chan time.Time
	for {
		again := g.sight.over(g.Clock)
		if again == nil {
			return nil
		}
		if patience == nil {
			timer := time.NewTimer(blindTime)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-again:
		case <-patience:
			return errBlind
		case <-ctx.Done():
			return store.Ended(ctx)
		}
	}
}

// over gives what to wait for when it is not known what others want; nil: it is.
func (s *sight) over(now Clock) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lasts == 0 || now().Within(s.lasts, s.at) {
		return nil
	}
	if s.again == nil {
		s.again = make(chan struct{})
	}
	return s.again
}
