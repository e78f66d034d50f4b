package gate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// clock is both clocks of a machine, which a test sets.
type clock struct {
	mu  sync.Mutex
	now gate.Instant
}

func (c *clock) Now() gate.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(steady, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Steady += steady
	c.now.Wall = c.now.Wall.Add(wall)
}

// TestSight: what others want counts as known for a while, by both clocks. When either says otherwise, such as behind a pause of the machine in which one of them stood still,
// or when the wall clock was set, nothing that was under way is acknowledged, and nothing begins, before the others have been looked at.
func TestSight(t *testing.T) {
	t.Parallel()
	const lasts = 10 * time.Second
	for name, tt := range map[string]struct {
		steady, wall time.Duration // what passes while a write is under way
		waits        bool
	}{
		"a while":                         {9 * time.Second, 9 * time.Second, false},
		"too long":                        {lasts, lasts, true},
		"the steady clock stood still":    {time.Second, time.Minute, true},
		"the wall clock is set back":      {time.Second, -time.Hour, true},
		"the wall clock is set back some": {2 * time.Second, -time.Millisecond, true},
		"the wall clock is slow":          {9 * time.Second, time.Second, false},
		"set back by what has passed":     {lasts, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, c := gate.New(teststore.Memory(t)), &clock{now: gate.Instant{Wall: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}}
			g.Clock = c.Now
			for _, missed := range []bool{false, true} {
				g.See(c.Now(), lasts, false)
				begun, goOn, underWay, late := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
				go func() {
					underWay <- g.Database("a").Transact(t.Context(), func(context.Context, store.Tx) error {
						close(begun)
						<-goOn
						return nil
					})
				}()
				<-begun
				c.pass(tt.steady, tt.wall)
				close(goOn)
				go func() {
					_, err := g.Database("a").Collection("things").Count(t.Context(), nil, 0)
					late <- err
				}()
				if tt.waits {
					select {
					case err := <-underWay:
						t.Errorf("what was under way does not wait: %v", err)
					case err := <-late:
						t.Errorf("what comes does not wait: %v", err)
					case <-time.After(20 * time.Millisecond):
					}
					g.See(c.Now(), lasts, missed)
				}
				switch err := <-underWay; {
				case err == nil:
					if tt.waits && missed {
						t.Error("what others went on without is acknowledged")
					}
				case !tt.waits || !missed || errs.From(err).Code != gate.OutcomeUnknown:
					t.Errorf("what was under way: %v", err)
				}
				if err := <-late; err != nil {
					t.Errorf("what comes: %v", err)
				}
			}
		})
	}
}

// TestMachineClock: both of its clocks go on, and the wall clock is that of the machine.
func TestMachineClock(t *testing.T) {
	t.Parallel()
	before := gate.MachineClock()
	time.Sleep(2 * time.Millisecond)
	now := gate.MachineClock()
	if now.Steady-before.Steady < time.Millisecond || now.Wall.Sub(before.Wall) == 0 || time.Since(now.Wall).Abs() > time.Hour {
		t.Errorf("%+v, %+v", before, now)
	}
	if now.Within(time.Millisecond, before) || !now.Within(time.Hour, before) || before.Within(time.Hour, now) {
		t.Errorf("%+v, %+v", before, now)
	}
}
