package output

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// jsonPath is the shape of -o jsonpath=: kubectl's.
type jsonPath struct{ expr string }

// newJSONPath makes the shape of an expression as kubectl takes it: '{.items[*].name}', also without the braces. What is not there
// is nothing. A line break ends it, unless the expression writes one itself.
func newJSONPath(expr string) (p jsonPath, err error) {
	p = jsonPath{relaxed(expr)}
	_, err = p.find(nil)
	return p, err
}

// relaxed puts braces around a path that has none, and a dot before its first name: name, .name and {.name} are one.
func relaxed(expr string) string {
	if strings.ContainsAny(expr, "{}") {
		return expr
	}
	if !strings.HasPrefix(expr, ".") && !strings.HasPrefix(expr, "[") {
		expr = "." + expr
	}
	return "{" + expr + "}"
}

// find gives the results on a value. It parses anew, since a run changes what was parsed.
func (p jsonPath) find(value any) ([][]reflect.Value, error) {
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse(p.expr); err != nil {
		return nil, err
	}
	if value == nil {
		return nil, nil
	}
	return path.FindResults(value)
}

func (p jsonPath) Write(_ context.Context, w io.Writer, value any) error {
	results, err := p.find(numbers(value))
	if err != nil {
		return &ShapeError{"-o jsonpath", err}
	}
	var b bytes.Buffer
	for _, list := range results {
		for i, v := range list {
			if i > 0 {
				b.WriteByte(' ')
			}
			text, err := plainText(v)
			if err != nil {
				return &ShapeError{"-o jsonpath", err}
			}
			b.WriteString(text)
		}
	}
	if b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	_, err = w.Write(b.Bytes())
	return err
}

// plainText is a result as text: a text as it is, objects and lists as JSON.
func plainText(v reflect.Value) (string, error) {
	if !v.IsValid() {
		return "", nil
	}
	switch x := v.Interface().(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	default:
		raw, err := encode(x)
		return string(raw), err
	}
}

// numbers puts numbers that can be compared and counted with in the place of json.Number, as far as nothing is lost.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			return f
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = numbers(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = numbers(e)
		}
		return out
	}
	return value
}

// columns is the shape of -o custom-columns=: kubectl's.
type columns struct {
	names     []string
	paths     []jsonPath
	noHeaders *bool // of the first table only: what follows goes on below it
}

// newColumns makes the shape of NAME:PATH,…: a table with a row for each item of a list, or one for anything else.
func newColumns(spec string, noHeaders bool) (Shape, error) {
	c := columns{noHeaders: &noHeaders}
	for _, column := range splitColumns(spec) {
		name, path, ok := strings.Cut(column, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.TrimSpace(path) == "" {
			return nil, fmt.Errorf("%q is no column: %s", column, shapeExamples[FormatColumns])
		}
		p, err := newJSONPath(strings.TrimSpace(path))
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		c.names, c.paths = append(c.names, name), append(c.paths, p)
	}
	return c, nil
}

// splitColumns splits at commas that are not in brackets, as in A:.list[0,1],B:.name.
func splitColumns(spec string) (out []string) {
	depth, from := 0, 0
	for i, c := range spec {
		switch c {
		case '[', '(', '{':
			depth++
		case ']', ')', '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, spec[from:i]), i+1
			}
		}
	}
	return append(out, spec[from:])
}

// none stands in a cell for what is not there.
const none = "<none>"

func (c columns) Write(_ context.Context, w io.Writer, value any) error {
	table := NewTable()
	for _, name := range c.names {
		table.columns = append(table.columns, Column{Name: name})
	}
	for _, item := range itemsOf(value) {
		row := make([]any, len(c.paths))
		for i, path := range c.paths {
			results, err := path.find(numbers(item))
			if err != nil {
				return &ShapeError{"-o custom-columns, " + c.names[i], err}
			}
			var texts []string
			for _, v := range flat(results) {
				text, err := plainText(v)
				if err != nil {
					return &ShapeError{"-o custom-columns, " + c.names[i], err}
				}
				if text != "" {
					texts = append(texts, text)
				}
			}
			if row[i] = strings.Join(texts, ","); len(texts) == 0 {
				row[i] = none
			}
		}
		table.Row(row...)
	}
	if table.Len() == 0 {
		return nil
	}
	noHeaders := *c.noHeaders
	*c.noHeaders = true
	return table.write(w, false, noHeaders)
}

func flat(results [][]reflect.Value) (out []reflect.Value) {
	for _, list := range results {
		out = append(out, list...)
	}
	return out
}

// itemsOf are the items of a list as the service gives them ({"items": […]}) or of a plain one; anything else is one item.
func itemsOf(value any) []any {
	if object, ok := value.(map[string]any); ok {
		if items, ok := object["items"].([]any); ok {
			return items
		}
	}
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}
