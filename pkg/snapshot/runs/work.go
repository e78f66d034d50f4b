package runs

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
)

// Everything is that profile.
func Everything() snapshot.Profile {
	return snapshot.Profile{Name: snapshot.BackupProfile, Media: true, Dedup: true, Mode: snapshot.JSON}
}

// work finds out what a run is to do. What it can't do because there is no such profile or snapshot is an error.
func (s *Service) work(ctx context.Context, p *project.Project, what Start) (*work, error) {
	switch what.Kind {
	case operation.Snapshot:
		profile, err := snapshot.ProfileOf(p, what.Profile)
		if err != nil {
			return nil, err
		}
		return s.take(p, profile), nil
	case operation.Backup:
		return s.take(p, Everything()), nil
	case operation.Verify:
		if what.Sample < 0 || what.Sample > 1 {
			return nil, errs.New(errs.Invalid, "bad_sample", "a sample is the part of the files that is read: send a number above 0 and at most 1, such as 0.1")
		}
		if what.Snapshot == "" {
			return s.verifyAll(p, what)
		}
		return s.verify(ctx, p, what)
	case operation.Prune:
		return s.prune(p, what)
	case operation.Drill:
		return s.drill(ctx, p, what)
	case operation.Restore:
		return s.restore(ctx, p, what)
	}
	return nil, errs.New(errs.Internal, "internal", "there is no run of kind %q to be started so", what.Kind)
}

const (
	patience = 30 * time.Second
	pause    = 50 * time.Millisecond
)

// patiently does what may find a snapshot being deleted, which is no run and soon over.
func patiently(ctx context.Context, patience time.Duration, do func() error) error {
	for began := time.Now(); ; {
		err := do()
		if !errors.Is(err, snapshot.ErrBusy) || time.Since(began) > patience || !store.Wait(ctx, pause) {
			return err
		}
	}
}

// take makes a snapshot.
func (s *Service) take(p *project.Project, profile snapshot.Profile) *work {
	w := &work{name: profile.Name}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		var info snapshot.Info
		err := patiently(ctx, patience, func() (err error) {
			info, err = s.snapshots.Create(ctx, p, profile, t.report)
			return err
		})
		if err != nil {
			return nil, err
		}
		return &api.SnapshotResult{Snapshot: info.ID, Profile: info.Profile, Counts: countsOut(&info.Counts)}, nil
	}
	return w
}

// verify checks a snapshot.
func (s *Service) verify(ctx context.Context, p *project.Project, what Start) (*work, error) {
	profile, err := s.Where(ctx, p, what.Snapshot)
	if err != nil {
		return nil, err
	}
	w := &work{name: profile, subject: what.Snapshot, how: sampleOf(what)}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		v, err := s.snapshots.Verify(ctx, p, what.Snapshot, snapshot.VerifyOptions{Sample: what.Sample, Report: t.report})
		if err != nil {
			return nil, err
		}
		result := &api.SnapshotResult{Snapshot: what.Snapshot, Profile: profile, Verified: VerificationOut(v)}
		if v.Problems > 0 { // the run fails, so that whoever only looks at its end learns of it
			s.found(ctx, p, "a check has found damage", what.Snapshot, v.Problems, v.Found)
			return result, errs.New(snapshot.ErrDamaged.Kind, snapshot.ErrDamaged.Code, "the snapshot %s is damaged: %s", what.Snapshot, snapshot.Named(v.Found, v.Problems))
		}
		return result, nil
	}
	return w, nil
}

// found has the log of the service say what is wrong with a snapshot, file by file.
func (s *Service) found(ctx context.Context, p *project.Project, what, id string, problems int64, found []snapshot.Finding) {
	for _, f := range found {
		s.log.WarnContext(ctx, what, "namespace", p.Namespace, "snapshot", id, "file", f.Path, "problem", f.Text, "problems", problems)
	}
}
