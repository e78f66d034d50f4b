package widget

import "strings"

// Block is an item of several lines, which are safe and painted. A line of it that is too long is cut.
type Block struct{ Lines []string }

// Blocks shows items of several lines, and has a cursor on one of them.
type Blocks struct {
	blocks        []Block
	at, top, page int
}

// Set replaces the items, and puts the cursor on the first.
func (b *Blocks) Set(blocks []Block) { b.blocks, b.at, b.top = blocks, 0, 0 }

// Selected is the place of the item with the cursor, -1 where there is none.
func (b *Blocks) Selected() int {
	if len(b.blocks) == 0 {
		return -1
	}
	return b.at
}

// Key moves the cursor. It says whether the key is one that does.
func (b *Blocks) Key(key string) bool {
	to, ok := moveBy(key, b.at, b.page)
	if ok {
		b.at = max(min(to, len(b.blocks)-1), 0)
	}
	return ok
}

// View draws the items in so many columns and lines at most.
func (b *Blocks) View(width, height int, t Theme) string {
	var lines []string
	first, last := 0, 0 // lines of the item with the cursor
	for i, block := range b.blocks {
		if i == b.at {
			first = len(lines)
		}
		for j, text := range block.Lines {
			switch {
			case i == b.at && j == 0:
				text = t.Selected.Render(Pad(pointer+text, width, false))
			default:
				text = Cut(margin+text, width)
			}
			lines = append(lines, text)
		}
		if i == b.at {
			last = len(lines) - 1
		}
	}
	b.page = 1
	if len(b.blocks) > 0 {
		b.page = max(height*len(b.blocks)/max(len(lines), 1), 1)
	}
	b.top = max(b.top, last-height+1)
	b.top = max(min(b.top, first, len(lines)-height), 0)
	return strings.Join(lines[b.top:min(b.top+max(height, 0), len(lines))], "\n")
}
