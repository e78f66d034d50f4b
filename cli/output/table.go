package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is rows under headings, in kubectl's look: no lines, columns three spaces apart at least.
type Table struct {
	columns []Column
	rows    [][]cell
}

// Column is a heading; a Wide one is only shown with -o wide.
type Column struct {
	Name string
	Wide bool
}

// cell is text, with what paints it.
type cell struct {
	text  string
	paint func(string) string
}

// NewTable makes a table. A heading that begins with "+" is only shown with -o wide.
func NewTable(headings ...string) *Table {
	t := &Table{}
	for _, h := range headings {
		name, wide := strings.CutPrefix(h, "+")
		t.columns = append(t.columns, Column{Name: name, Wide: wide})
	}
	return t
}

// Row adds a row; it has one value for each column, wide ones included. Values are escaped here. A Painted keeps its
// color.
func (t *Table) Row(values ...any) {
	row := make([]cell, len(t.columns))
	for i := range row {
		if i >= len(values) {
			break
		}
		switch v := values[i].(type) {
		case Painted:
			row[i] = cell{text: Escape(v.Text), paint: v.Paint}
		case string:
			row[i] = cell{text: Escape(v)}
		default:
			row[i] = cell{text: Escape(fmt.Sprint(v))}
		}
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// minFit is how many columns of the terminal Fit leaves of a column.
const minFit = 20

// Fit cuts the cells of the last column so that no line takes more than width columns of the terminal, as far as the others allow. It
// says whether it cut any.
func (t *Table) Fit(width int) bool {
	last := len(t.columns) - 1
	room := width
	for i, c := range t.columns[:last] {
		widest := Width(c.Name)
		for _, row := range t.rows {
			widest = max(widest, Width(row[i].text))
		}
		room -= widest + len(gap)
	}
	room = max(room, minFit)
	cut := false
	for _, row := range t.rows {
		if text := Cut(row[last].text, room); text != row[last].text {
			row[last].text, cut = text, true
		}
	}
	return cut
}

// Shrink cuts the cells of the widest columns but the first, which names things, so that no line takes more than width
// columns of the terminal. A column keeps least of them and its heading; those of -o wide are left alone. It says whether that was enough.
func (t *Table) Shrink(width, least int) bool {
	total := -len(gap)
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		if c.Wide {
			continue
		}
		widths[i] = Width(c.Name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i].text))
		}
		total += widths[i] + len(gap)
	}
	for ; total > width; total-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if !t.columns[i].Wide && widths[i] > max(least, Width(t.columns[i].Name)) && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 {
			break
		}
		widths[widest]--
	}
	for _, row := range t.rows {
		for i := 1; i < len(row); i++ {
			if !t.columns[i].Wide {
				row[i].text = Cut(row[i].text, widths[i])
			}
		}
	}
	return total <= width
}

// gap stands between columns.
const gap = "   "

// write renders the table. The renderer pads the last column too, so each line is trimmed.
func (t *Table) write(w io.Writer, wide, noHeaders bool) error {
	if t == nil || len(t.rows) == 0 {
		return nil
	}
	var b bytes.Buffer
	cells := tw.CellConfig{
		Alignment:  tw.CellAlignment{Global: tw.AlignLeft},
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Padding:    tw.CellPadding{Global: tw.Padding{Right: gap, Overwrite: true}},
	}
	table := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithEastAsian(tw.Off), // measured as Width does, whatever the language is
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells, Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off}}),
	)
	var headings []string
	for _, c := range t.columns {
		if wide || !c.Wide {
			headings = append(headings, c.Name)
		}
	}
	if !noHeaders {
		table.Header(headings)
	}
	for _, row := range t.rows {
		line := make([]string, 0, len(headings))
		for i, c := range t.columns {
			if !wide && c.Wide {
				continue
			}
			text := row[i].text
			if row[i].paint != nil {
				text = row[i].paint(text)
			}
			line = append(line, text)
		}
		if err := table.Append(line); err != nil {
			return fmt.Errorf("render the table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("render the table: %w", err)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, trimmed(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// trimmed is a line without what pads its last cell, which stands before the end of a color when that cell is painted: a terminal would break
// the line for nothing.
func trimmed(line string) string {
	const reset = "\x1b[0m"
	text, painted := strings.TrimRight(line, " \n"), false
	for strings.HasSuffix(text, reset) {
		text, painted = strings.TrimRight(strings.TrimSuffix(text, reset), " "), true
	}
	if painted && strings.LastIndex(text, "\x1b[") > strings.LastIndex(text, reset) {
		text += reset
	}
	return text
}

// Fields is a two-column listing of one thing: "Name:  value".
type Fields struct{ t *Table }

// NewFields makes an empty listing.
func NewFields() *Fields { return &Fields{t: &Table{columns: []Column{{}, {}}}} }

// Add adds a line. A value that is "" is left out.
func (f *Fields) Add(name string, value any) {
	if value == "" {
		return
	}
	f.t.Row(name+":", value)
}

// Write renders the listing.
func (f *Fields) Write(w io.Writer) error { return f.t.write(w, false, true) }
