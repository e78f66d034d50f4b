package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/jsonyaml"
)

// Escape makes text from a server safe and unambiguous on a terminal: control characters, invalid UTF-8 and the
// characters that reorder a line, or that nobody sees, come out as \n, \t, \x1b or \u202e (jsonyaml.UnsafeBetween).
func Escape(s string) string {
	if jsonyaml.Clean(s) {
		return s
	}
	var b strings.Builder
	for char, unsafe := range jsonyaml.Runes(s) {
		switch r, n := utf8.DecodeRuneInString(char); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, char[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80 && unsafe:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafe:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(char)
		}
	}
	return b.String()
}

// EscapeLines is Escape that keeps line breaks.
func EscapeLines(s string) string {
	if jsonyaml.Clean(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}

// EscapeJSONWriter passes JSON text through with the unsafe characters in its strings as \u escapes. No write may end inside
// a character; those of a logger don't.
func EscapeJSONWriter(w io.Writer) io.Writer { return escapeJSONWriter{w} }

type escapeJSONWriter struct{ w io.Writer }

func (e escapeJSONWriter) Write(p []byte) (int, error) {
	if _, err := e.w.Write(jsonyaml.Escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeWriter passes text through to a terminal with its control characters, but for line breaks and tabs, escaped.
// It is for streams that must not be buffered whole; a character split between two writes comes out as escaped bytes.
func EscapeWriter(w io.Writer) io.Writer { return escapeWriter{w} }

type escapeWriter struct{ w io.Writer }

func (e escapeWriter) Write(p []byte) (int, error) {
	lines := strings.Split(string(p), "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = Escape(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	if _, err := io.WriteString(e.w, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
