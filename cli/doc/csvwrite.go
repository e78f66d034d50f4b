package doc

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// csvWriter writes records as CSV. Which columns there are is known when all records are, so they wait in a file.
type csvWriter struct {
	w        io.Writer
	declared []string
	types    map[string]string
	always   []string // columns, whether a record has them or not
	selected bool     // always is what the user named
	found    []string
	known    map[string]bool
	spool    *os.File
	lines    *bufio.Writer
}

// newCSVWriter makes a csvWriter. Without a selection by the user, every declared field is a column; with the paths of
// one, these are; with another kind of selection, what records hold.
func newCSVWriter(w io.Writer, fields []api.FieldDescription, selected bool, paths []string) (*csvWriter, error) {
	spool, err := os.CreateTemp("", "svcctl-export-*") // mode 0600
	if err != nil {
		return nil, err
	}
	c := &csvWriter{w: w, selected: selected, known: map[string]bool{}, spool: spool, lines: bufio.NewWriterSize(spool, 64<<10)}
	c.declared, c.types = fieldTypes(fields)
	if !selected {
		paths = c.declared
	}
	for _, path := range paths {
		if !c.apart(path) {
			c.always = append(c.always, path)
			continue
		}
		for _, d := range c.declared {
			if strings.HasPrefix(d, path+".") && !c.apart(d) {
				c.always = append(c.always, d)
			}
		}
	}
	return c, nil
}

// Write adds a record.
func (c *csvWriter) Write(item any) error {
	record, ok := item.(api.Record)
	if !ok {
		return fmt.Errorf("a record is JSON, not %T", item)
	}
	bad := ""
	if err := c.cells(record, func(path string, _ json.RawMessage) {
		if c.known[path] {
			return
		}
		c.known[path] = true
		c.found = append(c.found, path)
		if !columnName(path) {
			bad = path
		}
	}); err != nil {
		return err
	}
	if bad != "" {
		return fmt.Errorf("a record has the field %q, which no column can be named: leave it out with --select, or export as NDJSON", bad)
	}
	return output.JSONLine(c.lines, record)
}

// cells calls fn for each value of a record that has a column. Objects with declared fields are taken apart.
func (c *csvWriter) cells(record api.Record, fn func(path string, value json.RawMessage)) error {
	list, err := members(record)
	if err != nil {
		return fmt.Errorf("a record of the answer: %w", err)
	}
	return c.walk("", list, fn)
}

func (c *csvWriter) walk(prefix string, list []member, fn func(path string, value json.RawMessage)) error {
	for _, m := range list {
		path := prefix + m.name
		if c.apart(path) && len(m.value) > 0 && m.value[0] == '{' {
			inner, err := members(m.value)
			if err != nil {
				return err
			}
			if len(inner) > 0 || c.selected {
				if err := c.walk(path+".", inner, fn); err != nil {
					return err
				}
				continue
			}
		}
		fn(path, m.value)
	}
	return nil
}

// apart says whether a field is an object with declared fields.
func (c *csvWriter) apart(path string) bool {
	return c.types[path] == "object" && slices.ContainsFunc(c.declared, func(d string) bool { return strings.HasPrefix(d, path+".") })
}

// columns puts what the service sets around the fields: the id first, the rest last. Fields that were not asked for by name
// stand where they are declared.
func (c *csvWriter) columns() []string {
	var out []string
	add := func(paths []string, which func(path string) bool) {
		for _, path := range paths {
			if which(path) && !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	known := func(path string) bool { return c.known[path] }
	add([]string{"id"}, known)
	if c.selected {
		add(c.always, func(string) bool { return true })
	}
	add(c.declared, func(path string) bool { return c.known[path] || slices.Contains(c.always, path) })
	add(c.found, func(path string) bool { return !Reserved(path) })
	add(c.found, known)
	return out
}

// Close writes the heading and the rows, and drops the file in which they waited.
func (c *csvWriter) Close() error {
	defer c.Discard()
	if err := c.lines.Flush(); err != nil {
		return err
	}
	if _, err := c.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	columns := c.columns()
	at := make(map[string]int, len(columns))
	heading := make([]string, len(columns))
	for i, path := range columns {
		at[path], heading[i] = i, path
	}
	if len(columns) == 0 {
		return nil
	}
	w := csv.NewWriter(c.w)
	if err := w.Write(heading); err != nil {
		return err
	}
	row := make([]string, len(columns))
	for record, err := range readRecords(c.spool) {
		if err != nil {
			return err
		}
		clear(row)
		if err := c.cells(record, func(path string, value json.RawMessage) {
			row[at[path]] = csvCell(c.types[path], value)
		}); err != nil {
			return err
		}
		if err := writeRow(w, c.w, row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// writeRow writes a row to w, which writes to under. The one empty cell of a row would be an empty line, which is none.
func writeRow(w *csv.Writer, under io.Writer, row []string) error {
	if len(row) > 1 || row[0] != "" {
		return w.Write(row)
	}
	w.Flush()
	_, err := io.WriteString(under, "\"\"\n")
	return errors.Join(w.Error(), err)
}

// Discard drops the file in which records waited.
func (c *csvWriter) Discard() {
	_ = errors.Join(c.spool.Close(), os.Remove(c.spool.Name())) // after Close it is gone already
}

// csvCell is a value as a cell in a column of a type, which cellValue reads again.
func csvCell(typ string, value json.RawMessage) string {
	var b bytes.Buffer
	if err := output.JSONLine(&b, value); err != nil { // it came out of JSON
		return string(value)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	var s string
	if json.Unmarshal([]byte(text), &s) != nil || mustQuote(typ, s) {
		return text
	}
	return s
}

// mustQuote says whether text would be read as something else, or would not come through as it is.
func mustQuote(typ, s string) bool {
	bare := strings.TrimSpace(s)
	switch {
	case bare == "", bare == "null", bare[0] == '"':
		return true
	case output.Escape(strings.Map(plainSpace, s)) != strings.Map(plainSpace, s):
		return true
	}
	switch typ {
	case "string", "date":
		return false
	case "any", "":
		return json.Valid([]byte(bare)) || bare != s
	}
	return true // no text belongs there, but it has come in before the type was declared
}

// plainSpace takes line breaks and tabs, which CSV keeps, for spaces.
func plainSpace(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	return r
}
