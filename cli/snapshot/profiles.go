package snapshot

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newProfiles(st *command.State) *cobra.Command {
	return st.AllFlag(&cobra.Command{
		Use:   "profiles [NAMESPACE]",
		Short: "List the profiles that snapshots of a project are taken by",
		Long: `List the profiles that snapshots of a project are taken by, as its config has them: what they take, when the next one is due, and how many
there are. LAST is the age of the newest one, and KEEPS what pruning keeps. backup and before-restore are profiles of the service: of backups, and of what restores
have replaced.`,
		Example: `  svcctl snapshot profiles blog
  svcctl snapshot profiles blog -o wide`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			return runProfiles(ctx, st, c, namespace)
		}),
	})
}

func runProfiles(ctx context.Context, st *command.State, c *client.Client, namespace string) error {
	list, err := c.SnapshotProfiles(ctx, namespace)
	if err != nil {
		return err
	}
	t := output.NewTable("NAME", "SCHEDULE", "NEXT", "SNAPSHOTS", "LAST", "KEEPS", "COLLECTIONS", "+MEDIA", "+MODE", "+DEDUP", "+DESCRIPTION")
	result := output.Result{Value: list, Table: t}
	for i := range list.Items {
		p := &list.Items[i]
		last, next := "-", runs.At(p.NextAt)
		if p.LastSnapshot != nil && !p.LastSnapshot.ConsistentAt.IsZero() {
			last = output.Age(st.Now(), p.LastSnapshot.ConsistentAt.Time)
		}
		if !p.Enabled && p.Schedule != "" {
			next = "not enabled"
		}
		t.Row(p.Name, dash(p.Schedule), next, p.Snapshots, last, RetentionOf(p.Retention), ContentOf(p), p.IncludeMedia, p.Mode, p.CollectionDedup, p.Description)
		result.Names = append(result.Names, "profile/"+p.Name)
	}
	if !slices.ContainsFunc(list.Items, func(p api.SnapshotProfile) bool { return !p.Own }) {
		st.Notef("%s declares no snapshot profiles of its own: the key snapshots of its config does", namespace)
	}
	st.FitTable(t)
	return st.Printer().Print(result)
}
