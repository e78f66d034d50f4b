package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the registered projects",
		Long: `List the registered projects that you may see. How they do tells svcctl status; with --watch, a line whenever one has changed (svcctl project
watch).`,
		Example: `  svcctl project list
  svcctl project list -o name
  svcctl project list --watch`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return runWatch(cmd.Context(), st, nil)
			}
			return runList(cmd.Context(), st)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show how they do, and go on with what changes")
	cmd.Flags().BoolP("all-namespaces", "A", false, "all that you may see, which is so without it")
	_ = cmd.Flags().MarkHidden("all-namespaces") // it is there for those whose fingers know it from other lists
	return cmd
}

func runList(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	return command.List[api.Project]{
		Items: c.Projects().All(ctx, client.Query{}),
		None:  "no projects yet: svcctl project init DIR writes one to start from, svcctl apply DIR serves one",
		Name:  func(p api.Project) string { return "project/" + p.Namespace },
		Table: table,
	}.Print(st)
}
