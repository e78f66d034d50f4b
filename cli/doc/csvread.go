package doc

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// In CSV a column is a field path, and a cell is a value by the type of its field: text as it is, a number, true or
// false, anything else as JSON. An empty cell is no value. Text that would be taken for something else (empty, null, or
// with quotes around it) stands as a JSON string, in any column.

// csvColumn is one column of a CSV file.
type csvColumn struct {
	path string
	typ  string // of the declared field; "" when there is none
}

// fieldTypes gives the paths of the declared fields, and the type of each field that is known, by its path.
func fieldTypes(fields []api.FieldDescription) (paths []string, types map[string]string) {
	types = map[string]string{}
	var walk func(prefix string, fields []api.FieldDescription)
	walk = func(prefix string, fields []api.FieldDescription) {
		for _, f := range fields {
			path := prefix + f.Name
			paths = append(paths, path)
			types[path] = f.Type
			if f.Type == "object" {
				walk(path+".", f.SubFields)
			}
		}
	}
	walk("", fields)
	for _, text := range []string{"id", "createdAt", "updatedAt", "createdBy", "updatedBy"} {
		types[text] = "string"
	}
	return paths, types
}

// readCSV yields the rows of a CSV file as records. The first row names the columns.
func readCSV(r io.Reader, fields []api.FieldDescription) iter.Seq2[api.Record, error] {
	return func(yield func(api.Record, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		if _, err := firstByte(br); err != nil {
			if !errors.Is(err, io.EOF) {
				yield(nil, err)
			}
			return
		}
		cr := csv.NewReader(br)
		cr.ReuseRecord = true
		cr.Comma = separator(br)
		head, err := cr.Read()
		if err != nil {
			yield(nil, fmt.Errorf("the heading: %w", err))
			return
		}
		columns, err := heading(head, fields)
		if err != nil {
			yield(nil, err)
			return
		}
		tree := columnTree(columns)
		for n := 1; ; n++ {
			row, err := cr.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil { // it names the line
				yield(nil, fmt.Errorf("record %d: %w", n, err))
				return
			}
			record, err := rowRecord(tree, columns, row)
			if err != nil {
				line, _ := cr.FieldPos(0)
				yield(nil, fmt.Errorf("record %d (line %d): %w", n, line, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// separator looks which of comma, semicolon and tab the heading has most of.
func separator(br *bufio.Reader) rune {
	start, _ := br.Peek(br.Size()) // less is there of a short file
	line, _, _ := bytes.Cut(start, []byte("\n"))
	best, most := ',', 0
	for _, sep := range []rune{',', ';', '\t'} {
		if n := strings.Count(string(line), string(sep)); n > most {
			best, most = sep, n
		}
	}
	return best
}

// heading checks the names of columns.
func heading(names []string, fields []api.FieldDescription) ([]csvColumn, error) {
	_, types := fieldTypes(fields)
	columns := make([]csvColumn, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case !columnName(name):
			return nil, fmt.Errorf("the heading: column %d is named %q: want a field, such as title or seo.title", i+1, name)
		case slices.ContainsFunc(columns[:i], func(c csvColumn) bool { return c.path == name }):
			return nil, fmt.Errorf("the heading: two columns are named %q", name)
		}
		columns[i] = csvColumn{path: name, typ: types[name]}
	}
	return columns, nil
}

// columnName says whether a path can be the name of a column.
func columnName(path string) bool {
	return !slices.Contains(strings.Split(path, "."), "") && path == strings.TrimSpace(path) && path == output.Escape(path)
}

// columnNode is a member of a record that a row makes: its column, or those of its members, or both.
type columnNode struct {
	name    string
	column  int // -1: none
	members []*columnNode
}

// columnTree puts columns of one object together.
func columnTree(columns []csvColumn) *columnNode {
	root := &columnNode{column: -1}
	for i, c := range columns {
		n := root
		for name := range strings.SplitSeq(c.path, ".") {
			at := slices.IndexFunc(n.members, func(m *columnNode) bool { return m.name == name })
			if at < 0 {
				at = len(n.members)
				n.members = append(n.members, &columnNode{name: name, column: -1})
			}
			n = n.members[at]
		}
		n.column = i
	}
	return root
}

// rowRecord makes a record of a row.
func rowRecord(tree *columnNode, columns []csvColumn, row []string) (api.Record, error) {
	value, err := tree.value(columns, row)
	if value == nil {
		value = []byte("{}")
	}
	return value, err
}

// value is the JSON of a node, or nil when none of its cells has a value.
func (n *columnNode) value(columns []csvColumn, row []string) ([]byte, error) {
	var own []byte
	if n.column >= 0 {
		var err error
		if own, err = cellValue(columns[n.column].typ, row[n.column]); err != nil {
			return nil, fmt.Errorf("%s: %w", columns[n.column].path, err)
		}
	}
	var b []byte
	for _, m := range n.members {
		value, err := m.value(columns, row)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if own != nil {
			return nil, fmt.Errorf("%s has a value, and so has its member %s", columns[n.column].path, m.name)
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	if b != nil {
		return append(b, '}'), nil
	}
	return own, nil
}

// cellValue is the JSON of a cell in a column of a type; nil when it is empty.
func cellValue(typ, cell string) ([]byte, error) {
	bare := strings.TrimSpace(cell)
	quoted := len(bare) > 1 && bare[0] == '"' && json.Valid([]byte(bare))
	switch {
	case bare == "" && (typ != "string" || cell == ""):
		return nil, nil
	case bare == "null" || quoted:
		return []byte(bare), nil
	}
	first := bare[:min(1, len(bare))]
	switch typ {
	case "string", "date":
		return json.Marshal(cell)
	case "number":
		if strings.Trim(first, "-0123456789") != "" || !json.Valid([]byte(bare)) {
			return nil, fmt.Errorf("%q is not a number", cell)
		}
		return []byte(bare), nil
	case "boolean":
		switch strings.ToLower(bare) {
		case "true", "1", "yes":
			return []byte("true"), nil
		case "false", "0", "no":
			return []byte("false"), nil
		}
		return nil, fmt.Errorf("%q is not true or false", cell)
	case "any", "": // JSON where it is some
		if json.Valid([]byte(bare)) {
			return []byte(bare), nil
		}
		return json.Marshal(cell)
	case "object", "file":
		if first != "{" || !json.Valid([]byte(bare)) {
			return nil, fmt.Errorf("%q is not a JSON object", cell)
		}
		return []byte(bare), nil
	}
	if first != "[" || !json.Valid([]byte(bare)) {
		return nil, fmt.Errorf(`%q is not a JSON list, such as ["a", "b"]`, cell)
	}
	return []byte(bare), nil
}
