package snapshot

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

func newPin(st *command.State) *cobra.Command {
	return onSnapshot(st, &cobra.Command{
		Use: "pin", Short: "Keep a snapshot from being deleted and pruned",
		Example: `  svcctl snapshot pin blog 20260301T031500Z-k3x9q2`,
	}, pinning(st, true))
}

func newUnpin(st *command.State) *cobra.Command {
	return onSnapshot(st, &cobra.Command{
		Use: "unpin", Short: "Let a pinned snapshot be deleted and pruned again",
		Example: `  svcctl snapshot unpin blog 20260301T031500Z-k3x9q2`,
	}, pinning(st, false))
}

func pinning(st *command.State, pinned bool) func(context.Context, *client.Client, string, string) error {
	return func(ctx context.Context, c *client.Client, namespace, id string) error {
		s, err := c.PinSnapshot(ctx, namespace, id, pinned)
		if err != nil {
			return err
		}
		return Print(st, s, *s)
	}
}

func newDelete(st *command.State) *cobra.Command {
	var yes bool
	cmd := onSnapshot(st, &cobra.Command{
		Use: "delete", Aliases: []string{"rm"}, Short: "Delete a snapshot",
		Long: `Delete a snapshot. It asks first; --yes goes without. One that is pinned is refused.`, Example: `  svcctl snapshot delete blog 20260301T031500Z-k3x9q2 --yes`,
	}, func(ctx context.Context, c *client.Client, namespace, id string) error {
		if !yes {
			s, err := c.Snapshot(ctx, namespace, id, false) // what is not there need not be asked about
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Delete the snapshot %s (profile %s, %s) of %s?", id, s.Profile, output.Count(s.Counts.Documents, "record"), namespace)
			if err := st.Confirm(yes, question); err != nil {
				return err
			}
		}
		if err := c.DeleteSnapshot(ctx, namespace, id); err != nil {
			return err
		}
		t := output.NewTable("DELETED")
		t.Row(id)
		return st.Printer().Print(output.Result{Value: map[string]string{"id": id}, Table: t, Names: []string{command.SnapshotName + id}})
	})
	command.YesFlag(cmd, &yes)
	return cmd
}
