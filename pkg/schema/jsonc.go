package schema

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

var hujsonError = regexp.MustCompile(`line (\d+), column (\d+): (.*)$`)

// jsonFile is a JSON file with comments on its way to nodes.
type jsonFile struct {
	*parser

	data  []byte
	lines []int // offsets of the beginnings of lines

	// The last position that was asked for: most are asked for in the order of the file, and a file may be one line.
	last, lastLine, lastColumn int
}

func (p *parser) parseJSON(data []byte) *node {
	if line := deepJSON(data); line > 0 {
		p.tooDeep(line)
		return nil
	}
	f := &jsonFile{parser: p, data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	root, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		pos, message := p.at(1, 1), "the file is not JSON"
		if m := hujsonError.FindStringSubmatch(err.Error()); m != nil {
			line, _ := strconv.Atoi(m[1])
			column, _ := strconv.Atoi(m[2])
			pos, message = p.at(line, column), maskQuoted(m[3])
		}
		if strings.HasPrefix(message, "invalid literal:") { // which goes on with what the file holds
			message = "this is no JSON value: text is in double quotes, with the escapes of JSON; without quotes are true, false, null and numbers"
		}
		p.fail(pos, CodeSyntax, "%s", message)
		return nil
	}
	return f.node(root, 0)
}

// deepJSON gives the first line whose brackets nest too deep, or 0. What is in texts and comments is no bracket: counted, it
// would hide those that are.
func deepJSON(data []byte) int {
	depth, line := 0, 1
	skip := func(i int, end string) int { // to the last byte of end
		n := bytes.Index(data[i:], []byte(end))
		if n < 0 {
			return len(data)
		}
		line += bytes.Count(data[i:i+n], []byte("\n"))
		return i + n + len(end) - 1
	}
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\n':
			line++
		case c == '[' || c == '{':
			if depth++; depth > maxDepth+1 {
				return line
			}
		case c == ']' || c == '}':
			depth--
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(data) && data[i+1] == '/':
			if i = skip(i+2, "\n"); i < len(data) {
				line++
			}
		case c == '/' && i+1 < len(data) && data[i+1] == '*':
			i = skip(i+2, "*/")
		}
	}
	return 0
}

// position turns an offset into a place.
func (f *jsonFile) position(offset int) Position {
	line, found := slices.BinarySearch(f.lines, offset)
	if !found {
		line--
	}
	from, column := f.lines[line], 1
	if line == f.lastLine && f.last <= offset && f.last > from {
		from, column = f.last, f.lastColumn
	}
	column += utf8.RuneCount(f.data[from:offset])
	f.last, f.lastLine, f.lastColumn = offset, line, column
	return f.at(line+1, column)
}

func (f *jsonFile) node(v hujson.Value, depth int) *node {
	pos := f.position(v.StartOffset)
	if depth > maxDepth {
		f.fail(pos, CodeSyntax, "nested deeper than %d levels", maxDepth)
		return &node{pos: pos, failed: true}
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n := &node{pos: pos, kind: kindMap}
		for _, m := range v.Members {
			key, _ := m.Name.Value.(hujson.Literal)
			n.entries = append(n.entries, f.entry(key.String(), f.position(m.Name.StartOffset), f.node(m.Value, depth+1)))
		}
		return f.object(n)
	case *hujson.Array:
		n := &node{pos: pos, kind: kindList}
		for _, e := range v.Elements {
			n.items = append(n.items, f.node(e, depth+1))
		}
		return n
	case hujson.Literal:
		return f.literal(v, pos)
	}
	return &node{pos: pos}
}

func (f *jsonFile) literal(v hujson.Literal, pos Position) *node {
	switch v.Kind() {
	case '"':
		return f.str(v.String(), pos)
	case 't', 'f':
		return &node{pos: pos, kind: kindBool, boolean: v.Bool()}
	case '0':
		return f.number(string(v), pos)
	}
	return &node{pos: pos, kind: kindNull}
}

// number takes whole numbers exactly and others as the nearest float64.
func (p *parser) number(text string, pos Position) *node {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return &node{pos: pos, kind: kindInt, integer: i}
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) {
		p.fail(pos, CodeSyntax, "the number is too large")
		return &node{pos: pos, failed: true}
	}
	return &node{pos: pos, kind: kindFloat, float: n}
}
