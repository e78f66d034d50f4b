package due

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
)

// Report is what a Pass has found.
type Report struct {
	Profiles  int        // that are enabled
	Scheduled int        // of them, those that have a schedule for snapshots
	Checked   int        // of them, those that have one for checks or drills
	Tasks     []Standing // those that have a schedule, and what is to be said of Prune
	Snapshots []snapshot.Info
	Next      time.Time // when to call again; zero: there is nothing to wait for
	Folder    error     // why the folder of snapshots can't be used; it is among the errors of Pass, too
}

// Pass begins every run of a project that is due, and says when to call again. It can be called at any time, by any number of instances: a
// second call finds nothing to do. It goes on behind a task that fails. The first one for a project also removes what crashes left, and so does one behind a run that has failed.
//
// Of what takes and removes snapshots one goes on at a time; checks and drills are beside that, one at a time, too. They are done by an instance
// that has a snapshot of the profile.
func (d *Due) Pass(ctx context.Context, p *project.Project) (Report, error) {
	swept, err := d.sweep(ctx, p)
	report := Report{Folder: err}
	if !swept && err == nil { // somebody is at work, or was until a moment ago and is dead
		report.Next = d.now().Add(busyPause)
	}
	exclusive, reading := tasks(p)
	for _, profile := range p.Snapshots {
		if profile.Enabled() {
			report.Profiles++
		}
	}
	if report.Profiles == 0 && d.atRest(p) {
		return report, report.Folder
	}
	states, err := load(ctx, d.database(p))
	if err != nil {
		return report, errors.Join(report.Folder, err)
	}
	err = d.rest(ctx, p, states, slices.Concat(exclusive, reading))
	failures := []error{report.Folder, err}
	d.rested(p, report.Profiles == 0 && err == nil)
	if report.Profiles == 0 {
		return report, errors.Join(failures...)
	}
	if report.Snapshots, err = d.opts.Snapshots.List(ctx, p); err != nil {
		report.Folder = err
		failures = append(failures, err)
	}
	pruning, why := d.pruning(ctx, p, states, &report)
	failures = append(failures, why)
	for i, lane := range [][]*task{exclusive, reading} {
		if i == 1 && err != nil { // who has which snapshots is not known
			continue
		}
		failures = append(failures, d.lane(ctx, p, lane, states, i == 0 && pruning, &report))
	}
	seen := map[string]bool{}
	for _, t := range reading {
		seen[t.profile.Name] = true
	}
	report.Scheduled, report.Checked = len(exclusive), len(seen)
	return report, errors.Join(failures...)
}

// pruning tells how the tasks stand that retain.go begins, and whether one goes on.
func (d *Due) pruning(ctx context.Context, p *project.Project, states map[string]state, report *Report) (busy bool, err error) {
	var failures []error
	for name, s := range states {
		if s.Open == nil || !s.isPrune() {
			continue
		}
		if s.Open.Failed.IsZero() {
			if err := d.follow(ctx, p, &s); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", name, err))
				continue
			}
			busy = busy || s.isRunning()
		}
		if profile := find(p, s.pruned()); profile != nil && profile.Enabled() && profile.Config.Retention != nil {
			t := &task{operation.Prune, profile, nil}
			report.Tasks = append(report.Tasks, t.standing(&s, time.Time{}))
		}
	}
	return busy, errors.Join(failures...)
}

// lane looks at tasks that follow each other. It is busy if something else of them goes on.
func (d *Due) lane(ctx context.Context, p *project.Project, lane []*task, states map[string]state, busy bool, report *Report) error {
	var failures []error
	var waiting []*step
	for _, t := range lane {
		s := states[t.name()]
		s.Name = t.name()
		x := &step{d: d, p: p, task: t, state: &s, now: d.now()}
		if err := x.look(ctx); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.name(), err))
			continue
		}
		busy = busy || x.running
		waiting = append(waiting, x)
	}
	// Who has waited longest is first: none can keep another one out.
	slices.SortStableFunc(waiting, func(a, b *step) int { return a.due.Compare(b.due) })
	for _, x := range waiting {
		isDue := !x.due.IsZero() && !x.due.After(x.now) && !x.running
		able := x.task.kind == operation.Snapshot || slices.ContainsFunc(report.Snapshots, func(i snapshot.Info) bool { return i.Profile == x.task.profile.Name })
		if isDue && able && !busy {
			switch started, err := x.begin(ctx); {
			case err != nil:
				failures = append(failures, fmt.Errorf("%s: %w", x.task.name(), err))
			case started:
				busy = true
			}
		}
		standing := x.task.standing(x.state, x.due)
		if x.task.kind == operation.Drill && standing.Succeeded.IsZero() {
			var err error
			if standing.Succeeded, err = d.drilled(ctx, p, x.task.profile.Name); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", x.task.name(), err))
			}
		}
		report.Tasks = append(report.Tasks, standing)
		if next := x.due; !next.IsZero() && next.After(x.now) && (report.Next.IsZero() || next.Before(report.Next)) {
			report.Next = next
		}
	}
	return errors.Join(failures...)
}

// drilled is when a drill that somebody has started has gone well; zero: none has, as far as runs are kept.
func (d *Due) drilled(ctx context.Context, p *project.Project, profile string) (time.Time, error) {
	page, err := d.opts.Runs.Runs(ctx, p, operation.Query{Kinds: []operation.Kind{operation.Drill}, Name: profile, Status: operation.Succeeded, Limit: 1, NoInput: true})
	if err != nil || len(page.Items) == 0 {
		return time.Time{}, err
	}
	return page.Items[0].FinishedAt, nil
}

func (t *task) standing(s *state, next time.Time) Standing {
	out := Standing{Kind: t.kind, Profile: t.profile.Name, Next: next, Succeeded: s.Succeeded}
	if s.Open != nil {
		out.Running, out.Code, out.Why = s.Open.Failed.IsZero(), s.Open.Code, s.Open.Why
	}
	return out
}

// atRest says that nothing is done for a project by itself, as most have it, and that its tasks know.
func (d *Due) atRest(p *project.Project) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resting[p.Namespace]
}

func (d *Due) rested(p *project.Project, resting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resting[p.Namespace] = resting
}

// rest has the tasks that are not there (any more) begin anew should they come (again): what they would have done meanwhile is no loss.
func (d *Due) rest(ctx context.Context, p *project.Project, states map[string]state, there []*task) error {
	var failures []error
	for name, s := range states {
		if s.Schedule == "" || slices.ContainsFunc(there, func(t *task) bool { return t.name() == name }) {
			continue
		}
		d.unfollow(p, name)
		s.Schedule = ""
		if err := s.write(ctx, d.database(p).Collection(collectionName)); err != nil && !errors.Is(err, store.ErrStale) {
			failures = append(failures, err)
		}
		states[name] = s
	}
	return errors.Join(failures...)
}

// sweep removes what crashes left, once for each project that is served, and again when a run has failed.
func (d *Due) sweep(ctx context.Context, p *project.Project) (swept bool, err error) {
	d.mu.Lock()
	done := d.swept[p.Namespace]
	d.mu.Unlock()
	if done {
		return true, nil
	}
	err = d.opts.Snapshots.Sweep(ctx, p)
	switch {
	case errors.Is(err, snapshot.ErrBusy): // it is tried again
		return false, nil
	case errors.Is(err, snapshot.ErrNoFolder): // there is nothing
		return true, nil
	case err != nil:
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept[p.Namespace] = true
	return true, nil
}

// Forget lets go of what is known of a namespace that is served no more.
func (d *Due) Forget(namespace string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.swept, namespace)
	delete(d.resting, namespace)
	for key := range d.followed {
		if key.namespace == namespace {
			delete(d.followed, key)
		}
	}
	d.metrics.forget(namespace, func(string) bool { return false })
}

func find(p *project.Project, profile string) *project.SnapshotProfile {
	for _, s := range snapshot.Profiles(p) {
		if s.Name == profile {
			return s
		}
	}
	return nil
}
