package jsonyaml

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape writes the unsafe characters that JSON allows inside strings (DEL, C1, reordering) as \u escapes. In JSON
// text they can stand nowhere else, so the value stays the same.
func Escape(data []byte) []byte {
	text := string(data)
	if Clean(text) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for char, unsafe := range Runes(text) {
		if r, _ := utf8.DecodeRuneInString(char); unsafe && r >= 0x7f {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, char...)
		}
	}
	return out
}

// Clean says that nothing in a text is unsafe where it stands.
func Clean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	if strings.IndexFunc(s, Unsafe) < 0 {
		return true
	}
	for _, unsafe := range Runes(s) {
		if unsafe {
			return false
		}
	}
	return true
}

// Runes gives the runes of a text as they are written in it, each byte that is none by itself, and whether one is unsafe where it stands (UnsafeBetween).
func Runes(s string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		before := utf8.RuneError
		for s != "" {
			r, n := utf8.DecodeRuneInString(s)
			after, _ := utf8.DecodeRuneInString(s[n:])
			if !yield(s[:n], UnsafeBetween(before, r, after)) {
				return
			}
			before, s = r, s[n:]
		}
	}
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

// UnsafeBetween is Unsafe for r where it stands: a joiner (U+200C, U+200D) is safe between two letters that are written with joiners, as those of Persian and
// Hindi, since it is seen there by how they look. Before and after are what stands beside it, utf8.RuneError at an end. Since nothing but
// these matters, texts that are safe are so one behind the other, too. Emoji that joiners make one of stay in parts: how wide the one is differs from terminal to terminal.
func UnsafeBetween(before, r, after rune) bool {
	if r == '\u200c' || r == '\u200d' {
		return !joined(before) || !joined(after)
	}
	return Unsafe(r)
}

// joined says that a rune is a letter, or a sign at one, of a script whose letters are joined, or parted, by joiners.
func joined(r rune) bool {
	if r < '\u0600' || !unicode.In(r, unicode.L, unicode.M) {
		return false
	}
	return r == '\u0640' || r >= '\u064b' && r <= '\u0655' || r == '\u0670' || // which Arabic shares with others
		unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Adlam, unicode.Hanifi_Rohingya,
			unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
			unicode.Sinhala, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Balinese, unicode.Javanese, unicode.Meetei_Mayek)
}
