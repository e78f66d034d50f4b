package org

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

func newUpdate(st *command.State) *cobra.Command {
	var p profile
	cmd := &cobra.Command{
		Use:   "update SLUG",
		Short: "Change an organization",
		Long:  `Change an organization: what the flags give is set, the rest stays. One that is not active gives its users nothing.`,
		Example: `  svcctl org update acme --name "Acme Ltd."
  svcctl org update acme --active=false`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteOrgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := p.write(cmd.Flags().Changed)
			if w == (api.OrgWrite{}) {
				return command.NoChange("org")
			}
			return model(st).Update(cmd.Context(), st, args[0], w)
		},
	}
	p.register(cmd)
	cmd.Flags().StringVar(&p.Name, "name", "", "new name")
	return cmd
}
