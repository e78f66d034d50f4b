package runs

import (
	"cmp"
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
)

// diffRecords is how many of the records that differ the dry run of a restore tells of each collection.
const diffRecords = 20

// Restore says what a run restores, and where.
type Restore struct {
	snapshot.RestoreOptions

	Into *project.Project // nil: the project itself, or New

	New     string           // namespace of a project that is made for it; "": none is
	Founder snapshot.Founder // makes that
}

// restore brings a snapshot back.
func (s *Service) restore(ctx context.Context, p *project.Project, what Start) (*work, error) {
	info, err := s.Look(ctx, p, what.Snapshot)
	if err != nil {
		return nil, err
	}
	how, profile := what.Restore, info.Profile
	if info.Problem == "" { // else the run finds out, and says what is damaged
		if err := info.Has(how.Collections); err != nil {
			return nil, err
		}
	}
	return &work{name: profile, subject: what.Snapshot, how: how.input(), do: func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		return s.bringBack(ctx, p, what.Snapshot, profile, how, t)
	}}, nil
}

// input is what is noted of it.
func (r *Restore) input() bson.D {
	mode := r.Mode
	if mode == "" {
		mode = snapshot.Replace
	}
	in := bson.D{{Key: "mode", Value: string(mode)}, {Key: "media", Value: r.Media}}
	if len(r.Collections) > 0 {
		in = append(in, bson.E{Key: "collections", Value: strings.Join(r.Collections, ",")})
	}
	if r.DryRun {
		in = append(in, bson.E{Key: "dryRun", Value: true})
	}
	if into := r.Target(); into != "" {
		in = append(in, bson.E{Key: "into", Value: into})
	}
	if r.New != "" {
		in = append(in, bson.E{Key: "made", Value: true})
	}
	return in
}

// Target is the namespace that is restored into; "": the project's own.
func (r *Restore) Target() string {
	if r.Into != nil {
		return r.Into.Namespace
	}
	return r.New
}

func (s *Service) bringBack(ctx context.Context, p *project.Project, id, profile string, how *Restore, t *teller) (*api.SnapshotResult, error) {
	target, o := how.Into, how.RestoreOptions
	if target == nil {
		target = p
	}
	into := cmp.Or(how.Target(), p.Namespace)
	if o.DryRun {
		o.Limit = diffRecords
	}
	o.Run = snapshot.Run{Namespace: p.Namespace, ID: t.live.Run().ID, Outcome: func(done *snapshot.RestoreResult) ([]byte, error) {
		out := restoredOut(id, profile, into, how, done)
		out.Warnings = t.warnings
		return encoded(out)
	}}
	var done snapshot.RestoreResult
	err := patiently(ctx, patience, func() (err error) {
		if how.New != "" {
			done, err = s.snapshots.RestoreNew(ctx, p, id, how.New, how.Founder, o, t.report)
		} else {
			done, err = s.snapshots.Restore(ctx, p, id, target, o, t.report)
		}
		return err
	})
	if snapshot.IsUnfinished(err) {
		err = operation.Open(err)
	}
	if err != nil {
		return nil, err
	}
	return restoredOut(id, profile, into, how, &done), nil
}

// restoredOut is what callers are told of a restore.
func restoredOut(id, profile, into string, how *Restore, done *snapshot.RestoreResult) *api.SnapshotResult {
	out, mode := &api.SnapshotResult{Snapshot: id, Profile: profile}, string(cmp.Or(how.Mode, snapshot.Replace))
	var drift []api.RestoreDrift
	for _, d := range done.Drift {
		drift = append(drift, api.RestoreDrift(d))
	}
	if how.DryRun {
		out.Would = &api.SnapshotWouldRestore{Into: into, Made: how.New != "", Mode: mode, Collections: []api.WouldRestoreCollection{}, Drift: drift}
		for _, c := range done.Collections {
			out.Would.Collections = append(out.Would.Collections, api.WouldRestoreCollection{
				Name: c.Name, Documents: c.Records, FromSnapshot: c.Restored, Unchanged: c.Unchanged,
			})
		}
		diff := DiffOut(id, "", done.Diff)
		out.Diff = &diff
		return out
	}
	out.Restored = &api.SnapshotRestored{
		Into: into, Made: how.New != "", Safety: done.Safety, Mode: mode, Collections: []api.RestoredCollection{}, Files: api.RestoredFiles(done.Files), Drift: drift,
		SafetyWarnings: done.SafetyWarnings,
	}
	for _, c := range done.Collections {
		out.Restored.Collections = append(out.Restored.Collections, api.RestoredCollection{
			Name: c.Name, Documents: c.Records, FromSnapshot: c.Restored, Bytes: c.Bytes, Unchanged: c.Unchanged,
		})
	}
	return out
}

// RestoreBackup imports a backup while it comes in, and restores it, in one run as others are. It returns when the backup has come and was
// checked: the run goes on then. What ends before is an error. A backup that the project has already is taken as it is there, and of one
// that comes for a dry run nothing stays.
func (s *Service) RestoreBackup(ctx context.Context, p *project.Project, in Receive, how *Restore) (*operation.Run, error) {
	in.Kind, in.Profile = operation.Restore, snapshot.BackupProfile
	var failed error
	received, ended := make(chan struct{}), make(chan struct{})
	in.Ended = func(*operation.Run) { close(ended) }
	w := &work{name: snapshot.BackupProfile, how: how.input()}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		var info snapshot.Info
		var known bool
		if info, known, failed = s.takeIn(ctx, p, in, t); failed != nil {
			return nil, failed
		}
		close(received)
		if how.DryRun && !known {
			defer s.Discard(p, info.ID)
		}
		result, err := s.bringBack(ctx, p, info.ID, info.Profile, how, t)
		if known {
			err = insteadOf(info.ID, err)
		}
		return result, err
	}
	run, err := s.start(ctx, p, in.Start, w)
	if err != nil {
		return nil, err
	}
	select {
	case <-received:
		return s.Get(ctx, p, run.ID)
	case <-ctx.Done():
		if err := s.Cancel(context.WithoutCancel(ctx), p, run); err != nil {
			s.log.DebugContext(ctx, "a run whose caller is gone is not cancelled", "run", run.ID, "error", err)
		}
		<-ended // nobody reads the body any more
		return nil, context.Cause(ctx)
	case <-ended:
	}
	select {
	case <-received:
		return s.Get(ctx, p, run.ID)
	default:
	}
	if run, err = s.Get(ctx, p, run.ID); err != nil {
		return nil, err
	}
	return nil, endOf(run, failed)
}

// insteadOf says of a backup that is damaged where the project has it already that what has come was not read in its place.
func insteadOf(id string, err error) error {
	if e := errs.From(err); err != nil && e.Code == snapshot.ErrDamaged.Code {
		return errs.New(e.Kind, e.Code, "%s; that is the snapshot %s, which the project has already: to restore what the archive has, delete it, and send the archive again", e.Message, id).With(err)
	}
	return err
}

// DiffOut is what callers are told of a comparison.
func DiffOut(id, with string, d *snapshot.Diff) api.SnapshotDiff {
	out := api.SnapshotDiff{ID: id, With: with, Same: true, Collections: []api.SnapshotCollectionDiff{}}
	for _, c := range d.Collections {
		col := api.SnapshotCollectionDiff{
			Collection: c.Name, Added: c.Added, Removed: c.Removed, Changed: c.Changed, Same: c.Same, Files: c.Files, Records: []api.SnapshotRecordDiff{},
		}
		switch c.Kind {
		case snapshot.Added:
			col.Only = api.DiffAfter
		case snapshot.Removed:
			col.Only = api.DiffBefore
		case snapshot.Uncovered:
			col.NotCovered = true
		case snapshot.Changed:
		}
		for _, r := range c.Records {
			col.Records = append(col.Records, api.SnapshotRecordDiff{ID: r.ID, Change: string(r.Kind), Paths: r.Paths, More: r.More})
		}
		for _, f := range c.FileDiffs {
			col.FileDiffs = append(col.FileDiffs, api.SnapshotFileDiff{Record: f.Record, Field: f.Field, Name: f.Name, Change: string(f.Kind)})
		}
		differing := c.Added + c.Removed + c.Changed
		col.More = differing > int64(len(c.Records)) || c.Files > int64(len(c.FileDiffs))
		out.Same = out.Same && differing+c.Files == 0 && (c.Kind == "" || c.Kind == snapshot.Uncovered)
		out.Collections = append(out.Collections, col)
	}
	return out
}
