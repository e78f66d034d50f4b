package team

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type createOptions struct {
	st    *command.State
	Write api.TeamWrite
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{st: st}
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
			opts.Write = p.write(cmd.Flags().Changed)
			opts.Write.Name = &args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCreate(cmd.Context(), opts)
		},
	}
	p.register(st, cmd)
	return cmd
}

func runCreate(ctx context.Context, opts *createOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	if err := resolve(ctx, c, &opts.Write); err != nil {
		return err
	}
	t, err := c.Teams().Create(ctx, opts.Write)
	if err != nil {
		return err
	}
	return model(opts.st).Show(opts.st, t)
}
