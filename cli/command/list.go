package command

import (
	"iter"

	"github.com/svcctl/svc/cli/output"
)

// List is what a verb shows that lists all things of a kind.
type List[T any] struct {
	Items iter.Seq2[T, error]
	Limit int                 // how many to show; 0: all
	None  string              // the note when there are none
	Name  func(item T) string // for -o name, such as "project/blog"
	Table func(st *State, items ...T) *output.Table
}

// Print reads all items and prints them. An error on the way leaves out what came before it.
func (l List[T]) Print(st *State) error {
	items := []T{}
	var names []string
	for item, err := range l.Items {
		if err != nil {
			return err
		}
		if l.Limit > 0 && len(items) == l.Limit {
			st.Notef("there are more than %d", l.Limit)
			break
		}
		items = append(items, item)
		names = append(names, l.Name(item))
	}
	if len(items) == 0 {
		st.Notef("%s", l.None)
	}
	return st.Printer().Print(output.Result{
		Value: map[string]any{"items": items}, Table: l.Table(st, items...), Names: names,
	})
}
