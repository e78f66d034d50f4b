package jsonyaml

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape writes the unsafe characters that JSON allows inside strings (DEL, C1, reordering) as \u escapes. In JSON
// text they can stand nowhere else, so the value stays the same.
func Escape(data []byte) []byte {
	if Clean(string(data)) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r >= 0x7f && Unsafe(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

// Clean says that nothing in a text is Unsafe.
func Clean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, Unsafe) < 0
}

// Unsafe is true for what a terminal obeys in place of showing it, and for what nobody sees there: what reorders a line, and what joins or parts
// letters without a width of its own, so that two texts that look the same would not be.
func Unsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', r == '\u061c':
		return true
	case r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2060' && r <= '\u2069':
		return true
	}
	return false
}
