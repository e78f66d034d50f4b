package org

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type createOptions struct {
	st    *command.State
	Write api.OrgWrite
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{st: st}
	var p profile
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an organization",
		Long: `Create an organization. Users, teams and projects are put into it by their flag --org, as in
svcctl user update ann --org acme. Only administrators may.`,
		Example:           `  svcctl org create "Acme Inc." --slug acme`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Write = p.write(cmd.Flags().Changed)
			opts.Write.Name = &args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCreate(cmd.Context(), opts)
		},
	}
	p.register(cmd)
	return cmd
}

func runCreate(ctx context.Context, opts *createOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	o, err := c.Orgs().Create(ctx, opts.Write)
	if err != nil {
		return err
	}
	return model(opts.st).Show(opts.st, o)
}
