package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get NAME|ID",
		Short:             "Show a token, without its value",
		Example:           `  svcctl token get deploy -o yaml`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), st, args[0]) },
	}
}

func runGet(ctx context.Context, st *command.State, name string) error {
	_, t, err := find(ctx, st, name)
	if err != nil {
		return err
	}
	return show(st, t)
}
