package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/errs"
)

// Limits of what callers write.
const (
	MaxQuery = 1000 // characters
	MaxWords = 64
)

// A Word is a word that is looked for, or a phrase.
type Word struct {
	Text    string
	Phrase  bool // its words, one behind the other
	Prefix  bool // words that begin so: it was written with a star at its end
	Must    bool // records without it are left out: it was written with a plus in front
	Without bool // records with it are left out: a minus in front
}

// Parse reads what a caller looks for: words, "phrases", word*, +word and -word. A plus or minus stands in front of a word without a
// space, and one within a word is a part of it; a quotation mark that nothing ends holds to the end. What is no word, such as a
// lone star, is left out. It fails (errs.Invalid) with more than MaxQuery characters or MaxWords words, and with nothing to look for.
func Parse(q string) ([]Word, error) {
	if !utf8.ValidString(q) || strings.ContainsRune(q, 0) {
		return nil, errs.New(errs.Invalid, "bad_search", "q is not valid text")
	}
	if utf8.RuneCountInString(q) > MaxQuery {
		return nil, errs.New(errs.Invalid, "bad_search", "q has more than %d characters: look for fewer words", MaxQuery)
	}
	var words []Word
	sought := false
	for rest := strings.TrimLeftFunc(q, unicode.IsSpace); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		var w Word
		switch rest[0] {
		case '+':
			w.Must, rest = true, rest[1:]
		case '-':
			w.Without, rest = true, rest[1:]
		}
		if inner, ok := strings.CutPrefix(rest, `"`); ok {
			w.Phrase = true
			w.Text, rest, _ = strings.Cut(inner, `"`)
		} else {
			end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(rest)
			}
			w.Text, rest = rest[:end], rest[end:]
			if text, ok := strings.CutSuffix(w.Text, "*"); ok {
				w.Text, w.Prefix = text, true
			}
		}
		if !strings.ContainsFunc(w.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			continue
		}
		if words = append(words, w); len(words) > MaxWords {
			return nil, errs.New(errs.Invalid, "bad_search", "q has more than %d words: look for fewer", MaxWords)
		}
		sought = sought || !w.Without
	}
	if !sought {
		return nil, errs.New(errs.Invalid, "bad_search", "q has no word to look for")
	}
	return words, nil
}

// Plain gives what a caller looks for as they would say it: without the marks of Parse, and without the words that are to be missing.
func Plain(q string, words []Word) string {
	var out []string
	marked := false
	for _, w := range words {
		marked = marked || w.Phrase || w.Prefix || w.Must || w.Without
		if !w.Without {
			out = append(out, w.Text)
		}
	}
	if !marked {
		return strings.TrimSpace(q)
	}
	return strings.Join(out, " ")
}
