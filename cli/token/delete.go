package token

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newDelete(st *command.State) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Aliases:           []string{"revoke"},
		Use:               "delete NAME|ID",
		Short:             "Revoke a token",
		Example:           `  svcctl token delete deploy --yes`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTokens,
		RunE:              func(cmd *cobra.Command, args []string) error { return runDelete(cmd.Context(), st, args[0], yes) },
	}
	command.YesFlag(cmd, &yes)
	return cmd
}

func runDelete(ctx context.Context, st *command.State, name string, yes bool) error {
	c, t, err := model(st).One(ctx, st, name)
	if err != nil {
		return err
	}
	if err := st.Confirm(yes, fmt.Sprintf("Revoke token %s (%s) at %s?", t.Name, t.ID, c.Server())); err != nil {
		return err
	}
	if _, err := c.Tokens().Delete(ctx, t.ID); err != nil {
		return err
	}
	st.Notef("token %s is revoked", t.Name)
	return nil
}
