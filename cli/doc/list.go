package doc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type listOptions struct {
	st *command.State
	place
	Query client.Query
	All   bool
}

func newList(st *command.State, runF func(context.Context, *listOptions) error) *cobra.Command {
	opts := &listOptions{st: st}
	cmd := &cobra.Command{
		Use:     "list [NAMESPACE] COLLECTION",
		Aliases: []string{"ls"},
		Short:   "List records",
		Long: `List records: one page, or with --all every page. A table has the id and the first plain fields; --select chooses
them, -o wide shows all. -o json gives the list as the service does; with --all as one list of all items.`,
		Example: `  svcctl doc list blog articles --filter '{"status": "published"}' --sort -publishedAt --limit 10
  svcctl doc list blog articles --select title,author.name --lookup author
  svcctl doc list blog articles --select title,author --all -o json`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			if err := opts.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runList(ctx, opts)
		}),
	}
	queryFlags(st, cmd, &opts.Query)
	cmd.Flags().IntVar(&opts.Query.Limit, "limit", 0, "records of a page (default: the collection's)")
	cmd.Flags().IntVar(&opts.Query.Offset, "offset", 0, "records to pass over")
	cmd.Flags().StringVar(&opts.Query.After, "after", "", "cursor of the page before (its next)")
	cmd.Flags().BoolVar(&opts.Query.Count, "count", false, "also say how many there are in all")
	cmd.Flags().BoolVar(&opts.All, "all", false, "every page")
	return cmd
}

func (opts *listOptions) check() error {
	if opts.Query.Limit < 0 || opts.Query.Offset < 0 {
		return command.Usagef("--limit and --offset: want 0 or more")
	}
	if opts.All && opts.Query.Count {
		return command.Usagef("--all shows every record, so --count has nothing to add")
	}
	return nil
}

func runList(ctx context.Context, opts *listOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	p := st.Printer()
	var list *api.List[api.Record]
	if opts.All {
		if p.Format == output.FormatJSON {
			return streamList(ctx, c, opts, p)
		}
		list = &api.List[api.Record]{Items: []api.Record{}}
		for r, err := range c.Records(ctx, opts.Namespace, opts.Collection, opts.Query) {
			if err != nil {
				return err
			}
			list.Items = append(list.Items, r)
		}
		list.Limit = len(list.Items)
	} else if list, err = c.ListRecords(ctx, opts.Namespace, opts.Collection, opts.Query); err != nil {
		return err
	}
	result := output.Result{Value: list}
	for _, r := range list.Items {
		result.Names = append(result.Names, opts.Collection+"/"+recordID(r))
	}
	wide := p.Format == output.FormatWide
	if result.Table, err = recordTable(list.Items, nestedPaths(opts.Query.Select), wide || opts.Query.Select != "", wide); err != nil {
		return err
	}
	if err := p.Print(result); err != nil {
		return err
	}
	opts.notes(p, list)
	return nil
}

// notes tells a person what a table doesn't show.
func (opts *listOptions) notes(p output.Printer, list *api.List[api.Record]) {
	if p.Structured() {
		return
	}
	st := opts.st
	switch {
	case len(list.Items) == 0:
		st.Notef("no records in %s that the query gives and you may read", opts.place)
	case list.Total != nil:
		st.Notef("%d of %d records", len(list.Items), *list.Total)
	}
	if list.HasMore && list.Next != "" {
		st.Notef("there are more: --all, or --after %s", list.Next)
	}
}

// streamList writes {"items": [...]} as the pages come, so that it takes any number of records.
func streamList(ctx context.Context, c *client.Client, opts *listOptions, p output.Printer) error {
	w := newArrayWriter(p.W, `{"items":[`, "]}")
	for r, err := range c.Records(ctx, opts.Namespace, opts.Collection, opts.Query) {
		if err != nil {
			return err
		}
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return w.Close()
}
