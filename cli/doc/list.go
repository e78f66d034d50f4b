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
	Query     client.Query
	Aggregate string
	All       bool
}

func newList(st *command.State, runF func(context.Context, *listOptions) error) *cobra.Command {
	opts := &listOptions{st: st}
	cmd := &cobra.Command{
		Use:     "list [NAMESPACE] COLLECTION",
		Aliases: []string{"ls"},
		Short:   "List records",
		Long: `List records: one page, or with --all every page. A table has the id and the first plain fields that the terminal has
room for; --select chooses them, -o wide shows all, whole. -o json gives the list as the service does; with --all as one
list of all items.

--lookup puts related records in the place of what refers to them, and --lang shows a translation. --aggregate runs a
pipeline of MongoDB's stages, a JSON list, on the records that --filter selects, and shows what it gives; --limit bounds that.`,
		Example: `  svcctl doc list blog articles --filter '{"status": "published"}' --sort -publishedAt --limit 10
  svcctl doc list blog articles --select title,author.name --lookup author
  svcctl doc list blog articles --lang de --select title
  svcctl doc list blog articles --aggregate '[{"$group": {"_id": "$section", "articles": {"$sum": 1}}}, {"$sort": {"_id": 1}}]'
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
	cmd.Flags().StringVar(&opts.Aggregate, "aggregate", "", "pipeline, a JSON list of stages, whose results are shown in place of the records")
	return cmd
}

// check refuses flags that don't go together.
func (opts *listOptions) check() error {
	q := opts.Query
	if q.Limit < 0 || q.Offset < 0 {
		return command.Usagef("--limit and --offset: want 0 or more")
	}
	if opts.All && q.Count {
		return command.Usagef("--all shows every record, so --count has nothing to add")
	}
	if opts.Aggregate == "" && opts.All && q.Limit > 0 {
		return command.Usagef("--all shows every record, so --limit has nothing to bound: leave one of them out")
	}
	if opts.Aggregate == "" {
		return nil
	}
	for _, flag := range []struct {
		given         bool
		name, instead string
	}{
		{q.Sort != "", "sort", "the stage $sort"},
		{q.Select != "", "select", "the stage $project"},
		{q.Projection != "", "projection", "the stage $project"},
		{q.Lookup != "", "lookup", "the stage $lookup"},
		{q.Lang != "", "lang", "fields such as _i18n.de.title in the pipeline"},
		{q.Offset > 0, "offset", "the stage $skip"},
		{q.After != "", "after", "the stage $match"},
		{q.Count, "count", "the stage $count"},
		{opts.All, "all", "--limit"},
	} {
		if flag.given {
			return command.Usagef("--%s is about records, not about what a pipeline gives: use %s", flag.name, flag.instead)
		}
	}
	if opts.st.Flags.Output == output.FormatName {
		return command.Usagef("-o name is for records: what a pipeline gives has no names")
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
	if opts.All && p.Format == output.FormatJSON {
		return streamList(ctx, c, opts, p)
	}
	list, err := opts.read(ctx, c)
	if err != nil {
		return err
	}
	result := output.Result{Value: list}
	for _, r := range list.Items {
		result.Names = append(result.Names, opts.Collection+"/"+recordID(r))
	}
	l := look{Select: opts.Query.Select, Whole: opts.Aggregate != "", Wide: p.Format == output.FormatWide, Width: st.OutWidth}
	var left bool
	if result.Table, left, err = recordTable(list.Items, l); err != nil {
		return err
	}
	if err := p.Print(result); err != nil {
		return err
	}
	opts.notes(p, list, left)
	return nil
}

// read gives one page, or with --all all of them as one, or what a pipeline gives.
func (opts *listOptions) read(ctx context.Context, c *client.Client) (*api.List[api.Record], error) {
	if opts.Aggregate != "" {
		return c.AggregateRecords(ctx, opts.Namespace, opts.Collection, opts.Aggregate, opts.Query)
	}
	if !opts.All {
		return c.ListRecords(ctx, opts.Namespace, opts.Collection, opts.Query)
	}
	list := &api.List[api.Record]{Items: []api.Record{}}
	for r, err := range c.Records(ctx, opts.Namespace, opts.Collection, opts.Query) {
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, r)
	}
	list.Limit = len(list.Items)
	return list, nil
}

// notes tells a person what a table doesn't show.
func (opts *listOptions) notes(p output.Printer, list *api.List[api.Record], left bool) {
	st := opts.st
	if p.Structured() || p.Format == output.FormatName && !st.OutTTY {
		return
	}
	switch {
	case len(list.Items) == 0 && opts.Aggregate != "":
		st.Notef("the pipeline gives nothing")
	case len(list.Items) == 0:
		st.Notef("no records in %s that the query gives and you may read", opts.place)
	case list.Total != nil:
		st.Notef("%d of %s", len(list.Items), output.Count(*list.Total, "record"))
	}
	if left && p.Format != output.FormatName {
		st.Notef("there are more fields: --select chooses them, -o wide shows all")
	}
	switch {
	case !list.HasMore:
	case opts.Aggregate != "":
		st.Notef("there are more: --limit shows them")
	case opts.Query.After != "": // an offset counts from the first page
		st.Notef("there are more: --all, or --after %s", list.Next)
	default:
		st.Notef("there are more: --all, or --offset %d", opts.Query.Offset+len(list.Items))
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
