package runs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/archive"
	"github.com/svcctl/svc/pkg/store"
)

// Receive is an archive that comes in.
type Receive struct {
	Start // of which ID, By and Note count

	Body      io.Reader    // is read by the run, until it has ended, and by nobody later
	Interrupt func()       // ends a Read of Body that waits; it is called from another goroutine, when the run is cancelled
	Profile   string       // as snapshot.ImportOptions has it
	MaxBytes  int64        // of all files together, unpacked; 0: archive.DefaultLimits
	Confirm   func() error // as snapshot.ImportOptions has it
}

// unknownProfile is the name of imports, of which only the archive says the profile.
const unknownProfile = "import"

// Receive imports an archive while it comes in: a run as others, that ends with ctx. The error is that of the import.
func (s *Service) Receive(ctx context.Context, p *project.Project, in Receive) (info snapshot.Info, err error) {
	in.Kind = operation.Import
	w := &work{name: in.Profile}
	if w.name == "" {
		w.name = unknownProfile
	} else if err := snapshot.CheckProfileName(w.name); err != nil { // before a run and the audit log have it
		return snapshot.Info{}, err
	}
	var failed error
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		if info, failed = s.unpack(ctx, p, in, in.options(t)); failed != nil {
			return nil, failed
		}
		return imported(&info), nil
	}
	run, err := s.start(ctx, p, in.Start, w)
	if err != nil {
		return snapshot.Info{}, err
	}
	run, err = s.toEnd(ctx, p, run)
	switch {
	case err != nil:
		return snapshot.Info{}, err
	case run.Status == operation.Succeeded:
		return info, nil
	}
	return snapshot.Info{}, endOf(run, failed)
}

// unpack is the import.
func (s *Service) unpack(ctx context.Context, p *project.Project, in Receive, o snapshot.ImportOptions) (info snapshot.Info, err error) {
	defer atEnd(ctx, in.Interrupt)()
	err = patiently(ctx, patience, func() (err error) {
		info, err = s.snapshots.Import(ctx, p, in.Body, o)
		return err
	})
	return info, err
}

// takeIn is unpack, unless the project has what comes in: then known says so.
func (s *Service) takeIn(ctx context.Context, p *project.Project, in Receive, t *teller) (info snapshot.Info, known bool, err error) {
	o := in.options(t)
	o.Known = func(snapshot.Info) error {
		known = true
		return in.Confirm()
	}
	info, err = s.unpack(ctx, p, in, o)
	return info, known, err
}

// endOf is the error of a run that did not succeed. failed is that of what it did, nil if it did not come to that.
func endOf(run *operation.Run, failed error) error {
	switch {
	case run.Status == operation.Failed && failed != nil:
		return failed
	case run.Error == nil:
		return operation.ErrLost
	}
	return errs.New(kindOf(run.Error.Code), run.Error.Code, "%s", run.Error.Message)
}

// atEnd calls fn when ctx ends, unless stop was called before. When stop returns, fn has returned, or is not called any more.
func atEnd(ctx context.Context, fn func()) (stop func()) {
	done := make(chan struct{})
	unless := context.AfterFunc(ctx, func() {
		defer close(done)
		fn()
	})
	return func() {
		if !unless() {
			<-done
		}
	}
}

func (in *Receive) options(t *teller) snapshot.ImportOptions {
	limits := archive.DefaultLimits()
	if in.MaxBytes > 0 {
		limits.Bytes, limits.FileBytes = in.MaxBytes, in.MaxBytes
	}
	return snapshot.ImportOptions{Profile: in.Profile, Limits: limits, Confirm: in.Confirm, Report: t.report}
}

func imported(info *snapshot.Info) *api.SnapshotResult {
	return &api.SnapshotResult{Snapshot: info.ID, Profile: info.Profile, Counts: countsOut(&info.Counts), Verified: VerificationOut(info.State.Verified)}
}

// toEnd gives a run when it has ended. It ends it when ctx ends.
func (s *Service) toEnd(ctx context.Context, p *project.Project, run *operation.Run) (*operation.Run, error) {
	ended, err := s.Wait(ctx, p, run)
	if ctx.Err() == nil {
		return ended, err
	}
	last := context.WithoutCancel(ctx)
	if err := s.Cancel(last, p, run); err != nil && !errors.Is(err, operation.ErrEnded) {
		return nil, err
	}
	return s.Wait(last, p, run)
}

// Take makes a backup, and gives the id of the snapshot. It is a run as others, that ends with ctx: then nothing stays of it.
func (s *Service) Take(ctx context.Context, p *project.Project, what Start) (id string, err error) {
	run, err := s.Start(ctx, p, what)
	if err != nil {
		return "", err
	}
	run, err = s.toEnd(ctx, p, run)
	switch {
	case err != nil:
		return "", err
	case run.Status != operation.Succeeded:
		return "", endOf(run, nil)
	case ctx.Err() != nil:
		s.Discard(p, run.Subject)
		return "", context.Cause(ctx)
	}
	return run.Subject, nil
}

// kindOf is the kind of an error of which a run has kept the code.
func kindOf(code string) errs.Kind {
	switch code {
	case "snapshots_full", "uploads_full", "projects_full", "backup_disk_full", store.ErrFull.Code:
		return errs.Full
	case "internal":
		return errs.Internal
	case operation.ErrStopping.Code, "view_expired", "store_unavailable", "snapshots_unwritable":
		return errs.Unavailable
	}
	return errs.Conflict
}

const (
	discardEvery = time.Second
	discardTime  = time.Hour
)

// deletePatience is for how long a deletion waits for what is no run: somebody waits for its answer.
const deletePatience = 2 * time.Second

// Discard removes a snapshot that was made for one use, soon: when no run goes on and nobody reads it.
func (s *Service) Discard(p *project.Project, id string) {
	s.discards.Go(func() {
		tries := time.NewTicker(discardEvery)
		defer tries.Stop()
		for began := time.Now(); ; {
			err := s.Delete(s.ctx, p, id)
			if err == nil || errors.Is(err, snapshot.ErrNotFound) {
				return
			}
			again := errors.Is(err, snapshot.ErrBusy) || errors.Is(err, snapshot.ErrInUse)
			if !again || time.Since(began) > discardTime {
				s.log.Warn("a backup that was made for a download stays: delete it", "namespace", p.Namespace, "snapshot", id, "error", err)
				return
			}
			select {
			case <-tries.C:
			case <-s.ctx.Done():
				s.log.Warn("a backup that was made for a download stays: delete it", "namespace", p.Namespace, "snapshot", id, "error", err)
				return
			}
		}
	})
}

// Delete removes a snapshot. While a run that takes, imports, restores or removes goes on it is snapshot.ErrBusy, which names the run; what the
// service does for a moment by itself, such as cleaning up, is waited for.
func (s *Service) Delete(ctx context.Context, p *project.Project, id string) error {
	if err := s.Idle(ctx, p, operation.Prune); err != nil {
		return err
	}
	return patiently(ctx, deletePatience, func() error { return s.snapshots.Delete(ctx, p, id) })
}

// Close ends what Discard has not done yet. Runs end by their own.
func (s *Service) Close() {
	s.stop()
	s.discards.Wait()
}
