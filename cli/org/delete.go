package org

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newDelete(st *command.State) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               "delete SLUG",
		Short:             "Delete an organization that nothing belongs to",
		Example:           `  svcctl org delete acme --yes`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteOrgs,
		RunE:              func(cmd *cobra.Command, args []string) error { return runDelete(cmd.Context(), st, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

func runDelete(ctx context.Context, st *command.State, slug string, yes bool) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	o, err := command.FindOrg(ctx, c, slug)
	if err != nil {
		return err
	}
	if err := st.Confirm(yes, fmt.Sprintf("Delete org %s at %s?", o.Slug, c.Server())); err != nil {
		return err
	}
	if _, err := c.Orgs().Delete(ctx, o.ID); err != nil {
		return err
	}
	st.Notef("org %s is deleted", o.Slug)
	return nil
}
