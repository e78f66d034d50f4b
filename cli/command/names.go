package command

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Refs are the ids that something has of others.
type Refs struct{ Users, Orgs, Teams []string }

// Names are the usernames and slugs of what ids stand for, as far as the caller may read them.
type Names map[string]string

// Of gives the names of ids, separated by commas; an id without a name stays.
func (n Names) Of(ids ...string) string {
	out := slices.Clone(ids)
	for i, id := range out {
		if name, ok := n[id]; ok {
			out[i] = name
		}
	}
	return strings.Join(out, ", ")
}

// NamesOf asks for the names of ids. What can't be had is left out, since the ids say it, too.
func NamesOf(ctx context.Context, c *client.Client, refs Refs) Names {
	n := Names{}
	name(ctx, n, c.Orgs(), refs.Orgs, func(o api.Org) (string, string) { return o.ID, o.Slug })
	name(ctx, n, c.Teams(), refs.Teams, func(t api.Team) (string, string) { return t.ID, t.Slug })
	name(ctx, n, c.Users(), refs.Users, func(u api.User) (string, string) { return u.ID, u.Username })
	if slices.ContainsFunc(refs.Users, func(id string) bool { return n[id] == "" }) {
		if me, err := c.Me(ctx); err == nil && me.ID != "" { // who may read no users still knows themselves
			n[me.ID] = me.Username
		}
	}
	return n
}

// namesAtOnce is how many names one request asks for, so that its filter is not too long.
const namesAtOnce = 100

func name[T, W any](ctx context.Context, n Names, model client.Model[T, W], ids []string, entry func(T) (id, name string)) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for some := range slices.Chunk(ids, namesAtOnce) {
		filter, err := json.Marshal(map[string]any{"id": map[string]any{"$in": some}})
		if err != nil {
			return
		}
		page, err := model.List(ctx, client.Query{Filter: string(filter), Limit: len(some)})
		if err != nil {
			return
		}
		for _, item := range page.Items {
			id, name := entry(item)
			n[id] = name
		}
	}
}

// table makes the table of items, with the names of what they refer to when somebody is to read it.
func (m Model[T, W]) table(ctx context.Context, st *State, c *client.Client, items ...T) *output.Table {
	p := st.Printer()
	if m.Refs == nil || !p.ForPeople() {
		return m.Table(st, nil, items...)
	}
	var all Refs
	for _, item := range items {
		r := m.Refs(item)
		all = Refs{append(all.Users, r.Users...), append(all.Orgs, r.Orgs...), append(all.Teams, r.Teams...)}
	}
	return m.Table(st, NamesOf(ctx, c, all), items...)
}
