package index

import (
	"context"
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
	t := output.NewTable("NAME", "KEY", "UNIQUE", "SPARSE", "STATE", "MESSAGE")
	var names []string
	for _, ix := range col.Indexes {
		t.Row(ix.Name, strings.Join(ix.Key, ", "), ix.Unique, ix.Sparse, p.Style.State(ix.State), ix.Message)
		names = append(names, "index/"+ix.Name)
	}
	items := col.Indexes
	if items == nil {
		items = []api.IndexDescription{}
		st.Notef("no indexes but the one on id")
	}
	return p.Print(output.Result{Value: map[string]any{"items": items}, Table: t, Names: names})
}
