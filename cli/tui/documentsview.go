package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// Bounds of the table.
const (
	mostColumns = 7   // of records, the id among them
	longestCell = 120 // characters of a value
)

// columnsOf are the columns of records: the id comes last, where only wide terminals have room for it.
func columnsOf(records []api.Record, selected string) []string {
	columns, _, err := doc.Columns(records, selected, mostColumns)
	if err != nil || len(columns) == 0 {
		return []string{"id"}
	}
	if selected == "" && columns[0] == "id" && len(columns) > 1 {
		columns = append(columns[1:], "id")
	}
	return columns
}

// row is a record in the columns that there are.
func (d *documents) row(id string, record api.Record) widget.Row {
	r := widget.Row{ID: id, Marked: d.marks[id]}
	_, cells, err := doc.Columns([]api.Record{record}, strings.Join(d.columns, ","), len(d.columns))
	for _, c := range d.columns {
		text := ""
		if err == nil {
			text = output.Cut(cells[0][c], longestCell)
		}
		r.Cells = append(r.Cells, widget.Text(text))
	}
	var about struct{ UpdatedAt api.Time }
	changed := widget.Cell{}
	if json.Unmarshal(record, &about) == nil {
		changed.Text = about.UpdatedAt.UTC().Format(time.DateTime)
		if about.UpdatedAt.IsZero() {
			changed.Text = ""
		}
	}
	r.Cells = append(r.Cells, changed)
	return r
}

// set shows the records, without those that are gone.
func (d *documents) set() {
	if slices.ContainsFunc(d.records, func(one document) bool { return one.gone }) {
		d.records = slices.DeleteFunc(d.records, func(one document) bool { return one.gone })
		d.at = make(map[string]int, len(d.records))
		for i := range d.records {
			d.at[d.records[i].id] = i
		}
	}
	s := widget.Section{None: "no records that you may read"}
	if d.query.find() != "" {
		s.None = "nothing is found: esc shows all"
	}
	for i, c := range d.columns {
		column := widget.Column{Name: strings.ToUpper(c), Rank: i, Least: 8}
		if c == "id" && i > 0 {
			column.Rank, column.Least = len(d.columns)+1, 0
		}
		s.Columns = append(s.Columns, column)
	}
	s.Columns = append(s.Columns, widget.Column{Name: "CHANGED", Rank: len(d.columns)})
	s.Rows = make([]widget.Row, len(d.records))
	for i := range d.records {
		s.Rows[i] = d.records[i].row
		s.Rows[i].Marked = d.marks[d.records[i].id]
	}
	for id := range d.marks {
		if _, there := d.at[id]; !there {
			delete(d.marks, id)
		}
	}
	d.list.Set(s)
}

func (d *documents) View(width, height int) string {
	if d.of != "" {
		return d.view(width, height, d.doc)
	}
	t := d.host.Theme()
	head := d.summary(width, t)
	if d.box.open() {
		head = d.box.view(width, t)
	}
	height -= len(head)
	table, below := d.pane.split(width, height, func(id string) (string, api.Record) {
		if one := d.document(id); one != nil {
			return one.id, one.record
		}
		return "", nil
	}, &d.table, t)
	return lines(append(head, table...)) + below
}

// summary says what is shown.
func (d *documents) summary(width int, t widget.Theme) []string {
	var what []string
	if d.query.filter != "" {
		what = append(what, "filter "+d.query.filter)
	}
	if d.query.words != "" {
		what = append(what, "words "+d.query.words)
	}
	if d.query.sort != "" {
		what = append(what, "order "+d.query.sort)
	}
	if what == nil {
		what = []string{"all records"}
	}
	count := fmt.Sprintf("%d shown", len(d.records))
	if d.total != nil {
		count = fmt.Sprintf("%d of %d", len(d.records), max(*d.total, int64(len(d.records))))
	} else if d.last != nil && d.last.more {
		count = fmt.Sprintf("the first %d", len(d.records))
	}
	parts := []string{count}
	if d.fresh > 0 && len(d.records) > rereadRecords {
		parts = append(parts, fmt.Sprintf("%d new: ctrl+r shows them", d.fresh))
	}
	if len(d.marks) > 0 {
		parts = append(parts, fmt.Sprintf("%d marked", len(d.marks)))
	}
	switch {
	case d.saving:
		parts = append(parts, "saving …")
	case d.asking:
		parts = append(parts, "asking …")
	case len(d.records) >= mostRecords && d.last != nil && d.last.more:
		parts = append(parts, "these are the first ones: a filter shows others")
	}
	if d.live {
		parts = append(parts, "live")
	}
	return []string{widget.Cut(output.Escape(strings.Join(what, "  ")), width), t.Faint.Render(widget.Cut(strings.Join(parts, "  "), width))}
}

// doc is the page about a record: all of it.
func (d *documents) doc(id string) (out widget.Doc, ok bool) {
	one := d.document(id)
	if one == nil {
		return out, false
	}
	return recordDoc(one.record, d.host.Theme()), true
}

// recordDoc is a record as JSON that is laid out.
func recordDoc(record api.Record, t widget.Theme) (d widget.Doc) {
	var b bytes.Buffer
	if err := json.Indent(&b, record, "", "  "); err != nil {
		d.Text(string(record))
		return d
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		d.Painted(widget.Member(line, t))
	}
	return d
}

// ownFirst puts what the service sets behind a record's own members, which are what there is room for.
func ownFirst(record api.Record) api.Record {
	members, err := membersOf(record)
	if err != nil {
		return record
	}
	slices.SortStableFunc(members, func(a, b member) int {
		switch {
		case doc.Reserved(a.name) == doc.Reserved(b.name):
			return 0
		case doc.Reserved(a.name):
			return 1
		}
		return -1
	})
	if sorted, err := indented(members); err == nil {
		return sorted
	}
	return record
}

// pane shows the row with the cursor whole, beside the list or below it.
type pane struct {
	shown, focus bool
	pager        widget.Pager

	id     string
	record api.Record // what doc was made of
	look   string     // and how it was painted
	doc    widget.Doc
}

// Room of the pane.
const (
	wideForPane = 120 // columns from which on it is beside the list
	highForPane = 14  // lines from which on it is below it
)

func (p *pane) does() string {
	if p.shown {
		return "hide the record"
	}
	return "show the record"
}

// key takes those of the pane. It says whether it has.
func (p *pane) key(pressed string) bool {
	switch {
	case pressed == "p":
		p.shown, p.focus = !p.shown, false
	case pressed == "tab" && p.shown:
		p.focus = !p.focus
	case p.focus:
		return p.pager.Key(pressed)
	default:
		return false
	}
	return true
}

// split draws a list, and the pane where there is room for it. below is what comes below the list.
func (p *pane) split(width, height int, of func(id string) (string, api.Record), list *table, t widget.Theme) (above []string, below string) {
	id, record := of(list.list.Selected())
	whole := !p.shown || id == "" || width < wideForPane && height < highForPane
	if whole {
		p.focus = false
		return []string{list.list.View(width, height, t)}, ""
	}
	if id != p.id {
		p.pager = widget.Pager{}
	}
	if look := t.Key.Render("k"); id != p.id || look != p.look || !bytes.Equal(record, p.record) {
		p.id, p.record, p.look, p.doc = id, record, look, recordDoc(ownFirst(record), t)
	}
	title := func(width int) string {
		text := "Record " + output.Escape(id) + " "
		if p.focus {
			text = "Record " + output.Escape(id) + " (tab goes back) "
		}
		return t.Title.Render(widget.Cut(text+strings.Repeat("─", max(width-widget.Width(text), 0)), width))
	}
	if width < wideForPane {
		room := height * 2 / 5
		rows := fill(list.list.View(width, height-room, t), height-room)
		return rows, "\n" + title(width) + "\n" + p.pager.View(p.doc, width, room-1, t)
	}
	left := width * 11 / 20
	right := width - left - 3
	rows := fill(list.list.View(left, height, t), height)
	side := fill(title(right)+"\n"+p.pager.View(p.doc, right, height-1, t), height)
	for i := range rows {
		rows[i] = widget.Pad(rows[i], left, false) + t.Faint.Render(" │ ") + side[i]
	}
	return rows, ""
}
