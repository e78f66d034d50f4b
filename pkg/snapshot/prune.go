package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot/retention"
)

// Policy says which snapshots of a profile are kept.
type Policy struct {
	Retention *schema.Retention // nil: all
	Zone      *time.Location    // whose hours, days and weeks count; nil: UTC
}

// PolicyOf gives the policy of a profile of the project's config, in the zone of its schedule, or of one that the service keeps for itself.
// What is neither keeps all.
func PolicyOf(p *project.Project, profile string) Policy {
	for _, c := range Profiles(p) {
		if c.Name == profile {
			return Policy{Retention: c.Config.Retention, Zone: c.Zone}
		}
	}
	return Policy{}
}

// PruneOptions say how snapshots are pruned.
type PruneOptions struct {
	DryRun bool // nothing is removed
	Report Report
}

// Pruned is what becomes of the snapshots of a profile.
type Pruned struct {
	Decisions []retention.Decision // about each of them, newest first
	Removed   []string             // ids in the order in which they went, the oldest first
	Skipped   []Finding            // those that should go and stay for now: id, and why
}

// Prune removes the snapshots of a profile that a policy does not keep, one at a time, the oldest first. Whatever it is interrupted by, what
// is listed then is whole, and the next call goes on; each that it has begun with is gone. What is read, or was pinned or checked meanwhile,
// is skipped. On an error what it gives says what was removed before.
func (s *Snapshots) Prune(ctx context.Context, p *project.Project, profile string, policy Policy, o PruneOptions) (*Pruned, error) {
	if o.DryRun {
		out := &Pruned{}
		var err error
		out.Decisions, err = s.decide(ctx, p, profile, policy)
		return out, err
	}
	out := &Pruned{}
	err := s.alone(ctx, p.Namespace, func(ctx context.Context) (err error) {
		if out.Decisions, err = s.decide(ctx, p, profile, policy); err != nil {
			return err
		}
		return s.prune(ctx, p, profile, out, newTracker(o.Report))
	})
	return out, err
}

// decide says of each snapshot of a profile whether it is kept.
func (s *Snapshots) decide(ctx context.Context, p *project.Project, profile string, policy Policy) ([]retention.Decision, error) {
	all, err := s.List(ctx, p)
	if err != nil {
		return nil, err
	}
	if policy.Zone == nil {
		policy.Zone = time.UTC
	}
	var of []retention.Snapshot
	for i := range all {
		if info := &all[i]; info.Profile == profile {
			of = append(of, retention.Snapshot{ID: info.ID, Time: info.moment(), Pinned: info.State.Pinned, Verified: info.State.Whole(), Lacks: info.Lacks(), Damaged: info.Damaged()})
		}
	}
	decisions, err := retention.Decide(policy.Retention, policy.Zone, s.o.Now(), of)
	if err != nil {
		return nil, err
	}
	if len(decisions) > 0 && !slices.ContainsFunc(decisions, func(d retention.Decision) bool { return d.Keep }) {
		return nil, errs.New(errs.Limit, "bad_retention", "the retention would delete every snapshot of %s, so nothing is pruned: have it keep some, such as by keepLast", profile)
	}
	keepLately(decisions, all, schema.IsOwnSnapshots(profile), s.o.Now().AddDate(0, 0, -ownDays))
	return decisions, nil
}

// moment is when the snapshot was taken, as exactly as that is known: of one that can't be read, each id begins with it.
func (i *Info) moment() time.Time {
	if !i.ConsistentAt.IsZero() {
		return i.ConsistentAt
	}
	at, _ := time.Parse(timeOfID, i.ID[:len(timeOfID)])
	return at
}

// keepLately keeps what has come in since a moment, and, if it is asked for, what was checked since then.
func keepLately(decisions []retention.Decision, all []Info, checked bool, since time.Time) {
	reasons := map[string]string{}
	for i := range all {
		switch st := all[i].State; {
		case st.ImportedAt.After(since):
			reasons[all[i].ID] = LatelyImported
		case checked && st.Verified != nil && st.Verified.At.After(since):
			reasons[all[i].ID] = LatelyChecked
		}
	}
	for i := range decisions {
		if d := &decisions[i]; !d.Keep && reasons[d.ID] != "" {
			d.Keep, d.Reasons = true, []string{reasons[d.ID]}
		}
	}
}

// Lacks says that files of its records were missing or damaged when it was taken: it has what there was, and so may be verified.
func (i *Info) Lacks() bool {
	counts := &i.Counts
	damaged := len(i.Differing) > 0 && counts.Warnings > counts.Missing // else these are files of which records say nothing
	return counts.Missing > 0 || damaged || i.State.Verified != nil && i.State.Verified.Dangling > 0
}

// Damaged says that the snapshot, or what is known of it, can't be read, or was found not to be what was written.
func (i *Info) Damaged() bool {
	return i.Problem != "" || i.State.Damaged || i.State.Damage != nil
}

func (s *Snapshots) prune(ctx context.Context, p *project.Project, profile string, out *Pruned, t *tracker) error {
	var unwanted []retention.Decision
	for _, d := range slices.Backward(out.Decisions) {
		if !d.Keep {
			unwanted = append(unwanted, d)
		}
	}
	t.begin(Pruning, int64(len(unwanted)), 0)
	root, err := s.folder(p, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritten(err, "open the folder of snapshots")
	}
	defer root.Close() //nolint:errcheck // what was removed is gone, or the next sweep does it
	var newest []string
	for _, d := range out.Decisions {
		if slices.Contains(d.Reasons, retention.NewestVerified) || slices.Contains(d.Reasons, retention.NewestComplete) {
			newest = append(newest, d.ID)
		}
	}
	for _, d := range unwanted {
		if ctx.Err() != nil {
			return ended(ctx, ctx.Err())
		}
		switch gone, why := s.pruneOne(ctx, p, root, profile, d, newest); {
		case why == nil && gone:
			if out.Removed = append(out.Removed, d.ID); d.Damaged {
				s.changed(p)
			}
		case why == nil: // somebody else has deleted it
		case errors.Is(why, ErrInUse), errors.Is(why, ErrPinned), errors.Is(why, errChecked):
			text := errs.From(why).Message
			out.Skipped = append(out.Skipped, Finding{Path: d.ID, Text: text})
			t.warn(d.ID + " stays for now: " + text)
		default:
			return unwritten(why, "remove the snapshot "+d.ID)
		}
		t.done(1, 0)
		t.tell()
	}
	return nil
}

// errChecked is for a snapshot that was decided about before a check of it, or of the newest that is verified, has ended: it may be the newest by now that was
// found whole, or be damaged, or be it no more.
var errChecked = errs.New(errs.Conflict, "snapshot_checked", "it was checked meanwhile, or the newest that is verified was: prune again")

// pruneOne removes a snapshot if all is still so as it was decided about. newest are the ids of the newest one that is verified, and of the newest that lacks no file, too; empty: there is none.
func (s *Snapshots) pruneOne(ctx context.Context, p *project.Project, root *folder.Folder, profile string, as retention.Decision, newest []string) (gone bool, err error) {
	at := path.Join(profile, as.ID)
	if _, err := root.Stat(at); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	err = s.removeOne(ctx, p, root, at, func(now State) error {
		newestIs := !slices.ContainsFunc(newest, func(id string) bool { return !isWhole(root, path.Join(profile, id)) }) // nobody changes that before this one is gone
		switch {
		case !as.Damaged && now.Whole() == as.Verified && now.Damage == nil && (newestIs || !as.Verified):
			return nil
		case as.Damaged && newestIs:
			if info, err := infoOf(root, profile, as.ID); err != nil || info.Damaged() {
				return err
			}
		}
		return errChecked
	})
	return err == nil, err
}

// isWhole says that a snapshot is there, and known to be whole.
func isWhole(root *folder.Folder, at string) bool {
	_, err := root.Stat(at)
	state := readState(root, at)
	return err == nil && state.Whole()
}
