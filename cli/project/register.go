package project

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type registerOptions struct {
	st          *command.State
	ConfigFile  string
	Name        string
	Description string
	Org         string // slug or id
	Disabled    bool
}

func newRegister(st *command.State, runF func(context.Context, *registerOptions) error) *cobra.Command {
	opts := &registerOptions{st: st}
	cmd := &cobra.Command{
		Use:   "register CONFIGFILE",
		Short: "Make a project known to the service",
		Long: `Make a project known to the service, which loads its config and from then on serves its namespace.

CONFIGFILE is the project file, or the directory it is in, as the service sees it: inside the service's projects
directory (setting projects.dir), and relative to that or absolute. A path that begins with ./ or ../ is taken from the
directory you are in, which serves when the service runs on this machine.

An invalid config is refused with all its problems; svcctl project validate finds them before.`,
		Example: `  svcctl project register blog
  svcctl project register ./projects/shop --name "Shop" --description "Products and orders"`,
		Args: command.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if opts.ConfigFile != "" {
					return command.Usagef("the config file is given twice: as an argument and with -f")
				}
				opts.ConfigFile = args[0]
			}
			if opts.ConfigFile == "" {
				return command.Usagef("which config file? give its path, as in: svcctl project register blog")
			}
			if err := opts.complete(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runRegister(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.ConfigFile, "file", "f", "", "the config file, in place of the argument")
	cmd.Flags().StringVar(&opts.Name, "name", "", "name for people (default: the name of the project's directory)")
	cmd.Flags().StringVar(&opts.Description, "description", "", "what the project is for")
	cmd.Flags().StringVar(&opts.Org, "org", "", "organization that it belongs to, by slug or id (default: none)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"org": command.CompleteFlag(st.CompleteOrgs)})
	cmd.Flags().BoolVar(&opts.Disabled, "disabled", false, "register it, but don't serve it yet")
	return cmd
}

// complete makes a ./ path absolute and finds a name.
func (opts *registerOptions) complete() error {
	slashed := filepath.ToSlash(opts.ConfigFile)
	first, _, _ := strings.Cut(slashed, "/")
	if first == "." || first == ".." {
		if opts.st.ProblemFolder = opts.ConfigFile; filepath.Ext(opts.ConfigFile) != "" {
			opts.st.ProblemFolder = filepath.Dir(opts.ConfigFile)
		}
		abs, err := filepath.Abs(opts.ConfigFile)
		if err != nil {
			return command.Usagef("%s: %v", opts.ConfigFile, err)
		}
		opts.ConfigFile, slashed = abs, filepath.ToSlash(abs)
	}
	if opts.Name != "" {
		return nil
	}
	parts := strings.Split(strings.Trim(slashed, "/"), "/")
	if n := len(parts); n > 1 && strings.Contains(parts[n-1], ".") {
		parts = parts[:n-1] // the file itself
	}
	opts.Name = parts[len(parts)-1]
	return nil
}

func runRegister(ctx context.Context, opts *registerOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	org, err := command.OrgID(ctx, c, opts.Org)
	if err != nil {
		return err
	}
	p, err := c.Projects().Create(ctx, api.ProjectWrite{
		Name: &opts.Name, Description: &opts.Description, ConfigFile: &opts.ConfigFile, OrgID: &org, Enabled: new(!opts.Disabled),
	})
	if err != nil {
		return err
	}
	return show(opts.st, p)
}
