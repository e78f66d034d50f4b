package widget

import (
	"html"
	"regexp"
	"strings"

	"github.com/svcctl/svc/cli/output"
)

// The tags around what a search has found, as the service writes them. All else in its texts is escaped.
const (
	markBegin = "<mark>"
	markEnd   = "</mark>"
)

// Marked makes a line of a text in HTML in which what was found is marked. The two tags of marks are all that is taken for
// HTML; what is escaped is text. Where that text is HTML itself, as that of rich text is, its tags are left out. Whatever a text
// holds, it paints nothing.
func Marked(text string, t Theme) string {
	pieces := withoutTags(piecesOf(text))
	if n := len(pieces); n > 0 {
		pieces[n-1].text = strings.TrimRight(pieces[n-1].text, " ")
	}
	var b strings.Builder
	for _, p := range pieces {
		shown := output.Escape(p.text)
		if p.marked {
			shown = t.Mark(shown)
		}
		b.WriteString(shown)
	}
	return b.String()
}

// piece is a part of a text.
type piece struct {
	text   string
	marked bool
}

func piecesOf(text string) (pieces []piece) {
	for text != "" {
		before, rest, found := strings.Cut(text, markBegin)
		pieces = append(pieces, piece{html.UnescapeString(strings.ReplaceAll(before, markEnd, "")), false})
		if !found {
			break
		}
		inside, after, _ := strings.Cut(rest, markEnd)
		pieces = append(pieces, piece{html.UnescapeString(strings.ReplaceAll(inside, markBegin, "")), true})
		text = after
	}
	return pieces
}

// tag is one of the elements that texts are written with. Others are not taken for tags, since texts tell of Map<String> and
// 1 < 2, too.
//
//nolint:gochecknoglobals // it is compiled once, and never changed
var tag = regexp.MustCompile(`(?i)</?(a|abbr|b|blockquote|br|caption|cite|code|del|div|em|figcaption|figure|font|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|small|span|strike|strong|sub|sup|table|tbody|td|tfoot|th|thead|tr|u|ul|video)(\s[^<>]*)?/?>`)

// inline are the elements that stand within words.
//
//nolint:gochecknoglobals // as tag
var inline = regexp.MustCompile(`(?i)^</?(a|abbr|b|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike|strong|sub|sup|u)\b`)

// withoutTags leaves tags out, also where a piece ends within one, and makes one space of each blank.
func withoutTags(pieces []piece) []piece {
	var all strings.Builder
	for _, p := range pieces {
		all.WriteString(p.text)
	}
	text := all.String()
	tags := tag.FindAllStringIndex(text, -1)
	var out []piece
	at, blank := 0, true // place in text; whether a blank is not to be written, since one was, or nothing yet
	for _, p := range pieces {
		end := at + len(p.text)
		var b strings.Builder
		write := func(s string) {
			if len(tags) > 0 {
				s = html.UnescapeString(s)
			}
			for _, r := range s {
				space := r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\u00a0'
				switch {
				case !space:
					b.WriteRune(r)
				case !blank:
					b.WriteByte(' ')
				}
				blank = space
			}
		}
		for _, cut := range tags {
			if cut[1] <= at || cut[0] >= end {
				continue
			}
			write(text[at:max(cut[0], at)])
			if !inline.MatchString(text[cut[0]:cut[1]]) {
				write(" ")
			}
			at = min(cut[1], end)
		}
		write(text[at:end])
		at = end
		out = append(out, piece{b.String(), p.marked})
	}
	return out
}
