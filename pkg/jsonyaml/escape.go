package jsonyaml

import (
	"fmt"
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
	for before := rune(0); len(data) > 0; {
		r, n := utf8.DecodeRune(data)
		if r >= 0x7f && Unsafe(before, r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, data[:n]...)
		}
		before, data = r, data[n:]
	}
	return out
}

// Clean says that nothing in a text is Unsafe.
func Clean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	before := rune(0)
	for _, r := range s {
		if Unsafe(before, r) {
			return false
		}
		before = r
	}
	return true
}

// Unsafe is true for what a terminal obeys in place of showing it, and for what nobody sees there: what reorders a line, and what joins or parts
// letters without a width of its own, so that two texts that look the same would not be. before is what stands before r, 0 at the beginning.
func Unsafe(before, r rune) bool {
	switch {
	case r == zeroWidthNonJoiner, r == zeroWidthJoiner:
		return !joins(before)
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', r == '\u061c':
		return true
	case r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2060' && r <= '\u2069':
		return true
	}
	return false
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// joins says that a joiner behind r is seen, since it changes how the letters around it look: in the scripts of Persian or Hindi, and in emoji that are
// made of several. It is the rule of domain names (RFC 5892, appendix A), without its look at what follows.
func joins(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
		unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.So) ||
		r == '\ufe0f' || r >= '\U0001f3fb' && r <= '\U0001f3ff' // as an emoji, and of a color of skin
}
