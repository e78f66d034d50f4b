package tui

import (
	"bytes"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// table is what most screens are: a list, and a page about one of its rows, which stays what the service says.
type table struct {
	host  *frame.Host
	list  widget.List
	of    string // ID of the row that the page is about; "": the list is shown
	yaml  bool   // the page is the row as YAML
	pager widget.Pager
	bare  bool // there are no pages about rows

	value func(id string) any // what a row stands for, to be shown as YAML; nil is nothing. A nil function: there is no YAML of any
}

// Filter implements frame.Filterer.
func (t *table) Filter(text string) { t.list.Filter(text) }

// Filters implements frame.Filterer.
func (t *table) Filters() bool { return t.of == "" }

// open shows the page about the row with the cursor.
func (t *table) open() { t.show(false) }

func (t *table) show(yaml bool) { t.of, t.yaml, t.pager = t.list.Selected(), yaml, widget.Pager{} }

// Back implements frame.Backer: it leaves the page.
func (t *table) Back() (cmd tea.Cmd, used bool) {
	used = t.of != ""
	t.of = ""
	return nil, used
}

// key moves in what is shown, and opens pages. It says whether the key is one that does.
func (t *table) key(pressed string) bool {
	switch {
	case pressed == "y" && t.value != nil && t.list.Selected() != "" && (t.of != "" || t.value(t.list.Selected()) != nil):
		if t.of == "" {
			t.show(true)
		} else {
			t.yaml, t.pager = !t.yaml, widget.Pager{}
		}
		return true
	case pressed == "d" && t.of == "" && !t.bare && t.list.Selected() != "":
		t.open()
		return true
	case t.of != "":
		return t.pager.Key(pressed)
	}
	return t.list.Key(pressed)
}

// view draws the list, or the page that doc makes of a row's ID; there is none where the row is gone.
func (t *table) view(width, height int, doc func(id string) (widget.Doc, bool)) string {
	if t.of == "" {
		return t.list.View(width, height, t.host.Theme())
	}
	var d widget.Doc
	ok := false
	if !t.yaml {
		d, ok = doc(t.of)
	} else if v := t.value(t.of); v != nil {
		d, ok = yamlDoc(v, t.host.Theme()), true
	}
	if !ok {
		d.Text("It is not there any more. esc goes back.")
	}
	return t.pager.View(d, width, height, t.host.Theme())
}

// pageKeys are those of a page.
func (t *table) pageKeys() []key.Binding {
	keys := []key.Binding{keyScroll()}
	switch {
	case t.value == nil:
	case t.yaml:
		keys = append(keys, frame.Binding("y", "in words"))
	default:
		keys = append(keys, keyYAML())
	}
	return keys
}

// yamlDoc is a value as YAML.
func yamlDoc(v any, t widget.Theme) (d widget.Doc) {
	var b bytes.Buffer
	if err := (output.Printer{W: &b}).YAML(v); err != nil {
		d.Text("It can't be shown: " + err.Error())
		return d
	}
	for line := range strings.SplitSeq(strings.TrimRight(b.String(), "\n"), "\n") {
		d.Painted(widget.Member(line, t))
	}
	return d
}

// first gives the first item of a list that is what is looked for; nil: there is none.
func first[T any](list []T, is func(one *T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// keyScroll moves in a page.
func keyScroll() key.Binding { return frame.Binding("↑↓", "scroll", "up", "down") }

// keyDetails opens the page about a row.
func keyDetails() key.Binding { return frame.Binding("enter", "details") }

// keyYAML shows a row as YAML.
func keyYAML() key.Binding { return frame.Binding("y", "YAML") }
