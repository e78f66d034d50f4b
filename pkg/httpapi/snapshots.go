package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

const defaultSnapshots = 100 // of one page

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
	r.useReserve()
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
	r.useReserve()
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

// drillSnapshot restores a snapshot on trial.
func (s *Server) drillSnapshot(w http.ResponseWriter, r *request) error {
	if err := r.noBody(w, "the snapshot is the one in the address"); err != nil {
		return err
	}
	return s.startSnapshots(w, r, audit.OpDrill, runs.Start{Kind: operation.Drill, Snapshot: r.param("id")})
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
	if err := filled(body, api.ParamProfile); err != nil {
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
