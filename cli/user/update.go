package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type updateOptions struct {
	st       *command.State
	Username string
	Write    api.UserWrite
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	var p profile
	cmd := &cobra.Command{
		Use:   "update USERNAME",
		Short: "Change a user",
		Long: `Change a user: what the flags give is set, the rest stays. --scope, --org and --team replace all there were. For the password, see
svcctl user passwd. A user who is not active can't log in; their logins and personal access tokens end, and don't come back.`,
		Example: `  svcctl user update ann --email ann@example.com
  svcctl user update ann --org acme --team editors,reviewers
  svcctl user update ci --active=false`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Username = args[0]
			opts.Write = p.write(cmd.Flags().Changed)
			if opts.Write == (api.UserWrite{}) {
				return command.NoChange("user")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	p.register(st, cmd)
	cmd.Flags().StringVar(&p.Username, "username", "", "new username")
	return cmd
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	if err := model(opts.st).Update(ctx, opts.st, opts.Username, opts.Write); err != nil {
		return err
	}
	if active := opts.Write.Active; active != nil && !*active {
		opts.st.Notef("%s can't log in any more; their logins and personal access tokens have ended", opts.Username)
	}
	return nil
}
