package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

const defaultSnapshots = 100 // of one page

// profiles are those whose snapshots a caller may take, see and download. nil is all of them: of who has passed a route's own right.
type profiles struct {
	all    bool            // project.snapshot
	named  map[string]bool // by the permissions of these; with project.backup, that of backups, too
	backup bool            // that is among them
}

func (p *profiles) everything() bool { return p == nil || p.all }

func (p *profiles) has(name string) bool { return p.everything() || p.named[name] }

// runs are those that the caller sees of others than all: those which take the snapshots, and those of backups. That whoever makes backups
// also has a profile says nothing of restores of that one.
func (p *profiles) runs() []operation.Of {
	if p.everything() {
		return nil
	}
	out := []operation.Of{{Kinds: []operation.Kind{operation.Snapshot}, Names: slices.Sorted(maps.Keys(p.named))}}
	if p.backup {
		out = append(out, operation.Of{Kinds: []operation.Kind{operation.Backup, operation.Restore}, Names: []string{api.ProfileBackup}})
	}
	return out
}

func (p *profiles) hasRun(run *operation.Run) bool {
	return p.everything() || slices.ContainsFunc(p.runs(), func(of operation.Of) bool { return of.Has(run) })
}

// maySnapshots finds out which profiles the caller has to do with; it is a denial if that is none.
func (r *request) maySnapshots() error {
	may := r.server.cfg.Records.MayOperate
	denial := may(r.project, r.principal, access.ProjectSnapshot)
	r.profiles = &profiles{all: denial == nil, named: map[string]bool{}}
	if denial == nil {
		return nil
	}
	for _, profile := range r.project.Config.Snapshots {
		if r.principal.IsAmong(profile.Permissions) {
			r.profiles.named[profile.Name] = true
		}
	}
	if may(r.project, r.principal, access.ProjectBackup) == nil {
		r.profiles.named[api.ProfileBackup], r.profiles.backup = true, true
	}
	if len(r.profiles.named) == 0 {
		return denial
	}
	return nil
}

func (s *Server) listProfiles(w http.ResponseWriter, r *request) error {
	all, err := s.cfg.Snapshots.List(r.Context(), r.project)
	if err != nil {
		return err
	}
	out := api.List[api.SnapshotProfile]{Items: []api.SnapshotProfile{}}
	for _, profile := range r.project.Snapshots {
		if r.profiles.has(profile.Name) {
			out.Items = append(out.Items, s.profileOut(r, profile, all))
		}
	}
	out.Limit = len(out.Items)
	return r.json(w, http.StatusOK, out)
}

// profileOut tells of a profile; all are the snapshots of the project, newest first.
func (s *Server) profileOut(r *request, profile *project.SnapshotProfile, all []snapshot.Info) api.SnapshotProfile {
	c := profile.Config
	out := api.SnapshotProfile{
		Name: c.Name, Description: c.Description, Enabled: c.Enabled, Schedule: string(c.Schedule), Collections: []string{}, Excluded: []string{},
		IncludeMedia: c.IncludeMedia, CollectionDedup: c.CollectionDedup, Mode: c.Mode,
	}
	for _, col := range c.Collections {
		if col.Mode == "exclude" {
			out.Excluded = append(out.Excluded, col.Name)
		} else {
			out.Collections = append(out.Collections, col.Name)
		}
	}
	if profile.Enabled() && profile.Take != nil {
		out.NextAt = api.Time{Time: profile.Take.Next(s.cfg.Now())}
	}
	if c.Verify != nil {
		out.Verify = &api.SnapshotProfileVerify{Schedule: string(c.Verify.Schedule), Sample: c.Verify.Sample, Snapshots: c.Verify.Snapshots}
	}
	if c.Drill != nil {
		out.Drill = &api.SnapshotProfileDrill{Schedule: string(c.Drill.Schedule)}
	}
	if k := c.Retention; k != nil {
		out.Retention = &api.SnapshotRetention{
			KeepLast: k.KeepLast, KeepHourly: k.KeepHourly, KeepDaily: k.KeepDaily, KeepWeekly: k.KeepWeekly, KeepMonthly: k.KeepMonthly,
			KeepYearly: k.KeepYearly,
		}
		if k.KeepWithin != (schema.Span{}) {
			out.Retention.KeepWithin = k.KeepWithin.String()
		}
	}
	for i := range all {
		if all[i].Profile != c.Name {
			continue
		}
		if out.Snapshots++; out.LastSnapshot == nil {
			last := runs.SnapshotOut(&all[i])
			out.LastSnapshot = &last
		}
	}
	return out
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *request) error {
	limit, offset, err := r.page()
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = defaultSnapshots
	}
	profile, err := r.one(api.ParamProfile)
	if err != nil {
		return err
	}
	all, err := s.cfg.Snapshots.List(r.Context(), r.project)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i snapshot.Info) bool { return !r.profiles.has(i.Profile) || profile != "" && i.Profile != profile })
	out := api.List[api.Snapshot]{Items: []api.Snapshot{}, Limit: int(limit), Offset: int(offset)}
	all = all[min(offset, int64(len(all))):]
	out.HasMore = int64(len(all)) > limit
	for i := range all[:min(limit, int64(len(all)))] {
		out.Items = append(out.Items, runs.SnapshotOut(&all[i]))
	}
	return r.json(w, http.StatusOK, out)
}

// snapshotOf gives the profile of the snapshot in the path, if the caller has to do with that.
func (s *Server) snapshotOf(r *request) (id, profile string, err error) {
	id = r.param("id")
	profile, err = s.cfg.Snapshots.Where(r.Context(), r.project, id)
	if err == nil && !r.profiles.has(profile) {
		err = snapshot.ErrNotFound
	}
	return id, profile, err
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *request) error {
	files, err := r.boolean(api.ParamFiles)
	if err != nil {
		return err
	}
	id, profile, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	return s.showSnapshot(w, r, profile, id, files)
}

// showSnapshot answers with what is known of a snapshot. Of one that can't be read, that is why.
func (s *Server) showSnapshot(w http.ResponseWriter, r *request, profile, id string, files bool) error {
	info, err := s.cfg.Snapshots.Show(r.Context(), r.project, id)
	if errors.Is(err, snapshot.ErrDamaged) {
		damage := errs.From(err).Message
		if info, err = s.cfg.Snapshots.Look(r.Context(), r.project, id); err == nil {
			info.Problem = damage
		}
	}
	if err != nil {
		return err
	}
	info.Profile = profile
	out := runs.SnapshotOut(&info)
	if files {
		out.Files = runs.FilesOut(info.Files)
	}
	return r.json(w, http.StatusOK, out)
}

// changeSnapshot pins a snapshot, or lets go of it.
func (s *Server) changeSnapshot(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	var pinned *bool
	if err := read(body, map[string]any{"pinned": &pinned}); err != nil {
		return err
	}
	if pinned == nil {
		return errs.Validation([]errs.FieldError{{Path: "pinned", Rule: "required", Message: "must be true or false: whether the snapshot is kept from being deleted"}})
	}
	id, profile, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	op := audit.OpPin
	if !*pinned {
		op = audit.OpUnpin
	}
	if err := s.cfg.System.Snapshotted(r.Context(), op, r.project.Namespace, profile, id, nil); err != nil {
		return err
	}
	if err := s.cfg.Snapshots.Pin(r.Context(), r.project, id, *pinned); err != nil {
		return err
	}
	return s.showSnapshot(w, r, profile, id, false)
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *request) error {
	id, profile, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	if err := s.cfg.System.Snapshotted(r.Context(), audit.OpDeleteSnapshot, r.project.Namespace, profile, id, nil); err != nil {
		return err
	}
	// It goes on to its end if the caller leaves: half of it would be of no use to anybody.
	if err := s.cfg.Snapshots.Delete(context.WithoutCancel(r.Context()), r.project, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) createSnapshot(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	var profile string
	if err := read(body, map[string]any{"profile": &profile}); err != nil {
		return err
	}
	if profile == "" {
		return errs.Validation([]errs.FieldError{{Path: "profile", Rule: "required", Message: "must be the name of a profile, which GET …/admin/snapshots/profiles lists"}})
	}
	if !r.profiles.has(profile) {
		return snapshot.UnknownProfile(profile)
	}
	return s.startSnapshots(w, r, audit.OpSnapshot, runs.Start{Kind: operation.Snapshot, Profile: profile})
}

func (s *Server) verifySnapshot(w http.ResponseWriter, r *request) error {
	body, err := r.optionalObject(w)
	if err != nil {
		return err
	}
	var sample *float64
	if err := read(body, map[string]any{"sample": &sample}); err != nil {
		return err
	}
	what := runs.Start{Kind: operation.Verify, Snapshot: r.param("id")}
	if sample != nil {
		if what.Sample = *sample; !(what.Sample > 0 && what.Sample <= 1) {
			return errs.Validation([]errs.FieldError{{Path: "sample", Rule: "range", Message: "must be above 0 and at most 1: the part of the files that is read"}})
		}
	}
	return s.startSnapshots(w, r, audit.OpVerifySnapshot, what)
}

// pruneSnapshots removes the snapshots that no retention keeps, or tells which these are.
func (s *Server) pruneSnapshots(w http.ResponseWriter, r *request) error {
	body, err := r.optionalObject(w)
	if err != nil {
		return err
	}
	var in api.SnapshotPrune
	if err := read(body, map[string]any{"profile": &in.Profile, "dryRun": &in.DryRun}); err != nil {
		return err
	}
	if !in.DryRun {
		return s.startSnapshots(w, r, audit.OpPrune, runs.Start{Kind: operation.Prune, Profile: in.Profile})
	}
	plan, err := s.cfg.Snapshots.PlanPrune(r.Context(), r.project, in.Profile)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.SnapshotPrunePlan{Items: plan})
}

// startSnapshots starts a run of snapshots, and answers with it, or with its events if the caller accepts a stream. The run goes on when
// the caller leaves.
func (s *Server) startSnapshots(w http.ResponseWriter, r *request, op string, what runs.Start) error {
	what.By, what.ID = actorOf(r), bson.NewObjectIDFromTimestamp(s.cfg.Now()).Hex()
	what.Note = s.noteRun(r, op, what.ID)
	if what.Restore != nil && what.Restore.Target() != "" {
		what.Note = s.noteInto(r, op, what.ID, what.Restore.Target())
	}
	run, err := s.cfg.Snapshots.Start(r.Context(), r.project, what)
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run)
}

// noteInto is noteRun of what changes another project: the log has it of that one, too, where people look for what has become of its records.
func (s *Server) noteInto(r *request, op, run, namespace string) func(ctx context.Context, profile, subject string, how bson.D) error {
	note := s.noteRun(r, op, run)
	return func(ctx context.Context, profile, subject string, how bson.D) error {
		there := append(bson.D{{Key: "run", Value: run}, {Key: "from", Value: r.project.Namespace}}, how...)
		if err := s.cfg.System.Snapshotted(ctx, op, namespace, profile, subject, there); err != nil {
			return err
		}
		return note(ctx, profile, subject, how)
	}
}

// noteRun notes in the audit log what a run is about to do: what can't be logged doesn't happen.
func (s *Server) noteRun(r *request, op, run string) func(ctx context.Context, profile, subject string, how bson.D) error {
	return func(ctx context.Context, profile, subject string, how bson.D) error {
		return s.cfg.System.Snapshotted(ctx, op, r.project.Namespace, profile, subject, append(bson.D{{Key: "run", Value: run}}, how...))
	}
}

func (s *Server) sendRun(w http.ResponseWriter, r *request, run *operation.Run) error {
	w.Header().Set(api.HeaderLocation, api.SnapshotRunPath(r.project.Namespace, run.ID))
	if r.wantsStream() {
		return s.streamSnapshots(w, r, run, 0)
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}

func (s *Server) listSnapshotRuns(w http.ResponseWriter, r *request) error {
	query, err := r.runQuery()
	if err != nil {
		return err
	}
	query.Any = r.profiles.runs()
	page, err := s.cfg.Snapshots.Runs(r.Context(), r.project, query)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runsOut(page))
}

func (s *Server) getSnapshotRun(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Snapshots.Get(r.Context(), r.project, r.param("id"))
	if err != nil {
		return err
	}
	if !r.profiles.hasRun(run) {
		return operation.ErrNotFound
	}
	return r.json(w, http.StatusOK, runOut(run))
}

// snapshotRun gives the run that the path names: by its own id, or by that of a snapshot, whose newest run it is.
func (s *Server) snapshotRun(r *request) (*operation.Run, error) {
	id := r.param("id")
	run, err := s.cfg.Snapshots.Get(r.Context(), r.project, id)
	if errors.Is(err, operation.ErrNotFound) {
		run, err = s.cfg.Snapshots.Newest(r.Context(), r.project, operation.Query{Subject: id, Any: r.profiles.runs()})
	}
	if err == nil && !r.profiles.hasRun(run) {
		err = operation.ErrNotFound
	}
	return run, err
}

func (s *Server) followSnapshotRun(w http.ResponseWriter, r *request) error {
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	run, err := s.snapshotRun(r)
	if err != nil {
		return err
	}
	return s.streamSnapshots(w, r, run, after)
}

func (s *Server) streamSnapshots(w http.ResponseWriter, r *request, run *operation.Run, after int64) error {
	check := func() error {
		now, err := r.again()
		if err == nil && !now.profiles.hasRun(run) {
			err = errs.ErrDenied
		}
		return err
	}
	return s.streamRun(w, r, run, after, check, func(ctx context.Context, after int64, fn func(operation.Event) error) error {
		return s.cfg.Snapshots.Follow(ctx, r.project, run, after, fn)
	})
}

func (s *Server) cancelSnapshotRun(w http.ResponseWriter, r *request) error {
	if err := r.noBody(w, "the run is the one in the address"); err != nil {
		return err
	}
	run, err := s.snapshotRun(r)
	if err != nil {
		return err
	}
	if err := s.cfg.System.Snapshotted(r.Context(), audit.OpCancel, r.project.Namespace, run.Name, run.ID, nil); err != nil {
		return err
	}
	if err := s.cfg.Snapshots.Cancel(r.Context(), r.project, run); err != nil {
		return err
	}
	run, err = s.cfg.Snapshots.Get(r.Context(), r.project, run.ID)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}
