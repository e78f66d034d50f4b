package team

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newCreate(st *command.State) *cobra.Command {
	var p profile
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a team",
		Long: `Create a team. Its users have its scopes beside their own, and what collections allow to team:<slug>; they are put into it by
svcctl user update --team. Only administrators may.`,
		Example:           `  svcctl team create Editors --org acme --scope project.read`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := p.write(cmd.Flags().Changed)
			w.Name = &args[0]
			return model(st).Create(cmd.Context(), st, w)
		},
	}
	p.register(st, cmd)
	return cmd
}
