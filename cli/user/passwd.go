package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type passwdOptions struct {
	st          *command.State
	Username    string // "" is one's own
	Password    command.Password
	CurrentFile string
}

func newPasswd(st *command.State, runF func(context.Context, *passwdOptions) error) *cobra.Command {
	opts := &passwdOptions{st: st}
	cmd := &cobra.Command{
		Use:   "passwd [USERNAME]",
		Short: "Change a password: your own, or a user's",
		Long: `Change your own password, for which the current one is asked, or that of another user, for which you need the right
user.update. It ends every login of that user, and their personal access tokens.`,
		Example: `  svcctl user passwd
  svcctl user passwd ann --generate`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: st.CompleteUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.Username = args[0]
			}
			if opts.Username != "" && opts.CurrentFile != "" {
				return command.Usagef("--current-password-file is for your own password: leave out USERNAME")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPasswd(cmd.Context(), opts)
		},
	}
	opts.Password.Register(cmd, true)
	cmd.Flags().StringVar(&opts.CurrentFile, "current-password-file", "", "file whose first line is your current password")
	return cmd
}

func runPasswd(ctx context.Context, opts *passwdOptions) error {
	st := opts.st
	if opts.Username == "" {
		return changeOwn(ctx, opts)
	}
	c, u, err := model(opts.st).One(ctx, st, opts.Username)
	if err != nil {
		return err
	}
	password, err := opts.Password.Read(st, "New password for "+u.Username, true)
	if err != nil {
		return err
	}
	if u, err = c.Users().Update(ctx, u.ID, api.UserWrite{Password: &password}); err != nil {
		return err
	}
	if opts.Password.Generate {
		err = showGenerated(st, u, password)
	}
	st.Notef("the password of %s is changed; their logins and personal access tokens have ended", u.Username)
	return err
}

func changeOwn(ctx context.Context, opts *passwdOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	if me.Kind != "user" {
		return command.Usagef("you are no user here but %q: log in first, or name the user", me.Kind)
	}
	current := command.Password{File: opts.CurrentFile}
	old, err := current.Read(st, "Current password", false)
	if err != nil {
		return err
	}
	password, err := opts.Password.Read(st, "New password", true)
	if err != nil {
		return err
	}
	if err := c.ChangePassword(ctx, old, password); err != nil {
		return err
	}
	if opts.Password.Generate {
		err = showGenerated(st, &api.User{ID: me.ID, Username: me.Username, Email: me.Email, Name: me.Name, IsAdmin: me.IsAdmin, Active: true}, password)
	}
	st.Notef("your password is changed; your logins and personal access tokens have ended: run svcctl login")
	return err
}
