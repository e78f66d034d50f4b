package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// newEnable makes svcctl project enable, or disable.
func newEnable(st *command.State, enabled bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "enable [NAMESPACE]",
		Short:             "Serve a project again that was disabled",
		Example:           `  svcctl project enable shop`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runEnable(ctx, st, namespace, enabled)
		}),
	}
	if !enabled {
		cmd.Use = "disable [NAMESPACE]"
		cmd.Short = "Stop serving a project, but keep its registration"
		cmd.Long = "Stop serving a project: its namespace answers as if it were unknown, until svcctl project enable."
		cmd.Example = `  svcctl project disable shop`
	}
	return cmd
}

func runEnable(ctx context.Context, st *command.State, namespace string, enabled bool) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	if p, err = c.Projects().Update(ctx, p.ID, api.ProjectWrite{Enabled: &enabled}); err != nil {
		return err
	}
	return show(st, p)
}
