package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get USERNAME",
		Short:             "Show a user",
		Example:           `  svcctl user get ann -o yaml`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), st, args[0]) },
	}
}

func runGet(ctx context.Context, st *command.State, name string) error {
	_, u, err := find(ctx, st, name)
	if err != nil {
		return err
	}
	return show(st, u)
}
