package org

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newGet(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get SLUG",
		Short:             "Show an organization, by slug or id",
		Example:           `  svcctl org get acme -o yaml`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteOrgs,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), st, args[0]) },
	}
}

func runGet(ctx context.Context, st *command.State, slug string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	o, err := command.FindOrg(ctx, c, slug)
	if err != nil {
		return err
	}
	return show(st, o)
}
