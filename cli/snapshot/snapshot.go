package snapshot

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl snapshot.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("snapshot", "Take, check, compare, restore and prune copies of a project",
		newProfiles(st), newCreate(st, nil), newList(st), newShow(st), newDiff(st, nil), newVerify(st, nil), newDrill(st, nil), newPin(st), newUnpin(st), newDelete(st),
		newRestore(st, nil), newPrune(st, nil), newExport(st), newImport(st), newRuns(st), newCancel(st), newAttach(st))
}

// onSnapshot makes a verb that is about one snapshot.
func onSnapshot(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, id string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] ID"
	cmd.Args = command.PlaceArgs(1)
	cmd.ValidArgsFunction = st.CompleteSnapshots("", 1)
	cmd.RunE = st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
		c, err := st.PatientClient()
		if err != nil {
			return err
		}
		return run(ctx, c, namespace, IDOf(rest[0]))
	})
	return cmd
}

// MaybeOne makes a verb with one argument behind the namespace that may be left out.
func MaybeOne(st *command.State, cmd *cobra.Command, what string, run func(ctx context.Context, c *client.Client, namespace, one string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] [" + what + "]"
	cmd.Args = command.Args(cobra.MaximumNArgs(2))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		namespace, one, err := st.PlaceMaybe(args)
		if err != nil {
			return err
		}
		c, err := st.PatientClient()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, namespace, one)
	}
	return cmd
}

// IDOf is the id of a snapshot, as lists and -o name have it.
func IDOf(arg string) string { return strings.TrimPrefix(arg, command.SnapshotName) }
