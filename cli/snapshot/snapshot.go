package snapshot

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl snapshot.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("snapshot", "Take, check, compare, restore and prune copies of a project",
		newCreate(st, nil), newList(st), newDiff(st, nil), newRestore(st, nil), newProfiles(st), newShow(st), newVerify(st, nil), newDrill(st, nil), newPin(st), newUnpin(st), newDelete(st),
		newPrune(st, nil), newExport(st), newImport(st), newRuns(st), newCancel(st), newAttach(st))
}

// onSnapshot makes a verb that is about one snapshot. Without its id it says which there are.
func onSnapshot(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, id string) error) *cobra.Command {
	verb := cmd.Use
	cmd.Use += " [NAMESPACE] ID"
	cmd.Args = command.Args(cobra.MaximumNArgs(2))
	cmd.ValidArgsFunction = st.CompleteSnapshots("", 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if missing, namespace := isMissing(st, args); missing {
			return missingID(cmd.Context(), st, verb, namespace)
		}
		namespace, rest, err := st.Place(args, 1)
		if err != nil {
			return err
		}
		c, err := st.Client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, namespace, IDOf(rest[0]))
	}
	return cmd
}

// isMissing says that the arguments have no id of a snapshot: none at all, or one argument that can only be the namespace. namespace is that which is
// meant; "": none is known.
func isMissing(st *command.State, args []string) (missing bool, namespace string) {
	known, err := st.Namespace()
	switch {
	case err != nil: // which whoever goes on says
		return false, ""
	case len(args) == 0:
		return true, known
	case len(args) == 1 && !command.IsSnapshotID(args[0]) && (known == "" || known == args[0]):
		return true, args[0]
	}
	return false, ""
}

// shownIDs is how many snapshots are named to whom has named none.
const shownIDs = 3

// missingID is the error of a command line without the id of a snapshot, with the newest ones as far as they can be had.
func missingID(ctx context.Context, st *command.State, verb, namespace string) error {
	e := &command.Error{Exit: command.ExitUsage, Code: "usage", Message: "which snapshot? its id is missing"}
	if namespace == "" {
		e.Message = "which snapshot? the namespace of the project and the id of the snapshot are missing"
		e.Hint = "such as: svcctl snapshot " + verb + " blog 20260301T031500Z-k3x9q2; svcctl snapshot list NAMESPACE shows those that there are"
		return e
	}
	e.Hint = "such as: svcctl snapshot " + verb + " " + namespace + " 20260301T031500Z-k3x9q2; svcctl snapshot list " + namespace + " shows those that there are"
	c, err := st.Client()
	if err != nil {
		return e
	}
	page, err := c.ListSnapshots(ctx, namespace, "", client.Query{Limit: shownIDs})
	switch {
	case err != nil: // the example stays
	case len(page.Items) == 0:
		e.Hint = namespace + " has no snapshots yet: svcctl snapshot create " + namespace + " takes one by a profile of the config, svcctl backup create " + namespace + " one of everything"
	default:
		var ids []string
		for i := range page.Items {
			s := &page.Items[i]
			ids = append(ids, s.ID+" ("+s.Profile+", "+output.Age(st.Now(), s.ConsistentAt.Time)+" ago)")
		}
		e.Hint = "the newest are " + strings.Join(ids, ", ") + ": svcctl snapshot " + verb + " " + namespace + " " + page.Items[0].ID
	}
	return e
}

// MaybeOne makes a verb with one argument behind the namespace that may be left out.
func MaybeOne(st *command.State, cmd *cobra.Command, what string, run func(ctx context.Context, c *client.Client, namespace, one string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] [" + what + "]"
	cmd.Args = command.Args(cobra.MaximumNArgs(2))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[len(args)-1] == "" { // of a variable that is not set: without it, more is done than was meant
			return command.Usagef("the last argument is empty: give it a value, or leave it out")
		}
		namespace, one, err := st.PlaceMaybe(args)
		if err != nil {
			return err
		}
		c, err := st.Client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, namespace, one)
	}
	return cmd
}

// IDOf is the id of a snapshot, as lists and -o name have it.
func IDOf(arg string) string { return strings.TrimPrefix(arg, command.SnapshotName) }
