package project

import (
	"strconv"
	"time"

	"github.com/svcctl/svc/pkg/schedule"
	"github.com/svcctl/svc/pkg/schema"
)

// SnapshotProfile is one compiled profile of snapshots. It is immutable.
type SnapshotProfile struct {
	Name   string
	Config *schema.Snapshot
	Zone   *time.Location // whose calendar its retention follows: that of Take

	// When things are done by themselves, if the profile is enabled; nil: never.
	Take   schedule.Schedule // a snapshot
	Verify schedule.Schedule // a check of those that there are
	Drill  schedule.Schedule // a restore on trial
}

// Enabled says whether anything is done by itself.
func (s *SnapshotProfile) Enabled() bool { return s.Config.Enabled }

// snapshots compiles the profiles of snapshots.
func (c *compiler) snapshots(config *schema.Project) []*SnapshotProfile {
	out := make([]*SnapshotProfile, 0, len(config.Snapshots))
	for i, s := range config.Snapshots {
		at := "snapshots[" + strconv.Itoa(i) + "]"
		profile := &SnapshotProfile{Name: s.Name, Config: s, Take: c.schedule(s.Schedule, at+".schedule")}
		profile.Zone = schedule.Zone(profile.Take)
		if s.Verify != nil {
			profile.Verify = c.schedule(s.Verify.Schedule, at+".verify.schedule")
		}
		if s.Drill != nil {
			profile.Drill = c.schedule(s.Drill.Schedule, at+".drill.schedule")
		}
		out = append(out, profile)
	}
	return out
}

// schedule compiles when something is done; nil: never.
func (c *compiler) schedule(text schema.Schedule, at string) schedule.Schedule {
	if text == "" {
		return nil
	}
	s, err := schedule.Parse(string(text))
	if err != nil {
		c.fail(at, schema.CodeInvalid, "%s", err)
	}
	return s
}
