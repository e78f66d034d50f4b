package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get [NAMESPACE]",
		Short:             "Show the registration of a project",
		Example:           `  svcctl project get blog -o yaml`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runGet(ctx, st, namespace)
		}),
	}
}

func runGet(ctx context.Context, st *command.State, namespace string) error {
	_, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	return show(st, p)
}
