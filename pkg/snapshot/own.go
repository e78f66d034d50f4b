package snapshot

import (
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// The profiles of the service.
const (
	BackupProfile = schema.BackupProfile
	SafetyProfile = schema.SafetyProfile
)

// Why a snapshot is kept although no rule does so: of a profile of the service one that was checked within ownDays, and of any one that has
// come in within them, so that who brings an old one here has time to restore it.
const (
	LatelyChecked  = "checked lately"
	LatelyImported = "imported lately"
)

const ownDays = 7

// OwnProfiles are the profiles that the service keeps for itself, with their retention: every project has them. They are enabled, and nothing
// is taken by their schedule.
func OwnProfiles() []*project.SnapshotProfile {
	out := make([]*project.SnapshotProfile, 0, 2)
	for _, own := range []schema.Snapshot{
		{Name: BackupProfile, Description: "backups, of everything"},
		{Name: SafetyProfile, Description: "what restores have replaced"},
	} {
		own.Enabled, own.IncludeMedia, own.CollectionDedup, own.Mode = true, true, true, string(JSON)
		own.Retention = &schema.Retention{KeepLast: 10, KeepWithin: schema.Span{Days: ownDays}}
		out = append(out, &project.SnapshotProfile{Name: own.Name, Config: &own, Zone: time.UTC})
	}
	return out
}

// Profiles are those of the project's config, and behind them those of the service.
func Profiles(p *project.Project) []*project.SnapshotProfile {
	return append(slices.Clone(p.Snapshots), OwnProfiles()...)
}

// takesIn refuses a profile that an archive is to come to be of, if nobody has one of that name: the archive, the config, the service, and the snapshots that
// there are. It is a slip of the pen then, and nothing would look after the snapshot.
func takesIn(p *project.Project, root *folder.Folder, own, profile string) error {
	names, err := profileDirs(root)
	if err != nil {
		return unwritten(err, "list the profiles")
	}
	for _, one := range Profiles(p) {
		names = append(names, one.Name)
	}
	if profile == own || slices.Contains(names, profile) {
		return nil
	}
	slices.Sort(names)
	return errs.New(errs.NotFound, "profile_not_found",
		"the project has no snapshot profile %.80q that an archive could come to be of: leave it out, for that of the archive, %.80q, or name one of %s; the key snapshots of the config declares more",
		profile, own, some("%.80q", slices.Compact(names)))
}
