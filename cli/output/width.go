package output

import "github.com/charmbracelet/x/ansi"

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
	return ansi.Truncate(line, most, "…")
}

// Head gives as much of a line as fits into so many columns, one character at least, and the rest.
func Head(line string, most int) (head, rest string) {
	head = ansi.Truncate(line, most, "")
	if head == "" {
		head, _ = ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
	}
	return head, line[len(head):]
}
