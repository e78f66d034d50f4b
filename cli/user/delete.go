package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newDelete(st *command.State) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               "delete USERNAME",
		Short:             "Delete a user",
		Example:           `  svcctl user delete ann --yes`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return runDelete(cmd.Context(), st, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

func runDelete(ctx context.Context, st *command.State, name string, yes bool) error {
	c, u, err := find(ctx, st, name)
	if err != nil {
		return err
	}
	if err := st.Confirm(yes, fmt.Sprintf("Delete user %s at %s?", u.Username, c.Server())); err != nil {
		return err
	}
	if _, err := c.Users().Delete(ctx, u.ID); err != nil {
		return err
	}
	st.Notef("user %s is deleted", u.Username)
	return nil
}
