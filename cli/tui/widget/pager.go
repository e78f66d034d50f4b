package widget

import (
	"strings"

	"github.com/svcctl/svc/cli/output"
)

// Doc is a page of text about one thing. What is added to it is escaped, but for what is painted already.
type Doc struct{ parts []part }

// part is a line of a Doc before it is broken.
type part struct {
	name, text string // of an item, name is its sign
	kind       partKind
	tone       output.Tone
	dimmed     bool
}

type partKind uint8

const (
	kindText partKind = iota
	kindField
	kindHeading
	kindPainted
	kindItem
)

// Heading begins a section.
func (d *Doc) Heading(text string) {
	if len(d.parts) > 0 {
		d.Text("")
	}
	d.parts = append(d.parts, part{text: output.Escape(text), kind: kindHeading})
}

// Field adds a name and a value; an empty value is left out.
func (d *Doc) Field(name, value string) { d.State(name, value, output.ToneNone) }

// State is Field with a tone.
func (d *Doc) State(name, value string, tone output.Tone) {
	if value != "" {
		d.parts = append(d.parts, part{name: output.Escape(name), text: output.Escape(value), kind: kindField, tone: tone})
	}
}

// Dimmed is Field of what is of no use now.
func (d *Doc) Dimmed(name, value string) {
	d.parts = append(d.parts, part{name: output.Escape(name), text: output.Escape(value), kind: kindField, dimmed: true})
}

// Text adds lines.
func (d *Doc) Text(text string) {
	for text := range strings.SplitSeq(text, "\n") {
		d.parts = append(d.parts, part{text: output.Escape(text)})
	}
}

// Item adds a text with a sign, such as "+ ", before its first line. Its other lines stand below the text.
func (d *Doc) Item(sign, text string, tone output.Tone) {
	d.parts = append(d.parts, part{name: sign, text: output.Escape(text), kind: kindItem, tone: tone})
}

// Painted adds a line that is safe and painted already.
func (d *Doc) Painted(text string) {
	d.parts = append(d.parts, part{text: text, kind: kindPainted})
}

// lines breaks the text. Names of fields stand in a column, as far as that leaves room for the values.
func (d *Doc) lines(width int, t Theme) (lines []string) {
	names := 0
	for _, p := range d.parts {
		if p.kind == kindField {
			names = max(names, Width(p.name)+len(between))
		}
	}
	names = min(names, width/2)
	for _, p := range d.parts {
		switch p.kind {
		case kindField:
			for i, text := range Wrap(p.text, width-names) {
				name := ""
				if i == 0 {
					name = p.name
				}
				if p.dimmed {
					text = t.Faint.Render(text)
				} else {
					text = t.Paint(p.tone, text)
				}
				lines = append(lines, t.Faint.Render(Pad(name, names, false))+text)
			}
		case kindItem:
			before := p.name
			for _, text := range Wrap(p.text, width-Width(before)) {
				lines = append(lines, t.Paint(p.tone, before+text))
				before = strings.Repeat(" ", Width(before))
			}
		case kindHeading:
			lines = append(lines, t.Title.Render(Cut(p.text, width)))
		default:
			lines = append(lines, Wrap(p.text, width)...)
		}
	}
	return lines
}

// Pager shows a Doc, and moves in it.
type Pager struct{ top, most, page int }

// Key moves the page. It says whether the key is one that does.
func (p *Pager) Key(key string) bool {
	to, ok := moveBy(key, p.top, p.page)
	if ok {
		p.top = max(min(to, p.most), 0)
	}
	return ok
}

// View draws a page. Its last line says so where there is more.
func (p *Pager) View(d Doc, width, height int, t Theme) string {
	lines := d.lines(width, t)
	if len(lines) <= height {
		p.top, p.most, p.page = 0, 0, height
		return strings.Join(lines, "\n")
	}
	p.page = max(height-1, 1)
	p.most = len(lines) - p.page
	p.top = min(p.top, p.most)
	shown := lines[p.top : p.top+p.page]
	if height < 2 {
		return strings.Join(shown, "\n")
	}
	more := "— the end"
	if p.top < p.most {
		more = "— more below"
	}
	return strings.Join(shown, "\n") + "\n" + t.Faint.Render(Cut(more, width))
}
