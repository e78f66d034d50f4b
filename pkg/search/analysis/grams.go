package analysis

import (
	"unicode"
	"unicode/utf8"
)

// Grams cuts the words of a text into all parts of minimum to maximum characters, in small letters. A word that is shorter than
// minimum is a part of its own. Position counts words.
func Grams(text string, minimum, maximum int) []Token {
	var out []Token
	var word []rune
	var at []int // where in the text each character begins, and the last one ends
	position := 0
	end := func(here int) {
		if len(word) == 0 {
			return
		}
		at = append(at, here)
		for i := range word {
			for n := minimum; n <= maximum && i+n <= len(word); n++ {
				out = append(out, Token{Term: string(word[i : i+n]), Position: position, Start: at[i], End: at[i+n]})
			}
		}
		if len(word) < minimum {
			out = append(out, Token{Term: string(word), Position: position, Start: at[0], End: here})
		}
		position++
		word, at = word[:0], at[:0]
	}
	for i, r := range text {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			end(i)
			continue
		}
		word, at = append(word, unicode.ToLower(r)), append(at, i)
	}
	end(len(text))
	return out
}
