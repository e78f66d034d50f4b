package frametest

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// What a picture of a screen is drawn with: in units of a picture, of which a line of text has lineHeight.
const (
	cellWidth, lineHeight, fontSize = 8.43, 18, 14
	margin, bar                     = 14, 32
	background, foreground          = "#15181e", "#d7dae0"
	faint                           = 0.62 // opacity
)

// palette has the first seven of a terminal's own colors, which programs name by number; those of old are too dark to read here.
var palette = [...]string{"#5c6370", "#f47067", "#57c26b", "#e5b567", "#61afef", "#c678dd", "#56b6c2"}

// SVG draws what is on a screen as a picture of a dark terminal window, for documentation. Lines below the last one that has something on it
// are left out.
func SVG(screen *vt.Emulator, title string) string {
	var b strings.Builder
	rows := 0
	for y := range screen.Height() {
		if strings.TrimSpace(lineText(screen, y)) != "" {
			rows = y + 1
		}
	}
	width, height := 2*margin+float64(screen.Width())*cellWidth, float64(bar+margin+rows*lineHeight)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d" fill="%s">`+"\n",
		width, height, width, height, fontSize, foreground)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5.5" fill="%s"/>`+"\n", 20+18*i, c)
	}
	fmt.Fprintf(&b, `<text x="50%%" y="21" text-anchor="middle" font-size="12" opacity="%g">%s</text>`+"\n", faint, html.EscapeString(title))
	for y := range rows {
		drawLine(&b, screen, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func lineText(screen *vt.Emulator, y int) string {
	var b strings.Builder
	for x := range screen.Width() {
		if c := screen.CellAt(x, y); c != nil {
			b.WriteString(c.Content)
		}
	}
	return b.String()
}

// drawLine draws the cells of a line, those that look the same together.
func drawLine(b *strings.Builder, screen *vt.Emulator, y int) {
	for x := 0; x < screen.Width(); {
		first := screen.CellAt(x, y)
		if first == nil {
			x++
			continue
		}
		text, end := "", x
		for end < screen.Width() {
			c := screen.CellAt(end, y)
			if c == nil || !c.Style.Equal(&first.Style) {
				break
			}
			text += c.Content
			end += max(c.Width, 1)
		}
		drawRun(b, first.Style, text, x, y, end-x)
		x = end
	}
}

func drawRun(b *strings.Builder, style uv.Style, text string, x, y, cells int) {
	fg, bg := style.Fg, style.Bg
	inverse := style.Attrs&uv.AttrReverse != 0
	if inverse {
		fg, bg = bg, fg
	}
	left, top, width := margin+float64(x)*cellWidth, float64(bar+y*lineHeight), float64(cells)*cellWidth
	if fill := hex(bg, map[bool]string{true: foreground}[inverse]); fill != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top, width, lineHeight, fill)
	}
	lead := len(text) - len(strings.TrimLeft(text, " "))
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	attrs := ""
	if fill := hex(fg, map[bool]string{true: background}[inverse]); fill != "" {
		attrs += ` fill="` + fill + `"`
	}
	if style.Attrs&uv.AttrBold != 0 {
		attrs += ` font-weight="bold"`
	}
	if style.Attrs&uv.AttrFaint != 0 {
		attrs += fmt.Sprintf(` opacity="%g"`, faint)
	}
	if style.Underline != 0 {
		attrs += ` text-decoration="underline"`
	}
	// Whatever font there is, the text has the width of its cells.
	n := ansi.StringWidth(text)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>%s</text>`+"\n",
		left+float64(lead)*cellWidth, top+13.5, float64(n)*cellWidth, attrs, html.EscapeString(text))
}

// hex is a color as SVG has it, or what there is instead of none.
func hex(c color.Color, none string) string {
	if c == nil {
		return none
	}
	if n, ok := c.(ansi.BasicColor); ok && int(n) < len(palette) {
		return palette[n]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
