package auth

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
)

// NewLogout makes svcctl logout.
func NewLogout(st *command.State) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "End the login of the current context",
		Long: `Revoke the token of the login at the service, and remove it from the contexts file. When the service can't be
reached, the token is removed from the file all the same, and stays valid at the service until it ends. All logins of the
user end with it; with --all, their personal access tokens, too.`,
		Example:           `  svcctl logout`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runLogout(cmd.Context(), st, all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "end your personal access tokens, too")
	return cmd
}

func runLogout(ctx context.Context, st *command.State, all bool) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	user := st.User()
	if user == nil || user.Token == "" {
		return &command.Error{
			Exit: command.ExitFailed, Code: "not_logged_in", Message: "there is no login to end in the current context",
			Hint: "svcctl config get-contexts shows what there is",
		}
	}
	name := user.Name
	revoke := c.Logout
	if all {
		revoke = c.LogoutAll
	}
	revoked := revoke(ctx)
	if err := st.UpdateSettings(func(f *settings.File) error {
		if u, ok := f.User(name); ok {
			*u = settings.User{Name: u.Name, Username: u.Username}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("forget the token: %w", err)
	}
	if revoked != nil {
		return fmt.Errorf("the token is forgotten here, but not revoked at the service: %w", revoked)
	}
	ended := "your logins"
	if all {
		ended = "your logins and personal access tokens"
	}
	st.Notef("logged out of %s: all %s have ended", c.Server(), ended)
	return nil
}
