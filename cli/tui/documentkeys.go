package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/api"
)

func (d *documents) press(pressed string) tea.Cmd {
	if d.of == "" && d.pane.key(pressed) {
		return nil
	}
	d.end = d.of == "" && (pressed == "G" || pressed == "end")
	if pressed != "space" && d.key(pressed) || d.of != "" {
		return d.more()
	}
	switch pressed {
	case "enter":
		if d.list.Selected() != "" {
			d.open()
		}
	case "space":
		d.mark()
		return d.more()
	case "/":
		d.box.start("/ ", d.query.find(), `words to look for, a filter such as {"status": "published"}, or both; nothing is all`, nil, d.find)
	case "o":
		d.box.start("order by ", d.query.sort, "fields, - for descending, as in -publishedAt,title; nothing is the collection's own order", d.orders(), d.order)
	case "C":
		d.box.start("columns ", d.query.columns, "fields to show, as in title,seo.title; nothing is the first ones", d.fields(), d.choose)
	case "e", "c":
		switch {
		case d.opening || d.editing != nil: // one editor at a time has the terminal, and a key may be pressed twice
			return nil
		case pressed == "e":
			return d.edit()
		}
		return d.create()
	case "ctrl+d":
		return d.askDelete()
	}
	return nil
}

func (d *documents) find(line string) tea.Cmd {
	filter, words, err := parseFind(line)
	if err != nil {
		d.host.Fail(err.Error(), `a filter is as in {"status": "published", "views": {"$gte": 10}}`)
		return nil
	}
	q := d.query
	q.filter, q.words = filter, words
	return d.ask(q)
}

func (d *documents) order(by string) tea.Cmd {
	q := d.query
	q.sort = strings.ReplaceAll(strings.TrimSpace(by), " ", "")
	return d.ask(q)
}

func (d *documents) choose(columns string) tea.Cmd {
	q := d.query
	q.columns = strings.ReplaceAll(strings.TrimSpace(columns), " ", "")
	return d.ask(q)
}

// mark marks the record with the cursor, or takes its mark away, and goes on to the next.
func (d *documents) mark() {
	id := d.list.Selected()
	if id == "" {
		return
	}
	if d.marks[id] {
		delete(d.marks, id)
	} else {
		d.marks[id] = true
	}
	d.list.Mark(id, d.marks[id])
	d.list.Key("down")
}

// Back implements frame.Backer: out of what is typed, of a page, of the pane, of marks, and of a query.
func (d *documents) Back() (cmd tea.Cmd, used bool) {
	switch {
	case d.saving, d.box.close():
		return nil, true
	case d.of != "":
		return d.table.Back()
	case d.pane.focus:
		d.pane.focus = false
		return nil, true
	case len(d.marks) > 0:
		clear(d.marks)
		d.set()
		return nil, true
	case d.query.find() != "":
		q := d.query
		q.filter, q.words = "", ""
		return d.ask(q), true
	}
	return nil, false
}

// Commands implements frame.Commander.
func (d *documents) Commands() []frame.Command {
	return []frame.Command{
		{Name: "find", Help: `find WORDS, or a filter in JSON, or both; nothing is all`, Run: d.find},
		{Name: "sort", Help: "sort FIELDS, as in -publishedAt,title", Run: d.order, Args: d.orders()},
		{Name: "columns", Help: "columns FIELDS, as in title,seo.title", Run: d.choose, Args: d.fields()},
	}
}

// fields are the paths that can be shown.
func (d *documents) fields() []string {
	if d.about == nil {
		return nil
	}
	var out []string
	var walk func(prefix string, fields []api.FieldDescription)
	walk = func(prefix string, fields []api.FieldDescription) {
		for _, f := range fields {
			if output.Escape(f.Name) != f.Name { // which can't be typed either
				continue
			}
			out = append(out, prefix+f.Name)
			if f.Type == "object" {
				walk(prefix+f.Name+".", f.SubFields)
			}
		}
	}
	walk("", d.about.Fields)
	return append(out, "createdAt", "updatedAt", "createdBy", "updatedBy")
}

// orders are what can be sorted by.
func (d *documents) orders() (out []string) {
	for _, f := range d.fields() {
		out = append(out, f, "-"+f)
	}
	return out
}

// may says whether the user may do something with records, by the name of the method.
func (d *documents) may(method string) bool {
	return d.about == nil || d.about.YourPermissions[method].Allow
}

func (d *documents) Keys() []key.Binding {
	switch {
	case d.saving:
		return nil
	case d.box.open():
		return d.box.keys()
	case d.of != "":
		return d.pageKeys()
	}
	const onRecord = "the cursor is on a record"
	there := d.list.Selected() != ""
	need := func(method, shown, does string) key.Binding {
		if !d.may(method) {
			return frame.When(false, shown, does, "you have the right "+rightOf[method]+" of this collection")
		}
		return frame.When(there || method == "post", shown, does, onRecord)
	}
	return []key.Binding{
		frame.When(there, "enter", "open", onRecord), frame.Binding("/", "find"), need("put", "e", "edit"), need("post", "c", "create"), need("delete", "ctrl+d", "delete"),
		frame.When(there, "space", "mark", onRecord), frame.Binding("o", "order"), frame.Binding("C", "columns"), frame.When(there, "y", "YAML", onRecord),
		frame.Binding("p", d.pane.does()), frame.When(d.pane.shown, "tab", "scroll the record", "its pane is shown"),
	}
}

// rightOf names the right of a method.
//
//nolint:gochecknoglobals // it is never changed
var rightOf = map[string]string{"put": "update", "post": "create", "delete": "delete"}
