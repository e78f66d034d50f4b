package team

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type updateOptions struct {
	st    *command.State
	Slug  string
	Write api.TeamWrite
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	var (
		p    profile
		name string
	)
	cmd := &cobra.Command{
		Use:   "update SLUG",
		Short: "Change a team",
		Long:  `Change a team: what the flags give is set, the rest stays. --scope replaces all scopes.`,
		Example: `  svcctl team update editors --scope project.read,project.reload
  svcctl team update editors --org beta`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTeams,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Slug = args[0]
			opts.Write = p.write(cmd.Flags().Changed)
			if cmd.Flags().Changed("name") {
				opts.Write.Name = &name
			}
			if opts.Write == (api.TeamWrite{}) {
				return command.Usagef("what is the change? svcctl team update --help lists the flags")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	p.register(st, cmd)
	cmd.Flags().StringVar(&name, "name", "", "new name")
	return cmd
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	t, err := command.FindTeam(ctx, c, opts.Slug)
	if err != nil {
		return err
	}
	if err := resolve(ctx, c, &opts.Write); err != nil {
		return err
	}
	if t, err = c.Teams().Update(ctx, t.ID, opts.Write); err != nil {
		return err
	}
	return model(opts.st).Show(opts.st, t)
}
