package asset

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
		Short:   "List the folders whose files are public",
		Long: `List the assets of a project: folders whose every file is public, at the path of the column SRC with the file's name behind
it. Which files there are, the service doesn't tell; they are in the project's folder of the column FOLDER.`,
		Example:           `  svcctl asset list blog`,
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
	list, err := c.ListAssets(ctx, namespace)
	if err != nil {
		return err
	}
	t := output.NewTable("NAME", "FOLDER", "SRC")
	var names []string
	for _, a := range list.Items {
		t.Row(a.Name, a.Path, a.Src)
		names = append(names, "asset/"+a.Name)
	}
	if t.Len() == 0 {
		st.Notef("%s has no assets; assets: in the project file makes folders public", namespace)
	}
	return st.Printer().Print(output.Result{Value: list, Table: st.FitTable(t), Names: names})
}
