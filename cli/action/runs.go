package action

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/client"
)

// ofActions makes the verbs about the runs of actions.
func ofActions(st *command.State) runs.Noun {
	return runs.Noun{St: st, On: onAction, Of: runs.OfAction}
}

func newRuns(st *command.State) *cobra.Command {
	return ofActions(st).List(&cobra.Command{
		Use: "runs", Aliases: []string{"history"}, Short: "List the runs of an action, newest first",
		Long: `List the runs of an action that runs in the background, newest first: your own, and all with project.read. The service keeps the newest 100,
for 30 days.`,
		Example: `  svcctl action runs shop export-products
  svcctl action runs shop export-products --status failed -o json`,
	})
}

func newLogs(st *command.State) *cobra.Command {
	return ofActions(st).Logs(&cobra.Command{
		Use: "logs", Short: "Show the log of a run of an action",
		Long: `Show the log and the progress of a run of an action on stdout: of the newest one, unless --run names another. With --follow the command goes on
until the run ends.`,
		Example: `  svcctl action logs shop export-products
  svcctl action logs shop export-products --run 5f0c6a --follow`,
	})
}

func newCancel(st *command.State) *cobra.Command {
	return ofActions(st).Cancel(&cobra.Command{
		Use: "cancel", Short: "Cancel a run of an action",
		Long: `Cancel a run of an action whose config says cancellable: true. It is the one that is active; where several are, --run says which. It ends
soon; svcctl action logs --follow waits for that.`,
		Example: `  svcctl action cancel shop export-products
  svcctl action cancel shop export-products --run 5f0c6a`,
	})
}

func newResult(st *command.State) *cobra.Command {
	var id string
	cmd := onAction(st, &cobra.Command{
		Use: "result", Short: "Print what a run of an action gave",
		Long: `Print what a run of an action gave, as svcctl action call --wait would have: JSON in the format of -o, anything else as it is. It is the
newest run, unless --run names another.`,
		Example: `  svcctl action result shop export-products > products.csv
  svcctl action result shop export-products --run 5f0c6a`,
	}, func(ctx context.Context, c *client.Client, namespace, action string) error {
		id, err := runs.OfAction(c, namespace, action).Pick(ctx, id)
		if err != nil {
			return err
		}
		return showResult(ctx, st, c, namespace, action, id)
	})
	ofActions(st).RunFlag(cmd, &id)
	return cmd
}
