package local

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer makes of text what the words of a BERT vocabulary are made of.
type normalizer struct {
	cleanText    bool // drop control characters
	spaceChinese bool // each ideograph is a word
	stripAccents bool
	lowercase    bool
}

// words gives the words of text in their order, until yield returns false. Text is looked at as far as that takes.
func (n normalizer) words(text string, yield func(word string) bool) {
	for text != "" {
		end := strings.IndexFunc(text, n.separates)
		if end < 0 {
			end = len(text)
		}
		if !splitWords(n.normalize(text[:end]), yield) {
			return
		}
		_, width := utf8.DecodeRuneInString(text[end:])
		text = text[end+width:]
	}
}

// separates says whether a character is white space that is not dropped, as the vertical tab is.
func (n normalizer) separates(r rune) bool {
	return unicode.IsSpace(r) && (!n.cleanText || r == '\t' || r == '\n' || r == '\r' || !dropped(r))
}

// normalize changes a piece of text that has no white space in it; what comes out may have.
func (n normalizer) normalize(text string) string {
	if n.cleanText || n.spaceChinese {
		var b strings.Builder
		for _, r := range text {
			switch {
			case n.cleanText && dropped(r):
			case n.spaceChinese && isChinese(r):
				b.WriteByte(' ')
				b.WriteRune(r)
				b.WriteByte(' ')
			default:
				b.WriteRune(r)
			}
		}
		text = b.String()
	}
	if n.stripAccents {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if n.lowercase {
		text = lower(text)
	}
	return text
}

// lower maps rune by rune: a sigma at the end of a word is as any other, and one letter becomes two.
func lower(text string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, text), "İ", "i\u0307")
}

// splitWords cuts at white space, and around punctuation. It says whether yield wants more.
func splitWords(text string, yield func(word string) bool) bool {
	start := 0
	for i, r := range text {
		space, punctuation := unicode.IsSpace(r), isPunctuation(r)
		if !space && !punctuation {
			continue
		}
		if start < i && !yield(text[start:i]) {
			return false
		}
		start = i + utf8.RuneLen(r)
		if punctuation && !yield(text[i:start]) {
			return false
		}
	}
	return start == len(text) || yield(text[start:])
}

// dropped says whether BERT takes a character out of text. White space is never asked for.
func dropped(r rune) bool {
	return r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// isPunctuation takes the symbols of ASCII for punctuation, too.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.IsPunct(r)
}

// isChinese says whether a character is of the blocks of CJK ideographs, as BERT has them: no kana, no hangul.
func isChinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
