package collection

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newList(st *command.State) *cobra.Command {
	return st.AllFlag(&cobra.Command{
		Use:     "list [NAMESPACE]",
		Aliases: []string{"ls"},
		Short:   "List the collections that you may read",
		Example: `  svcctl collection list blog
  svcctl collection list -A`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runList(ctx, st, namespace)
		}),
	})
}

func runList(ctx context.Context, st *command.State, namespace string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	list, err := c.ListCollections(ctx, namespace)
	if err != nil {
		return err
	}
	t := output.NewTable("NAME", "FIELDS", "INDEXES", "YOU MAY")
	var names []string
	for _, col := range list.Items {
		t.Row(col.Name, len(col.Fields), len(col.Indexes), Rights(col.YourPermissions))
		names = append(names, "collection/"+col.Name)
	}
	if t.Len() == 0 {
		st.Notef("no collections that you may read; svcctl whoami shows who you are")
	}
	return st.Printer().Print(output.Result{Value: list, Table: t, Names: names})
}
