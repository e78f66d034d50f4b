package records

import (
	"context"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/store"
)

// Caller is on whose behalf a script runs that is no hook: an action's caller, or nobody, for a job.
type Caller struct {
	Principal *access.Principal // nil: asUser is refused
	Request   *hooks.Request
	// Again, if set, finds out anew who is calling and whether they still may, for a run that may go on for long. Its
	// error refuses what the script does asUser.
	Again func(ctx context.Context) (*access.Principal, error)
	// Fence, if set, is called in each transaction in which the script writes, and has it fail when the run is no longer to
	// write. Writes that are in no transaction of the script's have one of their own then, one after the other.
	Fence func(ctx context.Context, tx store.Tx) error
}

// callerFresh is how long a script goes on with what was found out about its caller.
const callerFresh = 3 * time.Second

// caller is the Caller of one run, kept up to date.
type caller struct {
	Caller

	now     func() time.Time
	mu      sync.Mutex
	current *access.Principal // what Again gave last
	asked   time.Time         // when it did; zero: never, since Principal is from before the run, which may have waited
}

// principal gives who calls, with the rights that they have now.
func (c *caller) principal(ctx context.Context) (*access.Principal, error) {
	if c.Principal == nil {
		return nil, errNoUser
	}
	if c.Again == nil {
		return c.Principal, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if age := now.Sub(c.asked); age >= 0 && age <= callerFresh { // a clock that was set back makes nothing fresh
		return c.current, nil
	}
	who, err := c.Again(ctx)
	if err != nil {
		return nil, hooks.AsCaller(err)
	}
	c.current, c.asked = who, now
	return who, nil
}
