package tui

import (
	"bytes"
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/doc"
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
	end     bool // the cursor goes to the end as it comes

	marks map[string]bool
	box   box
	pane  pane

	editing *doc.Editing // nil: none
	opening bool         // a record is asked for, to be edited
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
		d.asking, d.due, d.opening = false, false, false
		if d.editing != nil { // what others have changed in it was shown, and left
			d.kept("nothing was saved: the record is as others have changed it")
		}
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
		d.asking, d.opening, d.end = false, false, false
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
	if d.end { // page after page, until all are there
		d.list.Key("end")
		d.end = page.more && len(d.records) < mostRecords
	}
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
