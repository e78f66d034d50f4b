package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/due"
	"github.com/svcctl/svc/pkg/status"
)

// snapshotPass is how long it takes at most until a pass sees what it was not told of: a clock that was set, the end of a run of another
// instance.
const snapshotPass = 30 * time.Second

// snapshotReconciler takes, checks and rehearses the snapshots of the served generation that are due. Its key is the id of the project's
// registration.
type snapshotReconciler struct {
	Deps

	mu         sync.Mutex
	namespaces map[string]string // by id, of those whose snapshots are looked after
}

// Reconcile begins what is due, shows how it stands, and comes back when the next thing is.
func (r *snapshotReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	p := r.Registry.ByID(id)
	r.note(id, p)
	if p == nil {
		return controller.Result{}, nil
	}
	report, err := r.Snapshots.Pass(ctx, p)
	if r.Registry.ByID(id) == nil { // unregistered meanwhile
		r.note(id, nil)
		return controller.Result{}, nil
	}
	r.show(id, aboutSnapshots, scheduled(p, &report, err))
	if err == nil { // else it is not known
		r.show(id, aboutChecks, verified(p, &report))
	}
	var result controller.Result
	if report.Scheduled+report.Checked > 0 {
		result.RequeueAfter = snapshotPass
	}
	if !report.Next.IsZero() {
		result.RequeueAfter = min(snapshotPass, max(report.Next.Sub(r.Now()), time.Millisecond))
	}
	return result, err
}

// show shows how a concern stands; a condition without a message is of what there is not.
func (d Deps) show(id, concern string, c status.Condition) {
	if c.Message == "" {
		d.Board.Unset(id, c.Type)
		return
	}
	d.Board.Set(id, c)
	d.events.tellCondition(id, concern, c)
}

// note lets go of what is known of a project that is gone.
func (r *snapshotReconciler) note(id string, p *project.Project) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != nil {
		r.namespaces[id] = p.Namespace
		return
	}
	namespace := r.namespaces[id]
	delete(r.namespaces, id)
	if other, err := r.Registry.Get(namespace); namespace != "" && (err != nil || other == nil) { // else another registration has it
		r.Snapshots.Forget(namespace)
	}
}

// scheduled tells how taking and removing snapshots stand, without a message where no profile is enabled.
func scheduled(p *project.Project, report *due.Report, failed error) status.Condition {
	cond := status.Condition{Type: status.SnapshotsScheduled, Status: status.True, Reason: status.ReasonScheduled, ObservedGeneration: p.Generation}
	switch taking, pruning := failing(report, operation.Snapshot), failing(report, operation.Prune); {
	case !hasSnapshots(p):
	case report.Folder != nil:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonSnapshotFailed, "the folder of snapshots can't be used: "+publicText(report.Folder)
	case failed != nil:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonStoreError, "the store failed; svcd tries again by itself"
	case taking != "":
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonSnapshotFailed, taking+"; svcd tries again by itself"
	case pruning != "":
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonPruneFailed, pruning+"; svcd tries again by itself"
	default:
		cond.Message = fmt.Sprintf("%s, %d with a schedule", counted(report.Profiles, "enabled profile", "enabled profiles"), report.Scheduled)
	}
	return cond
}

// verified tells what checks and drills have found, without a message where none has a schedule.
func verified(p *project.Project, report *due.Report) status.Condition {
	cond := status.Condition{Type: status.SnapshotsVerified, Status: status.True, Reason: status.ReasonVerified, ObservedGeneration: p.Generation}
	var damaged, missing []string
	sampled := map[string]bool{} // profiles with snapshots of which a part was read, and never all
	for _, profile := range p.Snapshots {
		if !profile.Enabled() || profile.Verify == nil && profile.Drill == nil {
			continue
		}
		for i := range report.Snapshots {
			switch info := &report.Snapshots[i]; {
			case info.Profile != profile.Name:
			case info.Damaged():
				damaged = append(damaged, profile.Name+"/"+info.ID+whatIsWrong(info, hasNewer(report.Snapshots, info)))
			case info.State.Verified != nil && !info.State.Whole():
				sampled[profile.Name] = true
			}
		}
	}
	for _, t := range report.Tasks {
		if t.Kind == operation.Verify && wasChecked(report.Snapshots, t.Profile) { // by hand, or by a schedule
			continue
		}
		if (t.Kind == operation.Verify || t.Kind == operation.Drill) && t.Succeeded.IsZero() {
			missing = append(missing, map[operation.Kind]string{operation.Verify: "check of ", operation.Drill: "drill of "}[t.Kind]+t.Profile)
		}
	}
	slices.Sort(missing)
	drilling, checking := failing(report, operation.Drill), failing(report, operation.Verify)
	switch {
	case report.Checked == 0:
	case len(damaged) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonSnapshotDamaged, strings.Join(damaged, ", ")+endsAlarm
	case drilling != "":
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonDrillFailed, drilling
	case checking != "":
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonVerifyFailed, checking+"; svcd tries again by itself"
	case len(missing) > 0:
		cond.Status, cond.Reason, cond.Message = status.Unknown, status.ReasonUnverified, "still to come: the first "+strings.Join(missing, ", ")
	default:
		cond.Message = foundWhole(report.Checked-len(sampled), len(sampled))
	}
	return cond
}

// foundWhole tells of how many profiles the snapshots were found whole, and of how many what was read of them.
func foundWhole(all, sampled int) string {
	whole := "the snapshots of " + counted(all, "profile", "profiles") + " were found whole"
	part := "a sample of the files of %s of " + counted(sampled, "profile", "profiles")
	switch {
	case sampled == 0:
		return whole
	case all == 0:
		return fmt.Sprintf(part, "the snapshots") + " was found whole"
	}
	return whole + ", and " + fmt.Sprintf(part, "those")
}

// endsAlarm says what ends it that damage is told of.
const endsAlarm = "; this is told until the snapshot is deleted (svcctl snapshot delete), pruned, or found whole by a check of everything"

// hasNewer says that a newer snapshot of the same profile is known to be whole.
func hasNewer(all []snapshot.Info, than *snapshot.Info) bool {
	return slices.ContainsFunc(all, func(i snapshot.Info) bool {
		return i.Profile == than.Profile && i.ID > than.ID && i.State.Whole() && !i.Damaged()
	})
}

// wasChecked says that a snapshot of a profile was checked.
func wasChecked(all []snapshot.Info, profile string) bool {
	return slices.ContainsFunc(all, func(i snapshot.Info) bool { return i.Profile == profile && i.State.Verified != nil })
}

// whatIsWrong is the first thing that is known to be wrong with a snapshot, and how many more there are: the snapshot has them.
func whatIsWrong(info *snapshot.Info, newer bool) string {
	switch v := info.State.Damage; {
	case info.Problem != "":
		return " (" + info.Problem + ")"
	case v != nil && len(v.Found) > 0:
		text := snapshot.Named(v.Found[:1], v.Problems)
		if newer { // it has been taken
			text = strings.Replace(text, ": take a new snapshot", ", and a newer snapshot is verified", 1)
		}
		return " (" + text + ")"
	}
	return ""
}

// failing tells of the profiles for which something has failed, and why; "": there are none. What a check has found is told of by the
// snapshots themselves.
func failing(report *due.Report, kind operation.Kind) string {
	var out []string
	for i := range report.Tasks {
		if t := &report.Tasks[i]; t.Kind == kind && t.Failing() && (kind != operation.Verify || t.Code != snapshot.ErrDamaged.Code) {
			out = append(out, t.Profile+": "+t.Why)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// hasSnapshots says that something is done with snapshots by itself.
func hasSnapshots(p *project.Project) bool {
	return slices.ContainsFunc(p.Snapshots, (*project.SnapshotProfile).Enabled)
}
