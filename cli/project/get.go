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
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, _, err := st.Place(args, 0)
			if err != nil {
				return err
			}
			return runGet(cmd.Context(), st, namespace)
		},
	}
}

func runGet(ctx context.Context, st *command.State, namespace string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	p, err := find(ctx, c, namespace)
	if err != nil {
		return err
	}
	return show(st, p)
}
