package doc

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type facetOptions struct {
	st *command.State
	place
	Fields []string
	Filter string
	Top    int
}

func newFacet(st *command.State, runF func(context.Context, *facetOptions) error) *cobra.Command {
	opts := &facetOptions{st: st}
	cmd := &cobra.Command{
		Use:   "facet [NAMESPACE] COLLECTION FIELD,...",
		Short: "Count the values of fields",
		Long: `Count how many records have each value of a field: those that most records have first. Each value of a list counts
once for a record; records without a value are not counted. A table has the first values of each field, -o json all.`,
		Example: `  svcctl doc facet blog articles section,tags --filter '{"status": "published"}'
  svcctl doc facet shop products brand --top 5`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompleteFieldsBehind(),
		RunE: st.AtPlace(2, func(ctx context.Context, namespace string, rest []string) error {
			opts.place, opts.Fields = place{namespace, rest[0]}, strings.Split(rest[1], ",")
			if opts.Top < 0 {
				return command.Usagef("--top: want 0 or more")
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runFacet(ctx, opts)
		}),
	}
	filterFlag(cmd, &opts.Filter)
	cmd.Flags().IntVar(&opts.Top, "top", 20, "most values of a field in a table, 0 for all")
	return cmd
}

func runFacet(ctx context.Context, opts *facetOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	facets, err := c.FacetRecords(ctx, opts.Namespace, opts.Collection, opts.Fields, opts.Filter)
	if err != nil {
		return err
	}
	t := output.NewTable("FIELD", "VALUE", "RECORDS")
	result := output.Result{Value: facets, Table: t}
	for _, field := range opts.Fields {
		values := facets.Facets[strings.TrimSpace(field)]
		for i, v := range values {
			result.Names = append(result.Names, bareText(v.Value))
			if opts.Top == 0 || i < opts.Top {
				t.Row(strings.TrimSpace(field), bareText(v.Value), v.Count)
			}
		}
	}
	st.FitTable(t)
	p := st.Printer()
	if err := p.Print(result); err != nil || !p.ForPeople() {
		return err
	}
	opts.notes(facets)
	return nil
}

// notes tells a person what the table doesn't show.
func (opts *facetOptions) notes(f *api.FacetResult) {
	for _, field := range opts.Fields {
		field = strings.TrimSpace(field)
		if more := len(f.Facets[field]) - opts.Top; opts.Top > 0 && more > 0 {
			opts.st.Notef("%s has %d more values: --top 0 shows them", field, more)
		}
	}
	if f.Truncated {
		opts.st.Notef("a field has more values than the service lists: a --filter narrows them")
	}
	opts.st.Notef("of %s", output.Count(f.Window, "record"))
}
