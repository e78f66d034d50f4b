package analysis

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// even puts in place of some characters what bleve makes of them, where that has fewer bytes: its filter for small letters leaves half
// of the one before in the middle of a word then and takes the last letter from it, and its filter for zero-width non-joiners
// loses where words are.
func (a *Analyzer) even(text string) (string, places) {
	if !strings.ContainsFunc(text, func(r rune) bool { return a.instead(r) != r }) {
		return text, nil
	}
	var out strings.Builder
	var moved places
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		other := a.instead(r)
		if other == r {
			out.WriteString(text[i : i+size]) // which may be no character
			continue
		}
		out.WriteRune(other)
		moved = append(moved, place{out.Len(), i + size})
	}
	return out.String(), moved
}

// instead gives what stands for a character; itself for most.
func (a *Analyzer) instead(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case r == zeroWidthNonJoiner && a.split:
		return ' '
	}
	if small := unicode.ToLower(r); utf8.RuneLen(small) < utf8.RuneLen(r) {
		return small
	}
	return r
}

const zeroWidthNonJoiner = '\u200c'

// places say where in a text the bytes are of the one that was made of it.
type places []place

// place is where in both texts a character ends that was replaced.
type place struct{ new, old int }

func (p places) of(at int) int {
	i, _ := slices.BinarySearchFunc(p, at+1, func(x place, at int) int { return x.new - at }) // the first that is behind
	if i == 0 {
		return at
	}
	return p[i-1].old + at - p[i-1].new
}
