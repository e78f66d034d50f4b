package team

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get SLUG",
		Short:             "Show a team, by slug or id",
		Example:           `  svcctl team get editors -o yaml`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTeams,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), st, args[0]) },
	}
}

func runGet(ctx context.Context, st *command.State, slug string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	t, err := command.FindTeam(ctx, c, slug)
	if err != nil {
		return err
	}
	return show(st, t)
}
