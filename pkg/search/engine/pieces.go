package engine

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/search/analysis"
)

// What is taken in of records is bounded, so that neither a text as long as a record can be nor many long ones at once take more memory
// than there is: terms take many times what their text does.
const (
	maxTerms      = 1 << 20  // of a record
	maxFieldTerms = 1 << 18  // of one of its fields
	chunkBytes    = 1 << 20  // of records that are read and taken in at once, unless one of them is larger
	pieceBytes    = 16 << 10 // of a text that are cut at once
	maxMarked     = 1 << 20  // bytes of a text in which what was found is looked for, to mark it
)

// all cuts a text into its terms, one piece after the other.
func (c cutter) all(text string) iter.Seq[analysis.Token] {
	return func(yield func(analysis.Token) bool) {
		position, at := 0, 0
		for at < len(text) {
			n := pieceOf(text[at:])
			next := position
			for _, t := range c(text[at : at+n]) {
				t.Position, t.Start, t.End = t.Position+position, t.Start+at, t.End+at
				next = max(next, t.Position+1)
				if !yield(t) {
					return
				}
			}
			position, at = next, at+n
		}
	}
}

// pieceOf is how many bytes of a text are cut at once: whole words, unless one is longer.
func pieceOf(text string) int {
	if len(text) <= pieceBytes {
		return len(text)
	}
	if i := strings.LastIndexFunc(text[:pieceBytes], unicode.IsSpace); i > 0 {
		return i
	}
	for n := pieceBytes; n > pieceBytes-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return pieceBytes
}
