package tui

import (
	"bytes"
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// documents shows the records of a collection that a query gives, page after page as the cursor comes to them, and as they change. They are edited,
// created and deleted there.
type documents struct {
	table

	place  frame.Place
	editor Editor
	reader *documentReader
	about  *api.CollectionDescription // nil: it is not known

	query   documentsQuery
	records []document
	at      map[string]int // places of records by their ids
	columns []string       // as the first page has them
	last    *documentsPage // that was read last: behind it there is more
	total   *int64
	fresh   int  // records that have come, and are not shown
	live    bool // changes are told
	asking  bool // for another page, or by another query
	due     bool // it is to be read anew in a moment

	marks map[string]bool
	box   box
	pane  pane

	editing *doc.Editing // nil: none
	saving  bool
}

// document is a record as the list has it.
type document struct {
	id     string
	record api.Record
	row    widget.Row
	gone   bool // it was deleted
}

func newDocuments(editor Editor) func(h *frame.Host, of frame.Place) frame.Screen {
	return func(h *frame.Host, of frame.Place) frame.Screen {
		d := &documents{
			table: table{host: h}, place: of, editor: editor, marks: map[string]bool{}, at: map[string]int{}, pane: pane{shown: true},
			reader: &documentReader{client: h.Client, ns: of.Namespace, of: api.CollectionDescription{Name: of.Collection}, count: true},
		}
		d.value = func(id string) any {
			if one := d.document(id); one != nil {
				return one.record
			}
			return nil
		}
		return d
	}
}

func (d *documents) Title() string { return d.place.Collection }

// Every implements frame.Reader: who is told of changes need not look for them, and many records are read when they are asked for.
func (d *documents) Every() time.Duration {
	switch {
	case len(d.records) > rereadRecords:
		return 0
	case d.live:
		return 30 * time.Second
	}
	return 3 * time.Second
}

func (d *documents) Read(ctx context.Context) (tea.Msg, error) { return d.reader.read(ctx) }

// Follow implements frame.Follower.
func (d *documents) Follow(ctx context.Context, emit func(tea.Msg)) error {
	return d.reader.follow(ctx, emit)
}

// Filters implements frame.Filterer: it is the service that filters.
func (d *documents) Filters() bool { return false }

// Typing implements frame.Typer. What is being saved is waited for.
func (d *documents) Typing() bool { return d.box.open() || d.saving }

func (d *documents) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		d.asking, d.due = false, false
	case *documentsPage:
		return d.took(msg)
	case documentsLive:
		d.live = msg.live
		return d.changed() // since it was read
	case documentsReset:
		return d.changed()
	case documentChange:
		return d.change(msg.Change)
	case documentsDue:
		d.due = false
		return d.again()
	case frame.Failed:
		d.asking = false
	case editReady, editorEnded, editSaved:
		return d.edits(msg)
	case tea.PasteMsg:
		if d.box.open() {
			return d.box.take(msg)
		}
	case tea.KeyPressMsg:
		switch {
		case d.saving:
			return nil
		case d.box.open():
			return d.box.take(msg)
		}
		return d.press(msg.String())
	}
	return nil
}

// took takes records that were read.
func (d *documents) took(page *documentsPage) tea.Cmd {
	var listen tea.Cmd
	if page.query != d.query && page.offset == 0 && d.asking { // by another query, which the service has taken
		listen = d.begin(page.query)
	} else if page.query != d.query {
		return nil
	}
	d.asking = d.asking && page.offset == 0
	if page.about != nil {
		d.about = page.about
	}
	if page.offset == 0 {
		known := d.records
		at := d.at
		if len(known) == 0 {
			d.columns = nil
		}
		d.records, d.at, d.fresh = make([]document, 0, len(page.records)), map[string]int{}, 0
		d.add(page.records, func(id string) *document {
			if i, ok := at[id]; ok {
				return &known[i]
			}
			return nil
		})
	} else if page.offset == len(d.records) {
		d.add(page.records, func(string) *document { return nil })
	}
	if page.total != nil {
		d.total = page.total
	}
	d.last = page
	cheap := len(d.records) <= rereadRecords && (d.total == nil || *d.total <= cheapToCount)
	d.reader.set(func() { d.reader.want, d.reader.count = len(d.records), cheap })
	d.set()
	return tea.Batch(listen, d.more())
}

// begin begins with another query: what was marked is let go, and changes of other records are listened to.
func (d *documents) begin(q documentsQuery) (listen tea.Cmd) {
	if q.filter != d.query.filter {
		d.reader.set(func() { d.reader.token = "" })
		listen = d.host.Refollow()
	}
	d.query, d.asking, d.total, d.of = q, false, nil, ""
	d.records, d.at, d.columns = nil, map[string]int{}, nil
	clear(d.marks)
	d.list = widget.List{}
	return listen
}

// add puts records behind those there are.
func (d *documents) add(records []api.Record, known func(id string) *document) {
	if d.columns == nil {
		d.columns = columnsOf(records, d.query.columns)
	}
	for _, r := range records {
		id := doc.RecordID(r)
		if _, twice := d.at[id]; twice { // which was moved meanwhile
			continue
		}
		d.at[id] = len(d.records)
		if old := known(id); old != nil && bytes.Equal(old.record, r) && len(old.row.Cells) == len(d.columns)+1 {
			d.records = append(d.records, *old)
			continue
		}
		d.records = append(d.records, document{id: id, record: r, row: d.row(id, r)})
	}
}

// more asks for another page where the cursor comes near the end.
func (d *documents) more() tea.Cmd {
	if d.asking || d.last == nil || !d.last.more || len(d.records) >= mostRecords || d.list.Left() > nearEnd {
		return nil
	}
	d.asking = true
	behind := *d.last
	behind.offset, behind.records = 0, make([]api.Record, len(d.records)) // what counts is how many
	return d.host.Ask(func(ctx context.Context) (tea.Msg, error) { return d.reader.page(ctx, behind.query, &behind, false) })
}

// nearEnd is how many rows below the cursor are few.
const nearEnd = 40

type documentsDue struct{}

// changed has what is shown be read anew in a moment.
func (d *documents) changed() tea.Cmd {
	if d.due {
		return nil
	}
	d.due = true
	return d.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		timer := time.NewTimer(restBeforeRead)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return documentsDue{}, nil
	})
}

// again shows what has changed: by a read, or of many records what was told of them.
func (d *documents) again() tea.Cmd {
	if len(d.records) <= rereadRecords {
		return d.host.Refresh()
	}
	d.set()
	return nil
}

// change takes a change that was told.
func (d *documents) change(c api.Change) tea.Cmd {
	i, shown := d.at[c.ID]
	switch {
	case c.Event == api.EventDelete && shown:
		d.records[i].gone = true // set takes it away
	case c.Event == api.EventDelete:
	case shown:
		d.records[i] = document{id: c.ID, record: c.Item, row: d.row(c.ID, c.Item)}
	case c.Event == api.EventCreate:
		d.fresh++
	}
	return d.changed()
}

func (d *documents) document(id string) *document {
	if i, ok := d.at[id]; ok {
		return &d.records[i]
	}
	return nil
}

// ask shows what another query gives, once the service has taken it.
func (d *documents) ask(q documentsQuery) tea.Cmd {
	if q == d.query || d.asking {
		return nil
	}
	d.asking = true
	d.reader.set(func() { d.reader.query, d.reader.want, d.reader.count = q, 0, true })
	before := d.query
	return d.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		page, err := d.reader.page(ctx, q, nil, true)
		if err != nil {
			d.reader.set(func() { d.reader.query = before })
		}
		return page, err
	})
}

func (d *documents) press(pressed string) tea.Cmd {
	if d.of == "" && d.pane.key(pressed) {
		return nil
	}
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
	case "e":
		return d.edit()
	case "c":
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
