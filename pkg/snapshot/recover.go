package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// Recover ends a restore of p that a crash has left, before p is served: one that was decided is done, another one is undone. Where there
// is none it takes one read. It waits for another process that is about to do a restore that is decided.
func (s *Snapshots) Recover(ctx context.Context, p *project.Project) error {
	for {
		j, err := s.readJournal(ctx, p)
		if err != nil || j == nil && !s.isStuck(p) {
			return err
		}
		err = s.alone(ctx, p.Namespace, func(ctx context.Context) error { return s.recover(ctx, p) })
		switch {
		case !errors.Is(err, ErrBusy):
			return ended(ctx, err)
		case j == nil || j.Step != stepDecided: // it goes on elsewhere, and what is served is as before
			return nil
		}
		if !store.Wait(ctx, recoverPause) {
			return ended(ctx, ctx.Err())
		}
	}
}

// RecoverAbandoned is Recover for a restore of which another process does not show any more. While that one still holds what makes it alone,
// it may be only slow, and go on: then this is ErrBusy, and what keeps others from writing has to stay. Where what is noted is a restore of this process that
// goes on, that has ended all before it, and waits for what they have left to be taken away.
func (s *Snapshots) RecoverAbandoned(ctx context.Context, p *project.Project) error {
	j, err := s.readJournal(ctx, p)
	if err != nil || j == nil && !s.isStuck(p) {
		return err
	}
	err = s.alone(ctx, p.Namespace, func(ctx context.Context) error { return s.recover(ctx, p) })
	if errors.Is(err, ErrBusy) && j != nil && s.isOurs(p, j.Restore) {
		return nil
	}
	return ended(ctx, err)
}

// WatchOthers looks at what makes another process alone that restores, for RecoverAbandoned: for how long that one has been silent is known from looks before only. It is one read,
// and to be called again and again while such a restore goes on.
func (s *Snapshots) WatchOthers(ctx context.Context, namespace string) error {
	s.mu.Lock()
	leases := s.leasesOf(namespace)
	s.mu.Unlock()
	if leases == nil {
		return nil
	}
	return leases.Watch(ctx, leaseName)
}

// setOurs names the restore of this process that goes on; "": none does.
func (s *Snapshots) setOurs(p *project.Project, restore string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours[p.Namespace] = restore
}

// isOurs says that what is noted of a restore is of one of this process that goes on. Another process may have begun one since: it may have taken this one for dead.
func (s *Snapshots) isOurs(p *project.Project, restore string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours[p.Namespace] == restore
}

const recoverPause = time.Second

// Run goes on with restores that were decided and could not be done, such as for a full disk, until ctx ends. served lists the projects
// that there are.
func (s *Snapshots) Run(ctx context.Context, served func() []*project.Project) {
	for store.Wait(ctx, recoverPause) {
		for _, p := range served() {
			if !s.isStuck(p) {
				continue
			}
			if err := s.Recover(ctx, p); err != nil && ctx.Err() == nil {
				s.o.Logger.WarnContext(ctx, "a restore can't be ended, so the project's records can't be reached; that is tried again", "namespace", p.Namespace, "error", err)
			}
		}
	}
}

// recover is Recover by somebody who is alone.
func (s *Snapshots) recover(ctx context.Context, p *project.Project) error {
	j, err := s.readJournal(ctx, p)
	if err != nil {
		return err
	}
	if j != nil {
		forward, err := s.settle(ctx, p, j, true)
		if err != nil {
			return err
		}
		s.o.Logger.InfoContext(ctx, "ended a restore that was left", "namespace", p.Namespace, "restored", forward)
		if s.o.Left != nil {
			s.o.Left(ctx, j.ended(p))
		}
		if forward {
			s.replaced(p)
		}
	} else if s.isStuck(p) { // another process has ended it, and may have done it
		s.replaced(p)
	}
	s.unstick(p)
	return nil
}

// settle ends a restore as its step says, which another process has left, or this one by a failure, or which goes on here. forward says that it was done.
func (s *Snapshots) settle(ctx context.Context, p *project.Project, j *journal, left bool) (forward bool, err error) {
	if j.Step == stepDecided {
		if err := s.finish(ctx, p, j); err != nil {
			return true, err
		}
		return true, s.conclude(ctx, p, j, left)
	}
	if j.Step == stepLoading {
		if err := s.step(ctx, p, j, stepUndoing); err != nil {
			return false, err
		}
	}
	if err := s.undo(ctx, p, j); err != nil {
		return false, err
	}
	return false, s.conclude(ctx, p, j, left)
}

// conclude tells how a restore has ended, and removes what is noted of it: in this order, so that it is told whoever dies meanwhile.
func (s *Snapshots) conclude(ctx context.Context, p *project.Project, j *journal, left bool) error {
	if s.o.Ended != nil {
		if err := s.o.Ended(ctx, j.ended(p)); err != nil {
			return err
		}
	}
	return s.remove(ctx, p, j, left)
}

// settleOwn is settle of the restore with that id, which goes on here; if somebody else has ended it, it says how. What fails is tried again.
func (s *Snapshots) settleOwn(ctx context.Context, p *project.Project, id string, tries int) (forward bool, err error) {
	var last error
	for try := range tries {
		if try > 0 {
			store.Wait(ctx, settlePause<<try)
		}
		j, err := s.readJournal(ctx, p)
		if err == nil {
			switch {
			case j != nil && j.Restore == id:
				forward, err = s.settle(ctx, p, j, false)
			case !forward:
				forward, err = s.endedForward(ctx, p, id)
			}
		}
		if err == nil {
			return forward, nil
		}
		last = err
	}
	return false, last
}

// What is decided and fails is tried again a few times at once, before the project stays shut.
const (
	settleTries = 5
	settlePause = 10 * time.Millisecond
)

// undo removes what a restore that is given up has made.
func (s *Snapshots) undo(ctx context.Context, p *project.Project, j *journal) error {
	db := s.o.Store.Database(project.DatabaseName(p.Namespace))
	for _, one := range j.Swaps {
		if err := db.DropCollection(ctx, one.From); err != nil {
			return err
		}
	}
	if !j.Media || s.o.Media == nil {
		return nil
	}
	return s.o.Media.DropAside(p.Namespace, j.Restore)
}

// finish does what is decided. It can be begun again at any place.
func (s *Snapshots) finish(ctx context.Context, p *project.Project, j *journal) error {
	if err := s.swapAll(ctx, p, j.Swaps); err != nil {
		return err
	}
	if j.Media && s.o.Media != nil {
		files, err := s.o.Media.Store(p.Namespace)
		if err != nil {
			return err
		}
		if err := files.ReplaceAside(ctx, j.Restore); err != nil {
			return err
		}
	}
	return nil
}

// swapAll has collections take the places of others: in one step where the store can do that.
func (s *Snapshots) swapAll(ctx context.Context, p *project.Project, swaps []store.Rename) error {
	db := s.o.Store.Database(project.DatabaseName(p.Namespace))
	if all, ok := db.(store.Replacer); ok {
		if err := all.ReplaceCollections(ctx, swaps); !errors.Is(err, errs.ErrNotFound) { // else it has been done, or somebody has removed one
			return err
		}
	}
	for _, one := range swaps {
		if err := db.RenameCollection(ctx, one.From, one.To, true); err != nil && !errors.Is(err, errs.ErrNotFound) { // which has been done
			return err
		}
	}
	return nil
}

// shutTime is how long writes and transactions that are under way may take to end; none lasts longer.
const shutTime = 90 * time.Second

// openGate is for those who have nobody to keep away.
type openGate struct{}

func (openGate) Reads(context.Context) error { return nil }
func (openGate) Open()                       {}

// shut refuses writes of a project.
func (s *Snapshots) shut(ctx context.Context, p *project.Project) (gate.Shut, error) {
	if s.o.Gate == nil {
		return openGate{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutTime)
	defer cancel()
	shut, err := s.o.Gate.Shut(ctx, project.DatabaseName(p.Namespace))
	if errors.Is(err, store.ErrDeadline) {
		return nil, errs.New(errs.Unavailable, "restore_waits", "writes to the project that were under way did not end in time: nothing was changed; try again").With(err)
	}
	return shut, err
}

// stick keeps a project shut until a restore of it is ended.
func (s *Snapshots) stick(p *project.Project, shut gate.Shut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck[p.Namespace] = shut
}

func (s *Snapshots) isStuck(p *project.Project) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck[p.Namespace] != nil
}

func (s *Snapshots) unstick(p *project.Project) {
	s.mu.Lock()
	shut := s.stuck[p.Namespace]
	delete(s.stuck, p.Namespace)
	s.mu.Unlock()
	if shut != nil {
		shut.Open()
	}
}

// replaced tells that collections of a project are others.
func (s *Snapshots) replaced(p *project.Project) {
	if s.o.Replaced != nil {
		s.o.Replaced(p)
	}
}
