package local

import (
	"strings"
	"unicode/utf8"
)

// tokenizer cuts text into the pieces of a WordPiece vocabulary, as BERT does.
type tokenizer struct {
	normalizer

	vocab          map[string]int32
	special        []string // taken out of text before it is normalized, as the ids that they have
	firstOfSpecial string   // the characters that those begin with
	lowerFirst     bool     // before special pieces are looked for
	maxChars       int      // characters of a word; a longer one is unknown
	longest        int      // piece of the vocabulary, in bytes
	prefix         string   // of a piece that goes on with a word
	unknown        int32
	first, final   int32 // [CLS] and [SEP]
	limit          int   // tokens, with first and final
}

// tokens gives the ids of a text, with those that stand before and behind it: limit of them at most.
func (t *tokenizer) tokens(text string) []int32 {
	if t.lowerFirst {
		text = lower(text)
	}
	ids := []int32{t.first}
	room := t.limit - 1
	for text != "" && len(ids) < room {
		at, special := t.nextSpecial(text)
		t.words(text[:at], func(word string) bool {
			ids = t.pieces(ids, word)
			return len(ids) < room
		})
		if special != "" {
			ids = append(ids, t.vocab[special])
		}
		text = text[at+len(special):]
	}
	return append(ids[:min(len(ids), room)], t.final)
}

// nextSpecial gives the first special piece of a text, the longest where several begin, and where it is. What is behind it is
// not looked at, so that a text of many special pieces does not take the square of its length.
func (t *tokenizer) nextSpecial(text string) (at int, special string) {
	for at < len(text) {
		next := strings.IndexAny(text[at:], t.firstOfSpecial)
		if next < 0 {
			break
		}
		at += next
		for _, s := range t.special {
			if len(s) > len(special) && strings.HasPrefix(text[at:], s) {
				special = s
			}
		}
		if special != "" {
			return at, special
		}
		_, width := utf8.DecodeRuneInString(text[at:])
		at += width
	}
	return len(text), ""
}

// pieces appends the ids of one word: the longest piece that it begins with, the longest that goes on, to its end.
func (t *tokenizer) pieces(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > t.maxChars {
		return append(ids, t.unknown)
	}
	before := len(ids)
	key := make([]byte, 0, 64)
	for start := 0; start < len(word); {
		key = key[:0]
		if start > 0 {
			key = append(key, t.prefix...)
		}
		head := len(key)
		key = append(key, word[start:min(len(word), start+t.longest)]...)
		for {
			if len(key) == head {
				return append(ids[:before], t.unknown)
			}
			if id, ok := t.vocab[string(key)]; ok {
				ids = append(ids, id)
				start += len(key) - head
				break
			}
			_, width := utf8.DecodeLastRune(key[head:])
			key = key[:len(key)-width]
		}
	}
	return ids
}
