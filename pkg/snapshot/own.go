package snapshot

import (
	"slices"
	"time"

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
