package output

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/svcctl/svc/pkg/jsonyaml"
)

// Width is how many columns of a terminal a line takes: two for a character of Chinese and most emoji, none for an accent that is put on the letter before it. What paints it takes
// none either.
func Width(line string) int {
	if plain(line) {
		return len(line)
	}
	return ansi.StringWidth(line)
}

// plain says that each byte of a line is a column: most are so, and are measured at once.
func plain(line string) bool {
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '~' {
			return false
		}
	}
	return true
}

// Cut gives a line of at most so many columns; what is longer ends with an ellipsis.
func Cut(line string, most int) string {
	if most <= 0 {
		return ""
	}
	if Width(line) <= most {
		return line
	}
	return Unjoined(ansi.Truncate(line, most, "…"))
}

// Head gives as much of a line as fits into so many columns, one character at least, and the rest. A joiner that would join nothing any more is in neither.
func Head(line string, most int) (head, rest string) {
	head = ansi.Truncate(line, most, "")
	if head == "" {
		head, _ = ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
	}
	return Unjoined(head), line[len(head):]
}

// Unjoined gives a line without the joiners that join nothing any more (jsonyaml.UnsafeBetween), as where it was broken or cut within a word. Paint is no neighbor of theirs.
func Unjoined(line string) string {
	if !strings.ContainsAny(line, joiners) {
		return line
	}
	var b strings.Builder
	before := utf8.RuneError
	for line != "" {
		if at := paint.FindStringIndex(line); at != nil {
			b.WriteString(line[:at[1]])
			line = line[at[1]:]
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		if !strings.ContainsRune(joiners, r) || !jsonyaml.UnsafeBetween(before, r, firstRune(line[n:])) {
			b.WriteString(line[:n])
		}
		before, line = r, line[n:]
	}
	return b.String()
}

// firstRune is what a line begins with behind its paint.
func firstRune(line string) rune {
	for at := paint.FindStringIndex(line); at != nil; at = paint.FindStringIndex(line) {
		line = line[at[1]:]
	}
	r, _ := utf8.DecodeRuneInString(line)
	return r
}

const joiners = "\u200c\u200d"

// paint is what gives a line color, where it stands.
//
//nolint:gochecknoglobals // it is compiled once, and never changed
var paint = regexp.MustCompile(`^\x1b\[[0-9;]*m`)
