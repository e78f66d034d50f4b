package output

import (
	"strings"
)

// Reflow breaks the lines of each paragraph anew, so that they have at most width characters; 0 leaves the text as it is.
// Paragraphs with indented lines stay.
func Reflow(text string, width int) string {
	if width <= 0 {
		return text
	}
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = fill(strings.Fields(p), width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// fill puts as many words into each line as there is room for.
func fill(words []string, width int) string {
	var b strings.Builder
	length := 0
	for _, word := range words {
		n := Width(word)
		switch {
		case length == 0:
		case length+1+n > width:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += n
	}
	return b.String()
}
