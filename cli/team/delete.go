package team

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newDelete(st *command.State) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               "delete SLUG",
		Short:             "Delete a team; its users stay",
		Example:           `  svcctl team delete editors --yes`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTeams,
		RunE:              func(cmd *cobra.Command, args []string) error { return runDelete(cmd.Context(), st, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

func runDelete(ctx context.Context, st *command.State, slug string, yes bool) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	t, err := command.FindTeam(ctx, c, slug)
	if err != nil {
		return err
	}
	if err := st.Confirm(yes, fmt.Sprintf("Delete team %s at %s?", t.Slug, c.Server())); err != nil {
		return err
	}
	if _, err := c.Teams().Delete(ctx, t.ID); err != nil {
		return err
	}
	st.Notef("team %s is deleted", t.Slug)
	return nil
}
