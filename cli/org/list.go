package org

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List the organizations that you may see",
		Example:           `  svcctl org list -o wide`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), st) },
	}
}

func runList(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	return command.List[api.Org]{
		Items: c.Orgs().All(ctx, client.Query{}),
		None:  "no organizations that you may see: svcctl org create makes one",
		Name:  func(o api.Org) string { return "org/" + o.Slug },
		Table: table,
	}.Print(st)
}
