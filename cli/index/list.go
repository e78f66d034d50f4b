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
	return &cobra.Command{
		Use:     verb + " [NAMESPACE] COLLECTION",
		Aliases: aliases,
		Short:   "List the indexes of a collection, with their state",
		Long: `List the indexes of a collection. The state is ready, building, missing (declared, not there yet), failed (the message
says why, as with the first records that break a unique index) or foreign (made by other hands, left alone).`,
		Example:           "  svcctl " + noun + " " + verb + " shop products",
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			return runList(ctx, st, namespace, rest[0])
		}),
	}
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

// Table shows indexes. Messages and what is sparse have a column where there are any.
func Table(st *command.State, indexes []api.IndexDescription) *output.Table {
	headings := []string{"INDEX", "KEY", "UNIQUE", "STATE"}
	sparse := slices.ContainsFunc(indexes, func(ix api.IndexDescription) bool { return ix.Sparse })
	if sparse {
		headings = slices.Insert(headings, 3, "SPARSE")
	}
	failed := slices.ContainsFunc(indexes, func(ix api.IndexDescription) bool { return ix.Message != "" })
	if failed {
		headings = append(headings, "MESSAGE")
	}
	p := st.Printer()
	t := output.NewTable(headings...)
	for _, ix := range indexes {
		values := []any{ix.Name, strings.Join(ix.Key, ", "), ix.Unique, p.Style.State(ix.State), ix.Message}
		if sparse {
			values = slices.Insert(values, 3, any(ix.Sparse))
		}
		t.Row(values...)
	}
	if failed {
		return t // a message is read whole
	}
	return st.FitTable(t)
}
