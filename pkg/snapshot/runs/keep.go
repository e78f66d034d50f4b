package runs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
)

// pruned are the profiles that a prune is about: one, or those that have a retention.
func pruned(p *project.Project, profile string) ([]string, error) {
	var out []string
	for _, c := range snapshot.Profiles(p) {
		if c.Name == profile || profile == "" && c.Config.Retention != nil {
			out = append(out, c.Name)
		}
	}
	if profile != "" && len(out) == 0 {
		_, err := snapshot.ProfileOf(p, profile)
		return nil, err
	}
	return out, nil
}

// PlanPrune says of each snapshot of a profile, or of all that have a retention (""), whether it is kept, and why.
func (s *Service) PlanPrune(ctx context.Context, p *project.Project, profile string) ([]api.SnapshotDecision, error) {
	profiles, err := pruned(p, profile)
	out := []api.SnapshotDecision{}
	for _, name := range profiles {
		plan, err := s.snapshots.Prune(ctx, p, name, snapshot.PolicyOf(p, name), snapshot.PruneOptions{DryRun: true})
		if err != nil {
			return nil, err
		}
		out = append(out, DecisionsOut(name, plan.Decisions)...)
	}
	return out, err
}

// prune removes what is not kept, of one profile or of all. What can't be done for one profile keeps no other from it.
func (s *Service) prune(p *project.Project, what Start) (*work, error) {
	profiles, err := pruned(p, what.Profile)
	if err != nil {
		return nil, err
	}
	w := &work{name: what.Profile}
	if w.name == "" {
		w.name = AllProfiles
	}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		result := &api.SnapshotResult{Profile: what.Profile}
		var failures []error
		for _, name := range profiles {
			err := patiently(ctx, patience, func() error {
				out, err := s.snapshots.Prune(ctx, p, name, snapshot.PolicyOf(p, name), snapshot.PruneOptions{Report: t.report})
				if err == nil {
					addPruned(result, name, out)
				}
				return err
			})
			if err != nil {
				t.live.Log(slog.LevelError, name+": "+errs.From(err).Message)
				failures = append(failures, err)
			}
		}
		if len(failures) > 0 {
			return nil, failures[0]
		}
		return result, nil
	}
	return w, nil
}

func addPruned(result *api.SnapshotResult, profile string, out *snapshot.Pruned) {
	for _, d := range DecisionsOut(profile, out.Decisions) {
		if slices.Contains(out.Removed, d.ID) {
			result.Removed = append(result.Removed, d)
		} else {
			result.Kept = append(result.Kept, d)
		}
	}
}

// verifyAll checks the snapshots of a profile.
func (s *Service) verifyAll(p *project.Project, what Start) (*work, error) {
	if _, err := snapshot.ProfileOf(p, what.Profile); err != nil {
		return nil, err
	}
	w := &work{name: what.Profile, how: sampleOf(what)}
	if what.Newest {
		w.how = append(w.how, bson.E{Key: "newest", Value: true})
	}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		out, err := s.snapshots.VerifyAll(ctx, p, what.Profile, what.Newest, snapshot.VerifyOptions{Sample: what.Sample, Report: t.report})
		if out == nil {
			return nil, err
		}
		for _, one := range out.Damaged {
			s.found(ctx, p, "a check has found damage", one.ID, one.Verified.Problems, one.Verified.Found)
		}
		if err == nil {
			err = out.Err()
		}
		return &api.SnapshotResult{Profile: what.Profile, Checked: checkedOut(out)}, err
	}
	return w, nil
}

// DrillDiffers is the code of a drill whose records or files did not come back as they are in the snapshot.
const DrillDiffers = "drill_differs"

// drill rehearses a restore: of a snapshot, or of the newest of a profile when its turn comes.
func (s *Service) drill(ctx context.Context, p *project.Project, what Start) (*work, error) {
	w := &work{name: what.Profile, subject: what.Snapshot}
	if what.Snapshot != "" {
		var err error
		if w.name, err = s.Where(ctx, p, what.Snapshot); err != nil {
			return nil, err
		}
	} else if _, err := snapshot.ProfileOf(p, what.Profile); err != nil {
		return nil, err
	}
	w.do = func(ctx context.Context, t *teller) (*api.SnapshotResult, error) {
		id := what.Snapshot
		if id == "" {
			var err error
			if id, err = s.newestOf(ctx, p, what.Profile); err != nil {
				return nil, err
			}
		}
		began := time.Now()
		out, err := s.snapshots.Drill(ctx, p, id, t.report)
		if err != nil {
			return nil, err
		}
		result := &api.SnapshotResult{Snapshot: id, Profile: w.name, Drill: &api.SnapshotDrill{
			Documents: out.Records, Bytes: out.Bytes, Files: out.Files, Seconds: time.Since(began).Seconds(),
			Problems: out.Problems, Found: findingsOut(out.Found),
		}}
		if out.Problems > 0 {
			s.found(ctx, p, "a drill has found what can't be restored", id, out.Problems, out.Found)
			return result, errs.New(errs.Conflict, DrillDiffers, "the snapshot %s can't be restored as it is: %s", id, snapshot.Named(out.Found, out.Problems))
		}
		return result, nil
	}
	return w, nil
}

func (s *Service) newestOf(ctx context.Context, p *project.Project, profile string) (string, error) {
	all, err := s.List(ctx, p)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].Profile == profile {
			return all[i].ID, nil
		}
	}
	return "", errs.New(errs.NotFound, snapshot.ErrNotFound.Code, "the profile %s has no snapshot to be restored on trial: take one first", profile)
}

func sampleOf(what Start) bson.D {
	if what.Sample == 0 {
		return nil
	}
	return bson.D{{Key: "sample", Value: what.Sample}}
}
