package auth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type loginOptions struct {
	st       *command.State
	Username string
	Password command.Password
}

// NewLogin makes svcctl login.
func NewLogin(st *command.State) *cobra.Command {
	opts := &loginOptions{st: st}
	cmd := &cobra.Command{
		Use:   "login [USERNAME]",
		Short: "Log in, and keep the token in a context",
		Long: `Log in with a username and a password. The token that the service gives is kept in the contexts file until it
ends, and the context becomes the current one. --context names it; without, it is the current context, if that is for
the same user on the same server, else the one named USERNAME@HOST, so that nobody's login takes the place of another's.
Without USERNAME, it is the user of the context, who only gives the password again.`,
		Example: `  svcctl login
  svcctl login ann --server https://cms.example.com
  svcctl login ci --password-file /run/secrets/ci --context prod`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: st.CompleteUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.Username = args[0]
			}
			return runLogin(cmd.Context(), opts)
		},
	}
	opts.Password.Register(cmd, false)
	return cmd
}

func runLogin(ctx context.Context, opts *loginOptions) error {
	st := opts.st
	var err error
	if opts.Username == "" {
		if opts.Username, err = defaultUsername(st); err != nil {
			return err
		}
	}
	opts.Username = strings.ToLower(opts.Username) // as the service has it: there is one context for one user
	name, err := opts.prepare()
	if err != nil {
		return err
	}
	c, err := st.AnonymousClient()
	if err != nil {
		return err
	}
	password, err := opts.Password.Read(st, "Password for "+opts.Username+" at "+c.Server(), false)
	if err != nil {
		return err
	}
	answer, err := c.Login(ctx, opts.Username, password)
	if err != nil {
		return err
	}
	server, err := st.Server()
	if err != nil {
		return err
	}
	if err := st.UpdateSettings(func(f *settings.File) error {
		remember(f, name, server, opts.Username, answer)
		return nil
	}); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	until := ""
	if !answer.ExpiresAt.IsZero() {
		until = " until " + answer.ExpiresAt.UTC().Format(api.TimeLayout)
	}
	st.Notef("logged in to %s as %s%s; the current context is %s", c.Server(), opts.Username, until, name)
	return nil
}

// prepare decides which context the login fills, and points the state at its server. A context that --context names
// need not be there yet, and one that holds another kind of credential is never overwritten unless named.
func (opts *loginOptions) prepare() (name string, err error) {
	st := opts.st
	file, err := st.Settings()
	if err != nil {
		return "", err
	}
	named := st.Flags.Context
	if _, ok := file.Context(named); ok {
		return named, nil
	}
	st.Flags.Context = "" // one that is to be made can't be looked up
	current, hasCurrent := currentServer(file)
	if st.Flags.Server == "" {
		st.Flags.Server = command.DefaultServer
		if hasCurrent {
			st.Flags.Server = current
		}
	}
	if named != "" {
		return named, nil
	}
	if hasCurrent && strings.TrimRight(st.Flags.Server, "/") == current && forLogin(file, opts.Username) {
		return file.CurrentContext, nil
	}
	if err := client.CheckServer(st.Flags.Server); err != nil {
		return "", command.Usagef("%v", err)
	}
	u, err := url.Parse(st.Flags.Server)
	if err != nil {
		return "", err
	}
	return opts.Username + "@" + u.Host, nil
}

// forLogin says whether the current context has no credential, or one of a login of that user.
func forLogin(f *settings.File, username string) bool {
	c, ok := f.Context(f.CurrentContext)
	if !ok || c.User == "" {
		return ok
	}
	u, ok := f.User(c.User)
	return !ok || u.Username == username
}

func currentServer(f *settings.File) (string, bool) {
	c, ok := f.Context(f.CurrentContext)
	if !ok {
		return "", false
	}
	s, ok := f.Server(c.Server)
	if !ok {
		return "", false
	}
	return strings.TrimRight(s.Server, "/"), true
}

// remember puts the login into the context, which keeps its namespace.
func remember(f *settings.File, name string, server settings.Server, username string, answer *api.LoginResponse) {
	c := settings.Context{Name: name, Server: strings.TrimPrefix(name, username+"@")}
	if old, ok := f.Context(name); ok {
		c = *old
	} else if current, ok := f.Context(f.CurrentContext); ok {
		if s, ok := f.Server(current.Server); ok && s.Server == server.Server {
			c.Server, c.Namespace = current.Server, current.Namespace
		}
	}
	if old, ok := f.Server(c.Server); ok && old.Server != server.Server {
		c.Server = name // another context may still use the old address
	}
	server.Name = c.Server
	c.User = username + "@" + c.Server
	f.SetContext(c, server, settings.User{
		Name: c.User, Username: username, Token: answer.Token, ExpiresAt: answer.ExpiresAt.Time,
	})
	f.CurrentContext = name
}

// defaultUsername is that of the context's login, if the login is to be at the context's server; else it is asked for.
func defaultUsername(st *command.State) (string, error) {
	file, err := st.Settings()
	if err != nil {
		return "", err
	}
	name := st.Flags.Context
	if name == "" {
		name = file.CurrentContext
	}
	if c, ok := file.Context(name); ok {
		s, hasServer := file.Server(c.Server)
		u, hasUser := file.User(c.User)
		there := st.Flags.Server == "" || hasServer && strings.TrimRight(st.Flags.Server, "/") == strings.TrimRight(s.Server, "/")
		if hasUser && u.Username != "" && there {
			return u.Username, nil
		}
	}
	return askUsername(st)
}

func askUsername(st *command.State) (string, error) {
	if !st.InTTY || !st.ErrTTY {
		return "", command.Usagef("which user? give the name as the argument")
	}
	fmt.Fprint(st.Err, "Username: ")
	line, err := bufio.NewReader(st.Stdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(st.Err)
		return "", fmt.Errorf("read the username: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", command.Usagef("the username is empty")
	}
	return line, nil
}
