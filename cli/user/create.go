package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type createOptions struct {
	st       *command.State
	Username string
	Password command.Password
	Write    api.UserWrite
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{st: st}
	var p profile
	cmd := &cobra.Command{
		Use:   "create USERNAME",
		Short: "Create a user",
		Long: `Create a user. The password is asked for, read from a file or stdin, or made up and printed with --generate. The first
user is made with the server's admin token.`,
		Example: `  svcctl user create ann --admin --generate --admin-token-file data/admin.token
  svcctl user create ben --org acme --team editors --generate
  svcctl user create ci --scope project.read,project.reload --password-file /run/secrets/ci`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Username = args[0]
			opts.Write = p.write(cmd.Flags().Changed)
			opts.Write.Username = &opts.Username
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCreate(cmd.Context(), opts)
		},
	}
	p.register(st, cmd)
	opts.Password.Register(cmd, true)
	return cmd
}

func runCreate(ctx context.Context, opts *createOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	if err := resolve(ctx, c, &opts.Write); err != nil {
		return err
	}
	password, err := opts.Password.Read(st, "Password for "+opts.Username, true)
	if err != nil {
		return err
	}
	opts.Write.Password = &password
	u, err := c.Users().Create(ctx, opts.Write)
	if err != nil {
		return err
	}
	if !opts.Password.Generate {
		return model(st).Show(ctx, st, c, u)
	}
	return showGenerated(st, u, password)
}

// showGenerated prints a user with the password that was made up, which nothing shows again: with -o name on stderr, even
// with --quiet.
func showGenerated(st *command.State, u *api.User, password string) error {
	if st.Printer().Format == output.FormatName {
		if _, err := fmt.Fprintln(st.Err, "password:", password); err != nil {
			return err
		}
	}
	t := output.NewTable("USERNAME", "PASSWORD")
	t.Row(u.Username, password)
	st.Notef("keep the password, it is not shown again; svcctl login %s asks for it", u.Username)
	return st.Printer().Print(output.Result{
		Value: struct {
			*api.User
			Password string `json:"password"`
		}{u, password},
		Table: t, Names: []string{"user/" + u.Username},
	})
}
