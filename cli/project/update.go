package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type updateOptions struct {
	st        *command.State
	Namespace string
	Write     api.ProjectWrite
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	var name, description, file, org string
	cmd := &cobra.Command{
		Use:   "update NAMESPACE",
		Short: "Change the registration of a project",
		Long: `Change the registration of a project: what the flags give is set, the rest stays. A project that belongs to an
organization is not there for users of others. A new config file must name the same namespace.`,
		Example: `  svcctl project update blog --org acme
  svcctl project update blog --org "" --name "The blog"`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Namespace = args[0]
			for flag, set := range map[string]func(){
				"name":        func() { opts.Write.Name = &name },
				"description": func() { opts.Write.Description = &description },
				"file":        func() { opts.Write.ConfigFile = &file },
				"org":         func() { opts.Write.OrgID = &org },
			} {
				if cmd.Flags().Changed(flag) {
					set()
				}
			}
			if opts.Write == (api.ProjectWrite{}) {
				return command.NoChange("project")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name for people")
	cmd.Flags().StringVar(&description, "description", "", "what the project is for")
	cmd.Flags().StringVarP(&file, "file", "f", "", "the config file, as the service sees it")
	cmd.Flags().StringVar(&org, "org", "", `organization that it belongs to, by slug or id ("": none)`)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"org": command.CompleteFlag(st.CompleteOrgs)})
	return cmd
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	c, p, err := find(ctx, opts.st, opts.Namespace)
	if err != nil {
		return err
	}
	if opts.Write.OrgID != nil {
		id, err := command.OrgID(ctx, c, *opts.Write.OrgID)
		if err != nil {
			return err
		}
		opts.Write.OrgID = &id
	}
	if p, err = c.Projects().Update(ctx, p.ID, opts.Write); err != nil {
		return err
	}
	return show(opts.st, p)
}
