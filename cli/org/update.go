package org

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type updateOptions struct {
	st    *command.State
	Slug  string
	Write api.OrgWrite
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	var (
		p    profile
		name string
	)
	cmd := &cobra.Command{
		Use:   "update SLUG",
		Short: "Change an organization",
		Long:  `Change an organization: what the flags give is set, the rest stays. One that is not active gives its users nothing.`,
		Example: `  svcctl org update acme --name "Acme Ltd."
  svcctl org update acme --active=false`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteOrgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Slug = args[0]
			opts.Write = p.write(cmd.Flags().Changed)
			if cmd.Flags().Changed("name") {
				opts.Write.Name = &name
			}
			if opts.Write == (api.OrgWrite{}) {
				return command.Usagef("what is the change? svcctl org update --help lists the flags")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	p.register(cmd)
	cmd.Flags().StringVar(&name, "name", "", "new name")
	return cmd
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	o, err := command.FindOrg(ctx, c, opts.Slug)
	if err != nil {
		return err
	}
	if o, err = c.Orgs().Update(ctx, o.ID, opts.Write); err != nil {
		return err
	}
	return model(opts.st).Show(opts.st, o)
}
