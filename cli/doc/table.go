package doc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// Bounds of a table, but for -o wide.
const (
	maxCell    = 40 // characters of a value
	maxColumns = 6  // columns that nobody asked for
	minCell    = 16 // characters that a column keeps on a narrow terminal, where others have to go
	minPicked  = 6  // the same of one that was asked for, which stays
)

// look is how a table shows records.
type look struct {
	Select string // the --select; "" for the first plain members
	Whole  bool   // the records come from a pipeline: every member, objects taken apart
	Wide   bool   // every member, with its whole value
	Width  int    // characters of a line; 0 for any
}

// row is one record of a table: its cells by column.
type row map[string]string

// recordTable shows records in columns, and says whether it leaves out any that a narrow terminal has no room for.
func recordTable(records []api.Record, l look) (t *output.Table, left bool, err error) {
	columns, rows, err := l.rows(records)
	if err != nil {
		return nil, false, err
	}
	asked := l.Wide || l.Whole || l.Select != ""
	if !asked && len(columns) > maxColumns {
		columns = columns[:maxColumns]
	}
	least := minPicked
	if !asked {
		least = minCell
	}
	for ; ; columns = columns[:len(columns)-1] {
		t = l.table(columns, rows)
		if l.Wide || l.Width == 0 || t.Shrink(l.Width, least) || asked || len(columns) < 2 {
			return t, left, nil
		}
		left = true
	}
}

// Columns shows records in at most so many columns, the id first: those of selected, as --select names them, or else the first plain members. cells are
// the texts of each record by column, whole.
func Columns(records []api.Record, selected string, most int) (columns []string, cells []map[string]string, err error) {
	columns, rows, err := look{Select: selected}.rows(records)
	if err != nil {
		return nil, nil, err
	}
	cells = make([]map[string]string, len(rows))
	for i, r := range rows {
		cells[i] = r
	}
	return columns[:min(len(columns), most)], cells, nil
}

// RecordID is the id of a record that was read; "" where it has none.
func RecordID(r api.Record) string { return recordID(r) }

func (l look) table(columns []string, rows []row) *output.Table {
	headings := make([]string, len(columns))
	for i, c := range columns {
		headings[i] = output.Escape(strings.ToUpper(c))
	}
	t := output.NewTable(headings...)
	for _, r := range rows {
		values := make([]any, len(columns))
		for i, c := range columns {
			values[i] = r[c]
			if !l.Wide {
				values[i] = output.Cut(r[c], maxCell)
			}
		}
		t.Row(values...)
	}
	return t
}

// rows gives the columns, in the order that was asked for, or else that of the members, and the cells of each record.
func (l look) rows(records []api.Record) (columns []string, rows []row, err error) {
	picked := selectedPaths(l.Select)
	if len(picked) > 0 {
		picked = slices.DeleteFunc(picked, func(path string) bool { return path == "id" })
	}
	for _, r := range records {
		cells := row{}
		list, err := members(r)
		if err != nil {
			return nil, nil, fmt.Errorf("a record of the answer: %w", err)
		}
		if l.Whole {
			list = flat("", list, false)
		}
		for _, path := range picked {
			if text, ok := at(r, path); ok {
				cells[path] = text
			}
		}
		for _, m := range list {
			if _, ok := cells[m.name]; ok {
				continue
			}
			below := func(path string) bool { return strings.HasPrefix(path, m.name+".") }
			if slices.ContainsFunc(picked, below) {
				continue // its paths are columns
			}
			cells[m.name] = l.cell(m.value)
			if m.name == "_score" && !l.Wide {
				cells[m.name] = score(m.value)
			}
			if shown := l.Wide || l.Whole || l.Select != "" || column(m); shown && m.name != "id" && !slices.Contains(picked, m.name) && !slices.Contains(columns, m.name) {
				columns = append(columns, m.name)
			}
		}
		rows = append(rows, cells)
	}
	columns = append(picked, columns...)
	if slices.ContainsFunc(rows, func(r row) bool { return r["id"] != "" }) {
		columns = append([]string{"id"}, columns...)
	}
	return columns, rows, nil
}

// cell is the text of a value; an object, such as a record that was looked up, is without what the service sets, which
// would be all that there is room for.
func (l look) cell(value json.RawMessage) string {
	if kind(value) == '{' && !l.Wide {
		if rest, _, _, err := writable(value); err == nil {
			return string(rest)
		}
	}
	return cellText(value)
}

// score is a score with the four digits that tell it from others.
func score(value json.RawMessage) string {
	f, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil:
		return cellText(value)
	case math.Abs(f) >= 1000:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// column says whether a member makes a column by itself: scalars that a person put there.
func column(m member) bool {
	return !Reserved(m.name) && len(m.value) > 0 && m.value[0] != '{' && m.value[0] != '['
}

// selectedPaths are the paths that a --select names to show.
func selectedPaths(selected string) []string {
	if strings.HasPrefix(strings.TrimSpace(selected), "{") {
		return nil
	}
	var paths []string
	for path := range strings.SplitSeq(selected, ",") {
		if path = strings.TrimSpace(path); path != "" && path[0] != '-' {
			paths = append(paths, path)
		}
	}
	return paths
}

// at gives the cell of what a path leads to: in a list of objects, the values of all of them.
func at(value json.RawMessage, path string) (text string, ok bool) {
	if path == "" {
		return cellText(value), true
	}
	switch kind(value) {
	case '{':
		list, err := members(value)
		if err != nil {
			return "", false
		}
		name, rest, _ := strings.Cut(path, ".")
		if i := slices.IndexFunc(list, func(m member) bool { return m.name == name }); i >= 0 {
			return at(list[i].value, rest)
		}
	case '[':
		var texts []string
		for _, element := range elements(value) {
			if text, ok := at(element, path); ok {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, ", "), len(texts) > 0
	}
	return "", false
}

// flat takes objects apart into members by path; with lists, also lists of objects.
func flat(prefix string, list []member, lists bool) []member {
	var out []member
	for _, m := range list {
		m.name = prefix + m.name
		inner, err := members(m.value)
		switch {
		case kind(m.value) == '{' && err == nil && len(inner) > 0:
			out = append(out, flat(m.name+".", inner, lists)...)
		case lists && kind(m.value) == '[' && !plain(m.value):
			for i, element := range elements(m.value) {
				out = append(out, member{m.name + "." + strconv.Itoa(i), element})
			}
		default:
			out = append(out, m)
		}
	}
	return out
}

// cellText is a value for a table cell: a list of plain values with commas, anything else as bareText.
func cellText(value json.RawMessage) string {
	if kind(value) == '[' && plain(value) {
		if list := elements(value); len(list) > 0 {
			texts := make([]string, len(list))
			for i, element := range list {
				texts[i] = bareText(element)
			}
			return strings.Join(texts, ", ")
		}
	}
	return bareText(value)
}

// bareText is a string bare, null as nothing, and anything else as JSON.
func bareText(value json.RawMessage) string {
	var s string
	switch kind(value) {
	case '"':
		if json.Unmarshal(value, &s) == nil {
			return s
		}
	case 'n':
		return ""
	}
	return string(value)
}

// plain says whether a list has neither objects nor lists.
func plain(list json.RawMessage) bool {
	return !slices.ContainsFunc(elements(list), func(e json.RawMessage) bool { return kind(e) == '{' || kind(e) == '[' })
}

func elements(list json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(list, &out) != nil {
		return nil
	}
	return out
}

// kind is the first byte of a JSON value, which says what it is; 0 for none.
func kind(value json.RawMessage) byte {
	if value = bytes.TrimSpace(value); len(value) == 0 {
		return 0
	}
	return value[0]
}

// wrap breaks a text into lines of at most width characters, at its own line breaks and at spaces; width 0 leaves it whole.
func wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		rest := output.Escape(line)
		for output.Width(rest) > width {
			head, after := output.Head(rest, width)
			if i := strings.LastIndexByte(head, ' '); !strings.HasPrefix(after, " ") && output.Width(head[:max(i, 0)]) > width/2 {
				head, after = head[:i], head[i:]+after
			}
			lines = append(lines, head)
			rest = strings.TrimLeft(after, " ")
		}
		lines = append(lines, rest)
	}
	return lines
}
