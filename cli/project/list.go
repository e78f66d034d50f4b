package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the registered projects",
		Example: `  svcctl project list
  svcctl project list -o name`,
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
	return command.List[api.Project]{
		Items: c.Projects().All(ctx, client.Query{}),
		None:  "no projects yet: svcctl project register CONFIGFILE makes one known",
		Name:  func(p api.Project) string { return "project/" + p.Namespace },
		Table: table,
	}.Print(st)
}
