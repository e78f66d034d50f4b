package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type listOptions struct {
	st           *command.State
	Since, Until string
	Op, Actor    string
	All, Follow  bool
	Query        client.Query
}

func newList(st *command.State) *cobra.Command {
	opts := &listOptions{st: st}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls", "query"},
		Short:   "List entries of the audit log, newest first",
		Long: `List entries of the audit log, newest first: one page, or with --all every page. Without -n it is the log of the
service itself (users, projects, logins, …), which is for administrators; with it, that of the project's records, as far as
you may read them; a context's namespace doesn't count here. Both take the right audit.read. -o json shows the states before and after.

With --follow, the entries of the last page come in the order in which they were made, and it goes on with what comes, until you interrupt it;
-o json gives an object a line then.

A filter can name id, at, kind, op, collection, recordId, actor.kind, actor.id, actor.name, tokenId, requestId and address.`,
		Example: `  svcctl audit list --since 1d --op delete --actor ann
  svcctl audit list --follow --since 1h
  svcctl audit list -n blog --filter '{"collection": "articles", "op": "delete"}' -o json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), opts) },
	}
	cmd.Flags().StringVar(&opts.Query.Filter, "filter", "", `JSON filter, as in '{"actor.name": "ann"}'`)
	cmd.Flags().StringVar(&opts.Since, "since", "", "nothing older: an age such as 12h, 30d or 8w, a date such as 2026-01-31, or a time in RFC 3339")
	cmd.Flags().StringVar(&opts.Until, "until", "", "nothing from then on: as for --since")
	cmd.Flags().StringVar(&opts.Op, "op", "", "only this operation: create, update, delete, login, …")
	cmd.Flags().StringVar(&opts.Actor, "actor", "", "only what was done by who has this name, such as a username")
	cmd.Flags().IntVar(&opts.Query.Limit, "limit", 0, "entries of a page (default 100)")
	cmd.Flags().StringVar(&opts.Query.After, "after", "", "cursor of the page before (its next)")
	cmd.Flags().BoolVar(&opts.All, "all", false, "every page")
	cmd.Flags().BoolVar(&opts.Follow, "follow", false, "go on with what comes")
	cmd.MarkFlagsMutuallyExclusive("follow", "all")
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	cmd.MarkFlagsMutuallyExclusive("follow", "after")
	return cmd
}

func runList(ctx context.Context, opts *listOptions) error {
	st := opts.st
	q := opts.Query
	var err error
	if q.Filter, err = opts.filter(); err != nil {
		return err
	}
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.Follow {
		return follow(ctx, c, opts, q)
	}
	page, err := read(ctx, c, opts, q)
	if err != nil {
		return err
	}
	t := output.NewTable("AT", "OP", "WHAT", "BY", "FROM", "+REQUEST", "+ID")
	result := output.Result{Value: page, Table: t}
	for _, e := range page.Items {
		t.Row(e.At.Format(time.RFC3339), e.Op, What(e), Who(e), e.Address, e.RequestID, e.ID)
		result.Names = append(result.Names, "entry/"+e.ID)
	}
	if err := st.Printer().Print(result); err != nil {
		return err
	}
	switch {
	case st.Printer().Structured():
	case len(page.Items) == 0 && q.Filter == "" && st.GivenNamespace() != "":
		st.Notef("no entries that you may see; the key audit of the project's config has writes recorded, and without -n svcctl audit list shows the service's own log")
	case len(page.Items) == 0:
		st.Notef("no entries that the query gives and you may see")
	case page.HasMore:
		st.Notef("there are more: --all, or --after %s", page.Next)
	}
	return nil
}

// read gives one page, or with --all all of them as one.
func read(ctx context.Context, c *client.Client, opts *listOptions, q client.Query) (*api.List[api.AuditEntry], error) {
	project := opts.st.GivenNamespace()
	if !opts.All {
		return readPage(ctx, c, project, q)
	}
	entries := c.Audit(ctx, q)
	if project != "" {
		entries = c.ProjectAudit(ctx, project, q)
	}
	out := &api.List[api.AuditEntry]{Items: []api.AuditEntry{}}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, e)
	}
	out.Limit = len(out.Items)
	return out, nil
}

// readPage gives one page of a project's log, or with "" of the service's own.
func readPage(ctx context.Context, c *client.Client, project string, q client.Query) (*api.List[api.AuditEntry], error) {
	if project == "" {
		return c.ListAudit(ctx, q)
	}
	return c.ListProjectAudit(ctx, project, q)
}

// filter joins the flags that select.
func (opts *listOptions) filter() (string, error) {
	if given := opts.Query.Filter; given != "" && !json.Valid([]byte(given)) {
		return "", command.Usagef("--filter is not JSON")
	}
	for _, bound := range []struct{ flag, value string }{{"since", opts.Since}, {"until", opts.Until}} {
		if _, ok := command.ParseTime(bound.value, opts.st.Now(), -1); bound.value != "" && !ok {
			return "", command.Usagef("--%s %s: want an age such as 12h, 30d or 8w, a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z",
				bound.flag, bound.value)
		}
	}
	return Which{Filter: opts.Query.Filter, Since: opts.Since, Until: opts.Until, Op: opts.Op, Actor: opts.Actor}.JSON(opts.st.Now())
}

// Which says which entries are wanted: all that every member that is not "" selects.
type Which struct {
	Filter       string // JSON
	Since, Until string // a moment, as command.ParseTime reads it
	Op, Actor    string
}

// JSON is the filter for the service; "": all entries.
func (w Which) JSON(now time.Time) (string, error) {
	var all []json.RawMessage
	if w.Filter != "" {
		all = append(all, json.RawMessage(w.Filter))
	}
	var at map[string]string
	for _, bound := range []struct{ value, op string }{{w.Since, "$gte"}, {w.Until, "$lt"}} {
		if bound.value == "" {
			continue
		}
		t, ok := command.ParseTime(bound.value, now, -1)
		if !ok {
			return "", command.Usagef("%s: want an age such as 12h, 30d or 8w, a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z", bound.value)
		}
		if at == nil {
			at = map[string]string{}
		}
		at[bound.op] = t.Format(time.RFC3339Nano)
	}
	own := map[string]any{}
	if at != nil {
		own["at"] = at
	}
	if w.Op != "" {
		own["op"] = w.Op
	}
	if w.Actor != "" {
		own["actor.name"] = w.Actor
	}
	if len(own) > 0 {
		raw, err := json.Marshal(own)
		if err != nil {
			return "", fmt.Errorf("make the filter: %w", err)
		}
		all = append(all, raw)
	}
	switch len(all) {
	case 0:
		return "", nil
	case 1:
		return string(all[0]), nil
	}
	raw, err := json.Marshal(map[string]any{"$and": all})
	return string(raw), err
}

// What says what an entry is about: "blog articles/65f0c2a1b3d4e5f60718293a".
func What(e api.AuditEntry) string {
	text := e.Collection
	if e.RecordID != "" {
		text += "/" + e.RecordID
	}
	if e.Namespace != "" {
		text = e.Namespace + " " + text
	}
	return text
}

// Who says who did it, by the name if there is one.
func Who(e api.AuditEntry) string {
	switch {
	case e.Actor.Name != "":
		return e.Actor.Name
	case e.Actor.ID != "":
		return e.Actor.Kind + ":" + e.Actor.ID
	}
	return e.Actor.Kind
}
