package httpapi

import (
	"maps"
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

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
	for _, profile := range snapshot.Profiles(r.project) {
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
		Name: c.Name, Description: c.Description, Own: schema.IsOwnSnapshots(c.Name), Enabled: c.Enabled, Schedule: string(c.Schedule), Collections: []string{}, Excluded: []string{},
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
