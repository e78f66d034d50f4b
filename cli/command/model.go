package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

// Model is what the nouns of system models (org, team, user, token) have alike: the verbs list, get and delete, and the work
// of create and update.
type Model[T, W any] struct {
	Noun   string // such as "org"
	Ref    string // what one is named by in usage lines, such as "SLUG"
	Sample string // one of them, for examples
	Items  func(c *client.Client) client.Model[T, W]
	Find   func(ctx context.Context, c *client.Client, ref string) (*T, error)
	ID     func(item T) string
	Name   func(item T) string // its own name, such as its slug
	Table  func(st *State, names Names, items ...T) *output.Table
	Refs   func(item T) Refs // what the table names; nil: nothing
	With   string            // what is deleted with one, such as " with its tokens"

	Complete CompleteFunc                                            // of references; nil: nothing is completed
	Resolve  func(ctx context.Context, c *client.Client, w *W) error // puts ids in the place of names; nil: there are none
}

// One reads what a reference names. It gives the client that it asked, too.
func (m Model[T, W]) One(ctx context.Context, st *State, ref string) (*client.Client, *T, error) {
	c, err := st.Client()
	if err != nil {
		return nil, nil, err
	}
	item, err := m.Find(ctx, c, ref)
	return c, item, err
}

// Show prints one.
func (m Model[T, W]) Show(ctx context.Context, st *State, c *client.Client, item *T) error {
	return st.Printer().Print(output.Result{Value: item, Table: m.table(ctx, st, c, *item), Names: []string{m.key(*item)}})
}

// Create makes one and prints it.
func (m Model[T, W]) Create(ctx context.Context, st *State, w W) error {
	c, err := st.Client()
	if err == nil {
		err = m.resolve(ctx, c, &w)
	}
	if err != nil {
		return err
	}
	item, err := m.Items(c).Create(ctx, w)
	if err != nil {
		return err
	}
	return m.Show(ctx, st, c, item)
}

// Update changes what a reference names and prints it.
func (m Model[T, W]) Update(ctx context.Context, st *State, ref string, w W) error {
	c, item, err := m.One(ctx, st, ref)
	if err == nil {
		err = m.resolve(ctx, c, &w)
	}
	if err != nil {
		return err
	}
	if item, err = m.Items(c).Update(ctx, m.ID(*item), w); err != nil {
		return err
	}
	return m.Show(ctx, st, c, item)
}

// ListCmd makes the verb list. none is the note when there are none.
func (m Model[T, W]) ListCmd(st *State, short, none string) *cobra.Command {
	var q client.Query
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             short,
		Example:           "  svcctl " + m.Noun + " list -o wide",
		Args:              Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return m.list(cmd.Context(), st, q, none) },
	}
	cmd.Flags().StringVar(&q.Filter, "filter", "", `JSON filter, as in '{"name": "x"}'`)
	cmd.Flags().StringVar(&q.Sort, "sort", "", "members to sort by, - for descending, as in -createdAt")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most so many (default: all)")
	return cmd
}

// maxPage is how many the service gives in one page.
const maxPage = 1000

func (m Model[T, W]) list(ctx context.Context, st *State, q client.Query, none string) error {
	if q.Limit < 0 {
		return Usagef("--limit: want 0 or more")
	}
	if q.Filter != "" {
		none = "none that the filter gives and you may see"
	}
	c, err := st.Client()
	if err != nil {
		return err
	}
	limit := q.Limit
	q.Limit = min(limit, maxPage)
	return List[T]{
		Items: m.Items(c).All(ctx, q), Limit: limit, None: none, Name: m.key,
		Table: func(st *State, items ...T) *output.Table { return m.table(ctx, st, c, items...) },
	}.Print(st)
}

// GetCmd makes the verb get.
func (m Model[T, W]) GetCmd(st *State, short string) *cobra.Command {
	return &cobra.Command{
		Use:               "get " + m.Ref,
		Short:             short,
		Example:           "  svcctl " + m.Noun + " get " + m.Sample + " -o yaml",
		Args:              Args(cobra.ExactArgs(1)),
		ValidArgsFunction: m.completion(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, item, err := m.One(cmd.Context(), st, args[0])
			if err != nil {
				return err
			}
			return m.Show(cmd.Context(), st, c, item)
		},
	}
}

// DeleteCmd makes the verb delete.
func (m Model[T, W]) DeleteCmd(st *State, short string) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               "delete " + m.Ref,
		Short:             short,
		Example:           "  svcctl " + m.Noun + " delete " + m.Sample + " --yes",
		Args:              Args(cobra.ExactArgs(1)),
		ValidArgsFunction: m.completion(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, item, err := m.One(cmd.Context(), st, args[0])
			if err != nil {
				return err
			}
			name := m.Name(*item)
			if err := st.Confirm(yes, fmt.Sprintf("Delete %s %s%s at %s?", m.Noun, name, m.With, c.Server())); err != nil {
				return err
			}
			if _, err := m.Items(c).Delete(cmd.Context(), m.ID(*item)); err != nil {
				return err
			}
			st.Notef("%s %s is deleted%s", m.Noun, name, m.With)
			return nil
		},
	}
	YesFlag(cmd, &yes)
	return cmd
}

// key is what -o name gives.
func (m Model[T, W]) key(item T) string { return m.Noun + "/" + m.Name(item) }

func (m Model[T, W]) resolve(ctx context.Context, c *client.Client, w *W) error {
	if m.Resolve == nil {
		return nil
	}
	return m.Resolve(ctx, c, w)
}

func (m Model[T, W]) completion() CompleteFunc {
	if m.Complete == nil {
		return cobra.NoFileCompletions
	}
	return m.Complete
}
