package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type updateOptions struct {
	st    *command.State
	Token string
	Write api.TokenWrite
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	var f flags
	cmd := &cobra.Command{
		Use:   "update NAME|ID",
		Short: "Change a token of yours",
		Long:  `Change a token of yours: what the flags give is set, the rest stays. --scope replaces all scopes.`,
		Example: `  svcctl token update deploy --expires 90d
  svcctl token update deploy --scope project.read`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteTokens,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Token = args[0]
			var err error
			if opts.Write, err = f.write(cmd.Flags().Changed, st.Now()); err != nil {
				return err
			}
			if opts.Write == (api.TokenWrite{}) {
				return command.NoChange("token")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	f.register(cmd, st)
	cmd.Flags().StringVar(&f.Name, "name", "", "new name")
	return cmd
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	return model(opts.st).Update(ctx, opts.st, opts.Token, opts.Write)
}
