package widget

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
)

// Column is one of a section.
type Column struct {
	Name  string
	Right bool // numbers
	// Rank is what says which columns go where there is no room, the highest first. One of 0 stays; another one goes, too, while
	// there is nothing in it.
	Rank  int
	Least int // how many columns of the terminal its cells may be cut to; 0: they are not
}

// Cell is a text in a row. It is one line; what is not is escaped.
type Cell struct {
	Text string
	Tone output.Tone
}

// Text is a Cell without a tone.
func Text(text string) Cell { return Cell{Text: text} }

// State is a Cell with the word for a state.
func State(word string) Cell { return Cell{word, output.ToneOf(word)} }

// Row is a line of a list. Its ID is no other row's of the same list.
type Row struct {
	ID     string
	Cells  []Cell // one for each column of its section
	Marked bool
}

// Section is rows of one kind, below a title.
type Section struct {
	Title   string // "": the list has this section alone
	None    string // what is said where there are no rows
	Columns []Column
	Rows    []Row
}

// List shows sections of rows, and has a cursor on one row. The cursor stays on its row when what is shown is read anew. Only the rows that are seen are
// drawn: a key takes the same time whatever the list has.
type List struct {
	sections []section
	filter   string
	count    int    // rows that the filter leaves
	id       string // of the row with the cursor
	at       int    // its place among the rows that are shown
	top      int    // line at the top
	page     int    // rows of a page, as it was last drawn
}

// section is a Section as a list has it: escaped, and measured.
type section struct {
	Section

	widths  [][]int // of the cells of each row
	shown   []int   // places of the rows that the filter leaves
	natural []int   // the widest cell of each column among them
}

// Set replaces what the list has.
func (l *List) Set(sections ...Section) {
	l.sections = make([]section, len(sections))
	for i, s := range sections {
		n := len(s.Columns)
		cells, widths := make([]Cell, n*len(s.Rows)), make([]int, n*len(s.Rows))
		own := section{Section: s, widths: make([][]int, len(s.Rows))}
		own.Rows = slices.Clone(s.Rows)
		for j, r := range s.Rows {
			row := cells[j*n : (j+1)*n : (j+1)*n]
			own.widths[j] = widths[j*n : (j+1)*n]
			for k := range min(len(r.Cells), n) {
				row[k] = Cell{output.Escape(r.Cells[k].Text), r.Cells[k].Tone}
				own.widths[j][k] = Width(row[k].Text)
			}
			own.Rows[j].Cells = row
		}
		l.sections[i] = own
	}
	l.narrow()
}

// Filter leaves the rows that have the text in one of their cells, in any case of letters; "" leaves all.
func (l *List) Filter(text string) {
	l.filter = strings.ToLower(text)
	l.narrow()
}

// narrow finds out which rows are shown, and where the cursor is among them.
func (l *List) narrow() {
	at := -1
	l.count = 0
	for i := range l.sections {
		s := &l.sections[i]
		s.shown, s.natural = make([]int, 0, len(s.Rows)), make([]int, len(s.Columns))
		for j := range s.Rows {
			if l.filter != "" && !s.Rows[j].has(l.filter) {
				continue
			}
			if s.Rows[j].ID == l.id && l.id != "" {
				at = l.count
			}
			for k, w := range s.widths[j] {
				s.natural[k] = max(s.natural[k], w)
			}
			s.shown = append(s.shown, j)
			l.count++
		}
	}
	if at >= 0 {
		l.at = at
		return
	}
	l.move(l.at)
}

func (r Row) has(text string) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return strings.Contains(strings.ToLower(c.Text), text) })
}

// row gives a row that is shown, by its place among them.
func (l *List) row(at int) *Row {
	for i := range l.sections {
		s := &l.sections[i]
		if at < len(s.shown) {
			return &s.Rows[s.shown[at]]
		}
		at -= len(s.shown)
	}
	return nil
}

// move puts the cursor on a row by its place, or on the nearest there is.
func (l *List) move(at int) {
	l.at, l.id = max(min(at, l.count-1), 0), ""
	if r := l.row(l.at); r != nil {
		l.id = r.ID
	}
}

// Selected is the ID of the row with the cursor, "" where there is no row.
func (l *List) Selected() string { return l.id }

// Select puts the cursor on a row, if it is shown.
func (l *List) Select(id string) {
	at := 0
	for i := range l.sections {
		s := &l.sections[i]
		for _, j := range s.shown {
			if s.Rows[j].ID == id {
				l.id, l.at = id, at
				return
			}
			at++
		}
	}
}

// Mark marks a row, or takes its mark away, until Set.
func (l *List) Mark(id string, mark bool) {
	for i := range l.sections {
		for j := range l.sections[i].Rows {
			if r := &l.sections[i].Rows[j]; r.ID == id {
				r.Marked = mark
				return
			}
		}
	}
}

// SelectSection puts the cursor on the first row of the next section that has one, behind that of the cursor.
func (l *List) SelectSection() {
	first, of := make([]int, len(l.sections)), 0
	at := 0
	for i := range l.sections {
		first[i] = at
		at += len(l.sections[i].shown)
		if l.at >= first[i] && l.at < at {
			of = i
		}
	}
	for i := 1; i <= len(l.sections); i++ {
		if next := (of + i) % len(l.sections); len(l.sections[next].shown) > 0 {
			l.move(first[next])
			return
		}
	}
}

// At is the place of the cursor among the rows that are shown.
func (l *List) At() int { return l.at }

// Home puts the cursor on the first row.
func (l *List) Home() { l.move(0) }

// Left is how many rows are shown below the one with the cursor.
func (l *List) Left() int { return max(l.count-1-l.at, 0) }

// Key moves the cursor. It says whether the key is one that does.
func (l *List) Key(key string) bool {
	to, ok := moveBy(key, l.at, l.page)
	if ok {
		l.move(to)
	}
	return ok
}

// moveBy gives where a key leads from a place; the ends are the caller's to keep to.
func moveBy(key string, at, page int) (to int, ok bool) {
	page = max(page-1, 1)
	switch key {
	case "up", "k":
		return at - 1, true
	case "down", "j":
		return at + 1, true
	case "pgup", "ctrl+b":
		return at - page, true
	case "pgdown", "ctrl+f", "space":
		return at + page, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return 1 << 30, true
	}
	return at, false
}
