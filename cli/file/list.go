package file

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "list [NAMESPACE] COLLECTION ID",
		Aliases:           []string{"ls"},
		Short:             "List the files of a record",
		Long:              "List the files of a record, with the field that each is in. -o wide shows their hashes and where they are.",
		Example:           `  svcctl file list blog medialib 65f0c2a1b3d4e5f60718293a`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompleteRecords(),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, err := placeOf(st, args, 0)
			if err != nil {
				return err
			}
			return runList(cmd.Context(), st, at)
		},
	}
}

func runList(ctx context.Context, st *command.State, at place) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	files, err := read(ctx, c, at)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		st.Notef("%s has no files", at)
	}
	return show(st, files)
}

// read asks for the files of a record.
func read(ctx context.Context, c *client.Client, at place) ([]named, error) {
	col, err := c.DescribeCollection(ctx, at.Namespace, at.Collection)
	if err != nil {
		return nil, err
	}
	record, _, err := c.GetRecord(ctx, at.Namespace, at.Collection, at.ID, client.Query{})
	if err != nil {
		return nil, err
	}
	return filesOf(col.Fields, record)
}

// show prints files.
func show(st *command.State, files []named) error {
	headings := []string{"FIELD", "NAME", "TYPE", "SIZE", "PIXELS", "+HASH", "+SRC"}
	pictures := slices.ContainsFunc(files, func(f named) bool { return f.Width > 0 })
	if !pictures {
		headings = slices.Delete(headings, 4, 5)
	}
	t := output.NewTable(headings...)
	names := make([]string, len(files))
	for i, f := range files {
		row := []any{f.Field, f.Path, f.Type, output.Size(f.Size), "", f.Hash, f.Src}
		if f.Width > 0 {
			row[4] = fmt.Sprintf("%d×%d", f.Width, f.Height)
		}
		if !pictures {
			row = slices.Delete(row, 4, 5)
		}
		t.Row(row...)
		names[i] = "file/" + f.Path
	}
	if files == nil {
		files = []named{}
	}
	return st.Printer().Print(output.Result{Value: map[string]any{"items": files}, Table: st.FitTable(t), Names: names})
}
