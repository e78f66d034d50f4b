package command

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// snapshotID is how ids of snapshots begin: a namespace never does.
var snapshotID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-`)

// runID is how ids of runs are, as far as somebody has started them.
var runID = regexp.MustCompile(`^[0-9a-f]{24}$`)

// IsSnapshotID says that an argument is the id of a snapshot.
func IsSnapshotID(arg string) bool {
	return snapshotID.MatchString(strings.TrimPrefix(arg, SnapshotName))
}

// What -o name puts before ids, and arguments may have before them.
const (
	SnapshotName = "snapshot/"
	RunName      = "run/"
)

// CompleteSnapshots completes a namespace and then a snapshot of it, of the profile, "" for all; a command with want of them completes as many.
func (st *State) CompleteSnapshots(profile string, want int) CompleteFunc {
	return st.completeIn(want, func(ctx context.Context, c *client.Client, namespace string) []string {
		list, err := c.ListSnapshots(ctx, namespace, profile, client.Query{})
		return namesOf(list, err, func(s api.Snapshot) string {
			return s.ID + "\t" + s.Profile + ", " + output.Age(st.Now(), s.ConsistentAt.Time)
		})
	})
}

// CompleteProfiles completes a namespace and then a profile of snapshots.
func (st *State) CompleteProfiles() CompleteFunc { return st.completeIn(1, profileNames) }

// CompleteTakenProfiles is CompleteProfiles of those that snapshots are taken by.
func (st *State) CompleteTakenProfiles() CompleteFunc {
	return st.completeIn(1, func(ctx context.Context, c *client.Client, namespace string) []string {
		list, err := c.SnapshotProfiles(ctx, namespace)
		if err == nil {
			list.Items = slices.DeleteFunc(list.Items, func(p api.SnapshotProfile) bool { return p.Own })
		}
		return profilesOf(list, err)
	})
}

// CompleteProfileFlag completes a profile of snapshots, in a flag of a command whose first argument may be a namespace.
func (st *State) CompleteProfileFlag(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
		namespace, err := st.Namespace()
		if len(args) > 0 && !IsSnapshotID(args[0]) {
			namespace = args[0]
		}
		if err != nil || namespace == "" {
			return nil
		}
		return profileNames(ctx, c, namespace)
	})
}

// CompleteSnapshotRuns completes a namespace and then a run of its snapshots, those that go on first.
func (st *State) CompleteSnapshotRuns() CompleteFunc {
	return st.completeIn(1, func(ctx context.Context, c *client.Client, namespace string) []string {
		list, err := c.ListSnapshotRuns(ctx, namespace, client.SnapshotRunsQuery{Limit: 20})
		return namesOf(list, err, func(r api.Run) string { return r.ID + "\t" + r.Kind + " " + r.Name + ", " + r.Status })
	})
}

func profileNames(ctx context.Context, c *client.Client, namespace string) []string {
	return profilesOf(c.SnapshotProfiles(ctx, namespace))
}

func profilesOf(list *api.List[api.SnapshotProfile], err error) []string {
	return namesOf(list, err, func(p api.SnapshotProfile) string { return p.Name + "\t" + output.Cut(p.Description, 40) })
}

// isRunOrSnapshot says that an argument is the id of a snapshot or a run.
func isRunOrSnapshot(arg string) bool {
	return IsSnapshotID(arg) || strings.HasPrefix(arg, RunName) || runID.MatchString(arg)
}
