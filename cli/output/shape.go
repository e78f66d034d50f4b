package output

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Shape writes what somebody wants of a JSON value: an expression of theirs, applied to it. The numbers in values are
// json.Number.
type Shape interface {
	Write(ctx context.Context, w io.Writer, value any) error
}

// Formats of -o that take an expression behind a "=".
const (
	FormatJSONPath   = "jsonpath"
	FormatColumns    = "custom-columns"
	FormatGoTemplate = "go-template"
)

// ShapeFormats gives those that every command has.
func ShapeFormats() []string { return []string{FormatJSONPath, FormatColumns, FormatGoTemplate} }

// ParseShape makes the shape of -o NAME=EXPRESSION; it is nil for a format that takes no expression.
func ParseShape(format string, noHeaders bool) (Shape, error) {
	name, expr, given := strings.Cut(format, "=")
	switch name {
	case FormatJSONPath, FormatColumns, FormatGoTemplate:
	default:
		return nil, nil //nolint:nilnil // most formats have none, which is no error
	}
	if !given || strings.TrimSpace(expr) == "" {
		return nil, fmt.Errorf("it takes an expression: %s", shapeExamples[name])
	}
	switch name {
	case FormatJSONPath:
		p, err := newJSONPath(expr)
		if err != nil {
			return nil, err
		}
		return p, nil
	case FormatColumns:
		return newColumns(expr, noHeaders)
	}
	return NewTemplate(expr)
}

var shapeExamples = map[string]string{
	FormatJSONPath:   `-o jsonpath='{.items[*].namespace}'`,
	FormatColumns:    `-o custom-columns=NAME:.name,WHERE:.configFile`,
	FormatGoTemplate: `-o go-template='{{range .items}}{{.namespace}} {{end}}'`,
}

// ShapeWriter stands where JSON goes out, and writes each value as a shape has it as soon as the value is whole. What comes
// is kept until then. It is not safe for concurrent use.
type ShapeWriter struct {
	w     io.Writer
	shape Shape
	ctx   func() context.Context // bounds what an expression may take

	buf     bytes.Buffer
	depth   int
	inText  bool // inside "…"
	escaped bool // behind a backslash
	bare    bool // inside a number, true, false or null at the top
}

// NewShapeWriter makes one. ctx gives the context of the command that writes.
func NewShapeWriter(w io.Writer, shape Shape, ctx func() context.Context) *ShapeWriter {
	return &ShapeWriter{w: w, shape: shape, ctx: ctx}
}

// Write takes some of the JSON.
func (s *ShapeWriter) Write(p []byte) (int, error) {
	for i, c := range p {
		if ended, again := s.step(c); ended {
			if !again {
				s.buf.WriteByte(c)
			}
			if err := s.flush(); err != nil {
				return i, err
			}
			if !again {
				continue
			}
			s.step(c) // which ended a number, and is the first of what follows
		}
		if s.buf.Len() > 0 || !space(c) {
			s.buf.WriteByte(c)
		}
	}
	return len(p), nil
}

// step follows one more byte: whether a value at the top ends with it, or before it (again).
func (s *ShapeWriter) step(c byte) (ended, again bool) {
	switch {
	case s.inText:
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inText = false
			return s.depth == 0, false
		}
		return false, false
	case s.bare:
		if !space(c) && !strings.ContainsRune(`{["`, rune(c)) {
			return false, false
		}
		s.bare = false
		return true, true
	}
	switch c {
	case '"':
		s.inText = true
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
		return s.depth <= 0, false
	default:
		s.bare = s.depth == 0 && !space(c)
	}
	return false, false
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// Close writes what stands at the end without a line break, such as a number.
func (s *ShapeWriter) Close() error {
	if s.buf.Len() == 0 {
		return nil
	}
	return s.flush()
}

func (s *ShapeWriter) flush() error {
	dec := json.NewDecoder(&s.buf)
	dec.UseNumber()
	var value any
	err := dec.Decode(&value)
	s.buf.Reset()
	s.depth, s.inText, s.escaped, s.bare = 0, false, false, false
	if err != nil {
		return &NotJSONError{}
	}
	return s.shape.Write(s.ctx(), s.w, value)
}

// NotJSONError says that what was to be shaped is no JSON.
type NotJSONError struct{}

// Error says so.
func (*NotJSONError) Error() string {
	return "this command prints something other than JSON, to which --jq, --template, jsonpath and custom-columns can't be applied"
}

// ShapeError is a shape that failed on a value, or was refused.
type ShapeError struct {
	What string // such as "--jq"
	Err  error
}

// Error says what failed.
func (e *ShapeError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *ShapeError) Unwrap() error { return e.Err }
