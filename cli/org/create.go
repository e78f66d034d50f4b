package org

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newCreate(st *command.State) *cobra.Command {
	var p profile
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an organization",
		Long: `Create an organization. Users, teams and projects are put into it by their flag --org, as in
svcctl user update ann --org acme. Only administrators may.`,
		Example:           `  svcctl org create "Acme Inc." --slug acme`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := p.write(cmd.Flags().Changed)
			w.Name = &args[0]
			return model(st).Create(cmd.Context(), st, w)
		},
	}
	p.register(cmd)
	return cmd
}
