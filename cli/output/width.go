package output

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
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
	const end = "…"
	line = ansi.Truncate(line, most, end)
	return strings.ReplaceAll(strings.ReplaceAll(line, "\u200c"+end, end), "\u200d"+end, end) // a joiner that joins nothing any more
}

// Head gives as much of a line as fits into so many columns, one character at least, and the rest. A joiner that would join nothing any more is in neither.
func Head(line string, most int) (head, rest string) {
	head = ansi.Truncate(line, most, "")
	if head == "" {
		head, _ = ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
	}
	return Unjoined(head), line[len(head):]
}

// Unjoined gives a line that was broken within a word without the joiner that it ends with: where nothing follows, it would be unsafe.
func Unjoined(line string) string { return atEnd.ReplaceAllString(line, "$1") }

// atEnd is a joiner that only paint follows.
//
//nolint:gochecknoglobals // it is compiled once, and never changed
var atEnd = regexp.MustCompile(`[\x{200c}\x{200d}]((?:\x1b\[[0-9;]*m)*)$`)
