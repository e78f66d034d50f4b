package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// table is what most screens are: a list, and a page about one of its rows, which stays what the service says.
type table struct {
	host  *frame.Host
	list  widget.List
	of    string // ID of the row that the page is about; "": the list is shown
	pager widget.Pager
}

// Filter implements frame.Filterer.
func (t *table) Filter(text string) { t.list.Filter(text) }

// Filters implements frame.Filterer.
func (t *table) Filters() bool { return t.of == "" }

// open shows the page about the row with the cursor.
func (t *table) open() { t.of, t.pager = t.list.Selected(), widget.Pager{} }

// Back implements frame.Backer: it leaves the page.
func (t *table) Back() (cmd tea.Cmd, used bool) {
	used = t.of != ""
	t.of = ""
	return nil, used
}

// key moves in what is shown. It says whether the key is one that does.
func (t *table) key(pressed string) bool {
	if t.of != "" {
		return t.pager.Key(pressed)
	}
	return t.list.Key(pressed)
}

// view draws the list, or the page that doc makes of a row's ID; there is none where the row is gone.
func (t *table) view(width, height int, doc func(id string) (widget.Doc, bool)) string {
	if t.of != "" {
		d, ok := doc(t.of)
		if !ok {
			d.Text("It is not there any more. esc goes back.")
		}
		return t.pager.View(d, width, height, t.host.Theme())
	}
	return t.list.View(width, height, t.host.Theme())
}

// keyScroll moves in a page.
func keyScroll() key.Binding { return frame.Binding("↑↓", "scroll", "up", "down") }

// keyDetails opens the page about a row.
func keyDetails() key.Binding { return frame.Binding("enter", "details") }
