package config

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
	"github.com/svcctl/svc/pkg/client"
)

// setContextOptions are the global flags that were given on the command line; what was not stays as it is.
type setContextOptions struct {
	st           *command.State
	Name         string
	Use          bool
	TokenCommand string
	Changed      func(flag string) bool
}

func newSetContext(st *command.State) *cobra.Command {
	opts := &setContextOptions{st: st}
	cmd := &cobra.Command{
		Use:   "set-context NAME",
		Short: "Make or change a context",
		Long: `Make a context, or change one, by the global flags: --server, --namespace, --ca-file and one credential
(--token, --admin-token, --collection-token or a -file form, or --token-command). What is not given stays as it is. Paths are kept absolute.
A new context without --server is for the server of SVCCTL_SERVER, else of the current context, else for
http://127.0.0.1:8080. The first context becomes the current one.

--token-command names a program, with arguments, that prints a token whenever one is needed, such as that of a password store: no secret is in
the file then. It is started without a shell; quotation marks keep words together. It has SVCCTL_SERVER in its environment, and may ask at the terminal.
--token and the like stand in the history of your shell, and in the list of processes meanwhile: a -file form doesn't.`,
		Example: `  svcctl config set-context local --server http://127.0.0.1:8080 --admin-token-file data/admin.token
  svcctl config set-context prod --server https://cms.example.com --token-command 'pass show svc/prod'
  svcctl config set-context local --namespace blog`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name, opts.Changed = args[0], cmd.Flags().Changed
			return runSetContext(opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Use, "use", false, "make it the current context")
	cmd.Flags().StringVar(&opts.TokenCommand, "token-command", "", "program, with arguments, that prints the token")
	return cmd
}

func runSetContext(opts *setContextOptions) error {
	st, flags := opts.st, opts.st.Flags
	if flags.Server != "" || opts.Changed("server") {
		if err := client.CheckServer(flags.Server); err != nil {
			return command.Usagef("%v", err)
		}
	}
	address := ""
	err := st.UpdateSettings(func(f *settings.File) error {
		c := settings.Context{Name: opts.Name, Server: opts.Name}
		if old, ok := f.Context(opts.Name); ok {
			c = *old
		}
		s := opts.inherited(f)
		if old, ok := f.Server(c.Server); ok {
			s = *old
		}
		s.Name = c.Server
		if err := opts.server(&s); err != nil {
			return err
		}
		if opts.Changed("namespace") {
			c.Namespace = flags.Namespace
		}
		u, err := opts.user()
		if err != nil {
			return err
		}
		if u.Name != "" {
			c.User = u.Name
		}
		f.SetContext(c, s, u)
		address = s.Server
		if opts.Use || f.CurrentContext == "" {
			f.CurrentContext = opts.Name
		}
		return nil
	})
	if err == nil {
		st.Notef("context %s is set, for %s", opts.Name, address)
	}
	return err
}

// inherited is the server of a new context: that which other commands would ask.
func (opts *setContextOptions) inherited(f *settings.File) settings.Server {
	s := settings.Server{Server: command.DefaultServer}
	if c, ok := f.Context(f.CurrentContext); ok {
		if current, ok := f.Server(c.Server); ok {
			s = *current
		}
	}
	if given := strings.TrimRight(opts.st.Flags.Server, "/"); given != "" && given != strings.TrimRight(s.Server, "/") {
		s = settings.Server{Server: given}
	}
	return s
}

func (opts *setContextOptions) server(s *settings.Server) error {
	flags := opts.st.Flags
	if opts.Changed("server") {
		s.Server = strings.TrimRight(flags.Server, "/")
	}
	if opts.Changed("insecure-skip-tls-verify") {
		s.InsecureSkipTLSVerify = flags.Insecure
	}
	if !opts.Changed("ca-file") {
		return nil
	}
	var err error
	s.CAFile, err = absolute(flags.CAFile)
	return err
}

// user makes the credential that the flags give; its name is "" when they give none.
func (opts *setContextOptions) user() (settings.User, error) {
	flags := opts.st.Flags
	var u settings.User
	n := 0
	for _, m := range []struct {
		flag, value string
		to          *string
		path        bool
	}{
		{"token", flags.Token, &u.Token, false},
		{"token-file", flags.TokenFile, &u.TokenFile, true},
		{"admin-token", flags.AdminToken, &u.AdminToken, false},
		{"admin-token-file", flags.AdminTokenFile, &u.AdminTokenFile, true},
		{"collection-token", flags.CollectionToken, &u.CollectionToken, false},
		{"collection-token-file", flags.CollectionTokenFile, &u.CollectionTokenFile, true},
	} {
		if !opts.Changed(m.flag) || m.value == "" {
			continue
		}
		n++
		*m.to = m.value
		if m.path {
			var err error
			if *m.to, err = absolute(m.value); err != nil {
				return settings.User{}, err
			}
		}
	}
	if opts.TokenCommand != "" {
		words, err := wordsOf(opts.TokenCommand)
		if err != nil {
			return settings.User{}, err
		}
		if strings.Contains(words[0], string(filepath.Separator)) {
			if words[0], err = absolute(words[0]); err != nil {
				return settings.User{}, err
			}
		}
		u.TokenCommand = words
		n++
	}
	if n > 1 {
		return settings.User{}, command.Usagef("more than one credential: a context has one")
	}
	if n == 1 {
		u.Name = opts.Name
	}
	return u, nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", command.Usagef("%s: %v", path, err)
	}
	return abs, nil
}

// wordsOf splits a command line at spaces. Quotation marks of both kinds keep words together; nothing else means anything.
func wordsOf(line string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote == r:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			in, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if in {
		words = append(words, word.String())
	}
	if quote != 0 || len(words) == 0 || words[0] == "" {
		return nil, command.Usagef("--token-command %s: want a program and its arguments", line)
	}
	return words, nil
}
