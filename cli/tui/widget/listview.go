package widget

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
)

// stretch is lines one below the other: those that are drawn already, and then the rows of a section.
type stretch struct {
	lines   []string
	section *section
	places  []place
	heading string // that stands for the topmost row where those above it have no room
	rows    int
	first   int // place of the first row among all that are shown
}

// View draws the list in so many columns and lines at most.
func (l *List) View(width, height int, t Theme) string {
	l.page = height
	stretches := l.stretches(width, t)
	total, at := 0, 0
	for _, s := range stretches {
		if l.at >= s.first && l.at < s.first+s.rows {
			at = total + len(s.lines) + l.at - s.first
		}
		total += len(s.lines) + s.rows
	}
	l.top = scroll(l.top, at, total, height)
	if l.at == 0 && at < height { // with the title above
		l.top = 0
	}
	var out []string
	y := 0 // of the line
	for _, s := range stretches {
		for i := max(l.top-y, 0); i < len(s.lines)+s.rows && len(out) < height; i++ {
			if i < len(s.lines) {
				out = append(out, s.lines[i])
				continue
			}
			row := s.first + i - len(s.lines)
			if len(out) == 0 && row != l.at {
				out = append(out, s.heading)
				continue
			}
			r := &s.section.Rows[s.section.shown[i-len(s.lines)]]
			out = append(out, l.draw(r, s.places, width, row == l.at, t))
		}
		y += len(s.lines) + s.rows
	}
	return strings.Join(out, "\n")
}

// scroll gives the topmost line that shows the line at, with the one before it, which may be drawn over.
func scroll(top, at, lines, height int) int {
	top = min(top, max(at-1, 0))
	top = max(top, at-height+1)
	return max(min(top, lines-height), 0)
}

func (l *List) stretches(width int, t Theme) (out []stretch) {
	first := 0
	for i := range l.sections {
		s := &l.sections[i]
		one := stretch{section: s, first: first}
		if i > 0 {
			one.lines = append(one.lines, "")
		}
		if s.Title != "" {
			one.lines = append(one.lines, t.Title.Render(Cut(output.Escape(s.Title), width)))
		}
		if len(s.shown) == 0 {
			none := s.None
			if l.filter != "" && len(s.Rows) > 0 {
				none = "nothing that the filter leaves"
			}
			for _, text := range Wrap(output.Escape(none), width-len(margin)) {
				one.lines = append(one.lines, margin+t.Faint.Render(text))
			}
		} else {
			one.rows = len(s.shown)
			one.places = layOut(s.Columns, s.natural, width-len(margin))
			one.heading = margin + t.Heading.Render(Cut(headings(s.Columns, one.places), width-len(margin)))
			one.lines = append(one.lines, one.heading)
		}
		first += one.rows
		out = append(out, one)
	}
	return out
}

// What stands to the left of rows, of the one with the cursor and of marked ones too, and between columns.
const (
	margin  = "  "
	pointer = "▸ "
	marked  = " ●"
	both    = "▸●"
	between = "  "
)

func (l *List) draw(r *Row, places []place, width int, selected bool, t Theme) string {
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
	switch {
	case selected && r.Marked:
		return t.Selected.Render(Pad(both+text, width, false))
	case selected:
		return t.Selected.Render(Pad(pointer+text, width, false))
	case r.Marked:
		return Cut(marked, width) + text
	}
	return margin + text
}

func (r *Row) cell(column int) Cell {
	if column < len(r.Cells) {
		return r.Cells[column]
	}
	return Cell{}
}

func headings(columns []Column, places []place) string {
	parts := make([]string, len(places))
	for i, p := range places {
		parts[i] = Pad(output.Escape(columns[p.column].Name), p.width, p.right)
	}
	return strings.TrimRight(strings.Join(parts, between), " ")
}

// place is a column that is shown.
type place struct {
	column, width int
	right         bool
}

// layOut says which columns are shown, and how wide they are; widest are their widest cells.
func layOut(columns []Column, widest []int, width int) []place {
	natural, least := slices.Clone(widest), make([]int, len(columns))
	var shown []int
	for i, c := range columns {
		if natural[i] == 0 && c.Rank > 0 {
			continue
		}
		name := Width(output.Escape(c.Name))
		natural[i] = max(natural[i], name)
		least[i] = natural[i]
		if c.Least > 0 {
			least[i] = min(natural[i], max(c.Least, name))
		}
		shown = append(shown, i)
	}
	needed := slices.Clone(least)
	for i, c := range columns {
		if c.Rank == 0 { // which is cut only when the others are gone
			needed[i] = natural[i]
		}
	}
	for total(shown, needed) > width {
		lowest := slices.MaxFunc(shown, func(a, b int) int { return columns[a].Rank - columns[b].Rank })
		if columns[lowest].Rank == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == lowest })
	}
	for _, least := range [][]int{needed, least} {
		shrink(shown, natural, least, width)
	}
	places := make([]place, len(shown))
	for i, c := range shown {
		places[i] = place{c, natural[c], columns[c].Right}
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
