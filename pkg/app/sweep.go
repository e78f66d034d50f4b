package app

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store/lease"
)

// DefaultSweepAfter is how old a file is at least that no record names when it is swept, where no setting says otherwise.
// With the pause between two sweeps, which is a fifth of it, none stays for an hour.
const DefaultSweepAfter = 48 * time.Minute

const (
	sweepLease     = "uploads"
	sweepLeaseTime = 10 * time.Second
	sweepParts     = 5 // sweeps in the time that files are left alone
)

// sweeper removes the files that crashes left, of all projects that are served. Of several instances on one store one does
// it at a time for each project.
type sweeper struct {
	app      *App
	records  *records.Service
	projects *project.Registry
	after    time.Duration

	leases map[string]*lease.Leases // by namespace: they remember what they have seen of another holder
}

// run sweeps until ctx ends.
func (s *sweeper) run(ctx context.Context) {
	for {
		s.all(ctx)
		pause := time.NewTimer(s.after / sweepParts)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// all sweeps once.
func (s *sweeper) all(ctx context.Context) {
	log := s.app.cfg.Logger
	if err := s.app.files.RemoveDropped(); err != nil {
		log.WarnContext(ctx, "files of projects that are gone are not all removed", "error", err)
	}
	names, err := s.app.files.Namespaces()
	if err != nil {
		log.WarnContext(ctx, "uploads are not swept", "error", err)
	}
	for _, namespace := range names {
		removed, err := s.one(ctx, namespace)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrLost): // another instance is at it
		case err != nil:
			log.WarnContext(ctx, "uploads of a project are not all swept", "namespace", namespace, "error", err)
		}
		if removed > 0 {
			log.InfoContext(ctx, "swept files that no record names", "namespace", namespace, "files", removed)
		}
	}
}

// Orphans calls found for each file of a project that no record names and that is old enough to be swept, until that fails. It
// writes nothing.
func (s *sweeper) Orphans(ctx context.Context, p *project.Project, found func(dir, record string, bytes int64) error) error {
	return s.app.files.Orphans(ctx, p.Namespace, s.app.cfg.Now().Add(-s.after), s.records.LiveFiles(p), found)
}

// one sweeps one project, unless it is only to be observed, or is suspended. Of one that is not served nobody can say what its records name.
func (s *sweeper) one(ctx context.Context, namespace string) (removed int, err error) {
	p, err := s.projects.Get(namespace)
	if err != nil || p.Observe || p.Suspended {
		return 0, nil
	}
	files, err := s.app.files.Store(namespace)
	if err != nil {
		return 0, err
	}
	if s.leases[namespace] == nil {
		s.leases[namespace] = lease.New(s.app.store.Database(project.DatabaseName(namespace)), holder(), nil)
	}
	err = s.leases[namespace].Hold(ctx, sweepLease, sweepLeaseTime, func(ctx context.Context, _ *lease.Lease) error {
		removed, err = files.Sweep(ctx, s.app.cfg.Now().Add(-s.after), s.records.LiveFiles(p))
		return err
	})
	return removed, err
}
