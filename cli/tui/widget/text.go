package widget

import (
	"fmt"
	"regexp"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/svcctl/svc/cli/output"
)

// Width is how many columns of a terminal a line takes; what paints it takes none.
func Width(line string) int { return output.Width(line) }

// Cut gives a line of at most so many columns; a longer one ends with an ellipsis.
func Cut(line string, width int) string { return output.Cut(line, width) }

// Pad gives a line of so many columns: a shorter one is filled up with spaces, on the left if its text goes to the right.
func Pad(line string, width int, right bool) string {
	line = Cut(line, width)
	fill := strings.Repeat(" ", max(width-Width(line), 0))
	if right {
		return fill + line
	}
	return line + fill
}

// Wrap breaks a line, which may be painted, between words, or within one that is too long.
func Wrap(line string, width int) []string {
	if width <= 0 {
		return nil
	}
	if !strings.Contains(line, "\n") && Width(line) <= width {
		return []string{line}
	}
	lines := strings.Split(lipgloss.Wrap(line, width, ""), "\n")
	for i := range lines {
		lines[i] = output.Unjoined(lines[i])
	}
	return lines
}

// Fit puts parts one beside the other, as many as fit into a line, the last ones left out first.
func Fit(parts []string, gap string, width int) string {
	line := ""
	for i, part := range parts {
		next := part
		if i > 0 {
			next = line + gap + part
		}
		if Width(next) > width {
			if i == 0 {
				return Cut(part, width)
			}
			return line
		}
		line = next
	}
	return line
}

// Bar shows how much of something is done, in so many cells: ████░░░░. What is above the whole is shown as the whole.
func Bar(cells int, done, total int64) string {
	full := int(fraction(done, total) * float64(cells))
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// Percent says it as a number: 50%.
func Percent(done, total int64) string { return fmt.Sprintf("%d%%", int(fraction(done, total)*100)) }

func fraction(done, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return min(max(float64(done)/float64(total), 0), 1)
}

// member is the name of a member at the beginning of a line of YAML or of JSON that is laid out, with what stands before it.
//
//nolint:gochecknoglobals // it is compiled once, and never changed
var member = regexp.MustCompile(`^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s"'\-:][^:]*):(\s|$)`)

// Member makes a line of YAML or JSON safe, and paints the name of the member that it begins with.
func Member(line string, t Theme) string {
	line = output.Escape(line)
	at := member.FindStringSubmatchIndex(line)
	if at == nil {
		return line
	}
	return line[:at[4]] + t.Key.Render(line[at[4]:at[5]]) + line[at[5]:]
}
