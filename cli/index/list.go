package index

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// NewList makes the command that lists indexes, as a verb of a noun.
func NewList(st *command.State, noun, verb string, aliases ...string) *cobra.Command {
	return st.WatchFlag(st.AllFlag(&cobra.Command{
		Use:     verb + " [NAMESPACE] [COLLECTION]",
		Aliases: aliases,
		Short:   "List the indexes of a collection or of a project, with their state",
		Long: `List the indexes of a collection, or of all collections that you may read. The state is ready, building, missing (declared, not there yet), failed (the message
says why, as with the first records that break a unique index) or foreign (made by other hands, left alone).

One argument is a collection where the namespace is known by -n, SVCCTL_NAMESPACE or the context, else the namespace.`,
		Example: "  svcctl " + noun + " " + verb + " shop products\n" +
			"  svcctl " + noun + " " + verb + " shop --watch\n" +
			"  svcctl " + noun + " " + verb + " -A",
		Args:              command.Args(cobra.MaximumNArgs(2)),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			want := 1
			if known, err := st.Namespace(); err != nil {
				return err
			} else if len(args) == 0 || len(args) == 1 && known == "" {
				want = 0
			}
			namespace, rest, err := st.Place(args, want)
			if err != nil {
				return err
			}
			if want == 0 {
				return runListAll(cmd.Context(), st, namespace)
			}
			return runList(cmd.Context(), st, namespace, rest[0])
		},
	}))
}

// indexOf is an index with its collection.
type indexOf struct {
	Collection string `json:"collection"`
	api.IndexDescription
}

func runListAll(ctx context.Context, st *command.State, namespace string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	collections, err := c.ListCollections(ctx, namespace)
	if err != nil {
		return err
	}
	items, names := []indexOf{}, []string{}
	for _, col := range collections.Items {
		for _, ix := range col.Indexes {
			items, names = append(items, indexOf{col.Name, ix}), append(names, "index/"+col.Name+"/"+ix.Name)
		}
	}
	if len(items) == 0 {
		st.Notef("no indexes but those on id")
	}
	return st.Printer().Print(output.Result{Value: map[string]any{"items": items}, Table: table(st, true, items), Names: names})
}

func runList(ctx context.Context, st *command.State, namespace, collection string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	col, err := c.DescribeCollection(ctx, namespace, collection)
	if err != nil {
		return err
	}
	p := st.Printer()
	var names []string
	for _, ix := range col.Indexes {
		names = append(names, "index/"+ix.Name)
	}
	items := col.Indexes
	if items == nil {
		items = []api.IndexDescription{}
		st.Notef("no indexes but the one on id")
	}
	return p.Print(output.Result{Value: map[string]any{"items": items}, Table: Table(st, col.Indexes), Names: names})
}

// Table shows the indexes of a collection. Messages and what is sparse have a column where there are any.
func Table(st *command.State, indexes []api.IndexDescription) *output.Table {
	rows := make([]indexOf, len(indexes))
	for i, ix := range indexes {
		rows[i].IndexDescription = ix
	}
	return table(st, false, rows)
}

func table(st *command.State, collections bool, indexes []indexOf) *output.Table {
	headings := []string{"INDEX", "KEY", "UNIQUE", "STATE"}
	sparse := slices.ContainsFunc(indexes, func(ix indexOf) bool { return ix.Sparse })
	if sparse {
		headings = slices.Insert(headings, 3, "SPARSE")
	}
	failed := slices.ContainsFunc(indexes, func(ix indexOf) bool { return ix.Message != "" })
	if failed {
		headings = append(headings, "MESSAGE")
	}
	if collections {
		headings = slices.Insert(headings, 0, "COLLECTION")
	}
	p := st.Printer()
	t := output.NewTable(headings...)
	for _, ix := range indexes {
		values := []any{ix.Name, strings.Join(ix.Key, ", "), ix.Unique, p.Style.State(ix.State), ix.Message}
		if sparse {
			values = slices.Insert(values, 3, any(ix.Sparse))
		}
		if collections {
			values = slices.Insert(values, 0, any(ix.Collection))
		}
		t.Row(values...)
	}
	if failed {
		return t // a message is read whole
	}
	return st.FitTable(t)
}
