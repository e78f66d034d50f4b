package output

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text from a server safe and unambiguous on a terminal: control characters, invalid UTF-8 and the
// characters that reorder a line come out as \n, \t, \x1b or \u202e.
func Escape(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80 && unsafeRune(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// EscapeLines is Escape that keeps line breaks.
func EscapeLines(s string) string {
	if clean(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}

// escapeJSON writes the unsafe characters that JSON allows inside strings (DEL, C1, reordering) as \u escapes. In JSON
// text they can stand nowhere else, so the value stays the same.
func escapeJSON(data []byte) []byte {
	if clean(string(data)) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r >= 0x7f && unsafeRune(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

func clean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, unsafeRune) < 0
}

// unsafeRune is true for what a terminal obeys in place of showing it.
func unsafeRune(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', r == '\u061c':
		return true
	case r >= '\u200e' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// EscapeJSONWriter passes JSON text through with the unsafe characters in its strings as \u escapes. No write may end inside
// a character; those of a logger don't.
func EscapeJSONWriter(w io.Writer) io.Writer { return escapeJSONWriter{w} }

type escapeJSONWriter struct{ w io.Writer }

func (e escapeJSONWriter) Write(p []byte) (int, error) {
	if _, err := e.w.Write(escapeJSON(p)); err != nil {
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
