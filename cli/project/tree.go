package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tree"
)

func newTree(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "tree [NAMESPACE]",
		Short: "Show what a project is made of, and how it is",
		Long: `Show what a project is made of, as far as you may see it: its collections with their indexes and searches, its actions, jobs, assets
and snapshot profiles, and how each is. svcctl api-resources lists the commands that have more of each.`,
		Example: `  svcctl project tree blog
  svcctl project tree blog -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runTree(ctx, st, namespace)
		}),
	}
}

func runTree(ctx context.Context, st *command.State, namespace string) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	status, err := c.ProjectStatus(ctx, p.ID)
	if err != nil {
		return err
	}
	root, err := tree.Of(ctx, c, p.Namespace, status)
	if err != nil {
		return err
	}
	printer := st.Printer()
	if !printer.ForPeople() {
		var names []string
		root.Walk(func(_ string, n tree.Node) { names = append(names, n.Kind+"/"+n.Name) })
		return printer.Print(output.Result{Value: root, Names: names})
	}
	return root.Write(printer.W, printer.Style)
}
