package snapshot

import (
	"context"
	"time"

	"github.com/svcctl/svc/pkg/project"
)

// A snapshot takes a core, and on MongoDB one of the server's, too. While somebody writes to the project, who reads its records for a snapshot
// therefore rests after each paceWork for as long as that took: writers wait less, and the snapshot takes up to twice as long. A view of the
// store lasts for minutes only, so that it goes on without rests behind paceFor.
const (
	paceSteps = 16                    // records between two looks at the clock
	paceWork  = 2 * time.Millisecond  // work between two rests
	paceMost  = 10 * time.Millisecond // of one rest
	paceFor   = time.Minute
)

// pace is that of one making of a snapshot. Its zero value never rests.
type pace struct {
	busy  func() bool // somebody writes; nil: nobody ever does
	now   func() time.Time
	rest  func(ctx context.Context, d time.Duration)
	steps int
	began time.Time
	since time.Time // when the work began that is to be rested from
}

func (s *Snapshots) newPace(p *project.Project) pace {
	if s.o.Busy == nil {
		return pace{}
	}
	database := project.DatabaseName(p.Namespace)
	return startPace(func() bool { return s.o.Busy(database) }, time.Now, rest)
}

func startPace(busy func() bool, now func() time.Time, rest func(ctx context.Context, d time.Duration)) pace {
	return pace{busy: busy, now: now, rest: rest, began: now(), since: now()}
}

// step is called for each record.
func (p *pace) step(ctx context.Context) {
	if p.steps++; p.busy == nil || p.steps%paceSteps != 0 {
		return
	}
	now := p.now()
	worked := now.Sub(p.since)
	if worked < paceWork {
		return
	}
	if now.Sub(p.began) < paceFor && p.busy() {
		p.rest(ctx, min(worked, paceMost))
	}
	p.since = p.now()
}

// rest waits, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
