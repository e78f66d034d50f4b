package team

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

func newUpdate(st *command.State) *cobra.Command {
	var p profile
	cmd := &cobra.Command{
		Use:   "update SLUG",
		Short: "Change a team",
		Long:  `Change a team: what the flags give is set, the rest stays. --scope replaces all scopes.`,
		Example: `  svcctl team update editors --scope project.read,project.reload
  svcctl team update editors --org beta`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTeams,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := p.write(cmd.Flags().Changed)
			if w == (api.TeamWrite{}) {
				return command.NoChange("team")
			}
			return model(st).Update(cmd.Context(), st, args[0], w)
		},
	}
	p.register(st, cmd)
	cmd.Flags().StringVar(&p.Name, "name", "", "new name")
	return cmd
}
