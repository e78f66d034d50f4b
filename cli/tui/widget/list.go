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
	ID    string
	Cells []Cell // one for each column of its section
}

// Section is rows of one kind, below a title.
type Section struct {
	Title   string // "": the list has this section alone
	None    string // what is said where there are no rows
	Columns []Column
	Rows    []Row
}

// List shows sections of rows, and has a cursor on one row. The cursor stays on its row when what is shown is read anew.
type List struct {
	sections []Section // as they were given, escaped
	shown    []Section // what the filter leaves
	filter   string
	id       string // of the row with the cursor
	at       int    // its place among the rows that are shown
	top      int    // line at the top
	page     int    // rows of a page, as it was last drawn
}

// Set replaces what the list has.
func (l *List) Set(sections ...Section) {
	l.sections = make([]Section, len(sections))
	for i, s := range sections {
		s.Rows = slices.Clone(s.Rows)
		for j, r := range s.Rows {
			cells := slices.Clone(r.Cells)
			for k := range cells {
				cells[k].Text = output.Escape(cells[k].Text)
			}
			s.Rows[j].Cells = cells
		}
		l.sections[i] = s
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
	l.shown = make([]Section, len(l.sections))
	for i, s := range l.sections {
		if l.filter != "" {
			s.Rows = slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { return !r.has(l.filter) })
		}
		l.shown[i] = s
	}
	ids := l.ids()
	if at := slices.Index(ids, l.id); at >= 0 {
		l.at = at
		return
	}
	l.move(ids, l.at)
}

func (r Row) has(text string) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return strings.Contains(strings.ToLower(c.Text), text) })
}

func (l *List) ids() (ids []string) {
	for _, s := range l.shown {
		for _, r := range s.Rows {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// move puts the cursor on a row by its place, or on the nearest there is.
func (l *List) move(ids []string, at int) {
	l.at, l.id = max(min(at, len(ids)-1), 0), ""
	if len(ids) > 0 {
		l.id = ids[l.at]
	}
}

// Selected is the ID of the row with the cursor, "" where there is no row.
func (l *List) Selected() string { return l.id }

// Select puts the cursor on a row, if it is shown.
func (l *List) Select(id string) {
	if at := slices.Index(l.ids(), id); at >= 0 {
		l.id, l.at = id, at
	}
}

// Key moves the cursor. It says whether the key is one that does.
func (l *List) Key(key string) bool {
	to, ok := moveBy(key, l.at, l.page)
	if ok {
		l.move(l.ids(), to)
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

// line is one of what is drawn.
type line struct {
	text string
	head string // what stands for it while it is the topmost: the headings of its section
	row  int    // place among the rows, -1: none
}

// View draws the list in so many columns and lines at most.
func (l *List) View(width, height int, t Theme) string {
	l.page = height
	lines := l.lines(width, t)
	at := slices.IndexFunc(lines, func(x line) bool { return x.row == l.at })
	l.top = scroll(l.top, max(at, 0), len(lines), height)
	if l.at == 0 && at < height { // with the title above
		l.top = 0
	}
	lines = lines[l.top:min(l.top+max(height, 0), len(lines))]
	out := make([]string, len(lines))
	for i, x := range lines {
		out[i] = x.text
		if i == 0 && x.row >= 0 && x.row != l.at {
			out[i] = x.head
		}
	}
	return strings.Join(out, "\n")
}

// scroll gives the topmost line that shows the line at, with the one before it, which may be drawn over.
func scroll(top, at, lines, height int) int {
	top = min(top, max(at-1, 0))
	top = max(top, at-height+1)
	return max(min(top, lines-height), 0)
}

func (l *List) lines(width int, t Theme) (lines []line) {
	row := 0
	for i, s := range l.shown {
		if i > 0 {
			lines = append(lines, line{row: -1})
		}
		if s.Title != "" {
			lines = append(lines, line{t.Title.Render(Cut(s.Title, width)), "", -1})
		}
		if len(s.Rows) == 0 {
			none := s.None
			if l.filter != "" && len(l.sections[i].Rows) > 0 {
				none = "nothing that the filter leaves"
			}
			for _, text := range Wrap(output.Escape(none), width-len(margin)) {
				lines = append(lines, line{margin + t.Faint.Render(text), "", -1})
			}
			continue
		}
		places := layOut(s, width-len(margin))
		head := margin + t.Heading.Render(Cut(headings(s, places), width-len(margin)))
		lines = append(lines, line{head, "", -1})
		for _, r := range s.Rows {
			lines = append(lines, line{l.draw(r, places, width, row == l.at, t), head, row})
			row++
		}
	}
	return lines
}

// What stands to the left of rows, of the one with the cursor too, and between columns.
const (
	margin  = "  "
	pointer = "▸ "
	between = "  "
)

func (l *List) draw(r Row, places []place, width int, selected bool, t Theme) string {
	for len(places) > 1 && r.cell(places[len(places)-1].column).Text == "" { // nothing is behind the last text
		places = places[:len(places)-1]
	}
	parts := make([]string, len(places))
	for i, p := range places {
		cell := r.cell(p.column)
		text := Cut(cell.Text, p.width)
		fill := strings.Repeat(" ", p.width-Width(text))
		if !selected {
			text = t.Paint(cell.Tone, text)
		}
		switch {
		case p.right:
			parts[i] = fill + text
		case i < len(places)-1:
			parts[i] = text + fill
		default:
			parts[i] = text
		}
	}
	text := Cut(strings.Join(parts, between), width-len(margin))
	if selected {
		return t.Selected.Render(Pad(pointer+text, width, false))
	}
	return margin + text
}

func (r Row) cell(column int) Cell {
	if column < len(r.Cells) {
		return r.Cells[column]
	}
	return Cell{}
}

func headings(s Section, places []place) string {
	parts := make([]string, len(places))
	for i, p := range places {
		parts[i] = Pad(s.Columns[p.column].Name, p.width, p.right)
	}
	return strings.TrimRight(strings.Join(parts, between), " ")
}

// place is a column that is shown.
type place struct {
	column, width int
	right         bool
}

// layOut says which columns of a section are shown, and how wide they are.
func layOut(s Section, width int) []place {
	natural, least := make([]int, len(s.Columns)), make([]int, len(s.Columns))
	var shown []int
	for i, c := range s.Columns {
		for _, r := range s.Rows {
			if i < len(r.Cells) {
				natural[i] = max(natural[i], Width(r.Cells[i].Text))
			}
		}
		if natural[i] == 0 && c.Rank > 0 {
			continue
		}
		natural[i] = max(natural[i], Width(c.Name))
		least[i] = natural[i]
		if c.Least > 0 {
			least[i] = min(natural[i], max(c.Least, Width(c.Name)))
		}
		shown = append(shown, i)
	}
	needed := slices.Clone(least)
	for i, c := range s.Columns {
		if c.Rank == 0 { // which is cut only when the others are gone
			needed[i] = natural[i]
		}
	}
	for total(shown, needed) > width {
		lowest := slices.MaxFunc(shown, func(a, b int) int { return s.Columns[a].Rank - s.Columns[b].Rank })
		if s.Columns[lowest].Rank == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == lowest })
	}
	for _, least := range [][]int{needed, least} {
		shrink(shown, natural, least, width)
	}
	places := make([]place, len(shown))
	for i, c := range shown {
		places[i] = place{c, natural[c], s.Columns[c].Right}
	}
	return places
}

// shrink takes from the columns that can spare most, until they fit or none can.
func shrink(shown, widths, least []int, width int) {
	for over := total(shown, widths) - width; over > 0; over-- {
		at := slices.MaxFunc(shown, func(a, b int) int { return (widths[a] - least[a]) - (widths[b] - least[b]) })
		if widths[at] <= least[at] {
			return
		}
		widths[at]--
	}
}

func total(shown, widths []int) int {
	sum := len(between) * max(len(shown)-1, 0)
	for _, i := range shown {
		sum += widths[i]
	}
	return sum
}
