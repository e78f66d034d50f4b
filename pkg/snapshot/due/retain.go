package due

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

// skippedPause is when it is tried again to remove what could not be removed, since somebody read it.
const skippedPause = 10 * time.Minute

// Retain begins to remove what the retention of the profiles that are enabled, and of those of the service, does not keep, one profile at a time, and says when to call
// again; zero: not before something changes. It also measures the snapshots that there are. Each instance removes what it has.
func (d *Due) Retain(ctx context.Context, p *project.Project) (next time.Time, err error) {
	all, err := d.opts.Snapshots.List(ctx, p)
	if errors.Is(err, snapshot.ErrNoFolder) { // which Pass tells, if it matters
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if len(p.Snapshots) == 0 && len(all) == 0 { // as most have it
		d.metrics.measure(p, nil, nil)
		return time.Time{}, nil
	}
	states, err := load(ctx, d.database(p))
	if err != nil {
		return time.Time{}, err
	}
	d.metrics.measure(p, all, states)
	var failures []error
	busy := false
	for name, s := range states {
		if s.isExclusive() && s.isRunning() {
			failures = append(failures, d.follow(ctx, p, &s))
			states[name] = s
			busy = busy || s.isRunning()
		}
	}
	for _, profile := range snapshot.Profiles(p) {
		if !profile.Enabled() || profile.Config.Retention == nil || !slices.ContainsFunc(all, func(i snapshot.Info) bool { return i.Profile == profile.Name }) {
			continue
		}
		t := &task{operation.Prune, profile, nil}
		s := states[t.name()]
		s.Name = t.name()
		at, err := d.retain(ctx, p, t, &s, busy)
		busy = busy || s.isRunning()
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.name(), err))
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, errors.Join(failures...)
}

// retain begins one Prune, if there is something to remove, and nobody is busy with it or with taking snapshots, after which Retain is called
// again.
func (d *Due) retain(ctx context.Context, p *project.Project, t *task, s *state, busy bool) (next time.Time, err error) {
	if busy {
		return d.now().Add(busyPause), nil
	}
	plan, err := d.opts.Snapshots.Prune(ctx, p, t.profile.Name, snapshot.PolicyOf(p, t.profile.Name), snapshot.PruneOptions{DryRun: true})
	if err != nil {
		return time.Time{}, err
	}
	var wanted []string
	for _, decision := range plan.Decisions {
		if !decision.Keep {
			wanted = append(wanted, decision.ID)
		}
	}
	now := d.now()
	open := attempt{Slot: now, Tries: 1}
	switch again := s.Succeeded.Add(skippedPause); {
	case len(wanted) == 0:
		return time.Time{}, d.settle(ctx, p, s)
	case s.Open != nil && s.Open.again(now).After(now):
		return s.Open.again(now), nil
	case s.Open != nil:
		open = attempt{Slot: s.Open.Slot, Tries: s.Open.Tries + 1, Code: s.Open.Code, Why: s.Open.Why}
	case again.After(now) && !isAhead(s.Succeeded, now) && !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(s.Wanted, id) }):
		return again, nil // they were in use
	}
	s.Open, s.Wanted = &open, wanted
	_, err = d.start(ctx, p, s, runs.Start{Kind: t.kind, Profile: t.profile.Name, Slot: open.Slot})
	if again, ok := waits(err, now); ok {
		return again, nil
	}
	return time.Time{}, err
}

// settle ends an attempt that has failed, when there is nothing left to remove.
func (d *Due) settle(ctx context.Context, p *project.Project, s *state) error {
	if s.Open == nil {
		return nil
	}
	s.Open = nil
	x := &step{d: d, p: p, state: s}
	return x.write(ctx)
}

func (s *state) isPrune() bool { return strings.HasPrefix(s.Name, string(operation.Prune)+"/") }

// isExclusive says that it is of a task that takes or removes snapshots.
func (s *state) isExclusive() bool {
	return s.isPrune() || strings.HasPrefix(s.Name, string(operation.Snapshot)+"/")
}

// pruned is the profile of the state of a Prune.
func (s *state) pruned() string { return strings.TrimPrefix(s.Name, string(operation.Prune)+"/") }
