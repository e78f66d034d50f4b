package output

import (
	"fmt"
	"io"
	"strings"
)

// Block is some lines at the bottom of a terminal that are drawn anew in their place, such as a bar for each phase of a run. It is not safe for
// concurrent use.
type Block struct {
	w     io.Writer
	lines int // that stand above the cursor
}

// NewBlock makes one on a terminal.
func NewBlock(w io.Writer) *Block { return &Block{w: w} }

// Draw puts lines in the place of those that stand. Each has to fit into the terminal: one that the terminal breaks would be drawn over in part.
func (b *Block) Draw(lines []string) {
	var out strings.Builder
	b.up(&out)
	for _, line := range lines {
		out.WriteString("\x1b[K" + line + "\n")
	}
	out.WriteString("\x1b[J")
	b.lines = len(lines)
	_, _ = io.WriteString(b.w, out.String()) // when it fails, so will the result
}

// Clear takes the lines away, so that other text can be written.
func (b *Block) Clear() {
	if b.lines > 0 {
		b.Draw(nil)
	}
}

func (b *Block) up(out *strings.Builder) {
	if b.lines > 0 {
		fmt.Fprintf(out, "\x1b[%dA\r", b.lines)
	}
}

// Bar shows a part of a whole in so many characters, its frame included: [####....].
func Bar(width int, part float64) string {
	cells := max(width-2, 1)
	full := int(min(max(part, 0), 1) * float64(cells))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]"
}
