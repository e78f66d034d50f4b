package widget

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/svcctl/svc/cli/output"
)

// Theme is how things look. Without color it has bold, faint and reverse alone; no meaning is carried by color only.
type Theme struct {
	Title    lipgloss.Style // names of what is shown
	Heading  lipgloss.Style // of columns
	Faint    lipgloss.Style // what is beside the point
	Selected lipgloss.Style // the row of the cursor
	Key      lipgloss.Style // of the keyboard
	mark     ansi.Style     // not lipgloss's, which underlines each character by itself
	tones    map[output.Tone]lipgloss.Style
}

// NewTheme makes the look for a terminal, which may have a dark or a light background.
func NewTheme(colored, dark bool) Theme {
	plain := lipgloss.NewStyle()
	t := Theme{
		Title: plain.Bold(true), Heading: plain.Bold(true), Faint: plain.Faint(true), Selected: plain.Reverse(true),
		mark: ansi.NewStyle().Bold().Underline(true), Key: plain.Bold(true), tones: map[output.Tone]lipgloss.Style{},
	}
	if !colored {
		t.tones[output.ToneBad] = plain.Bold(true)
		return t
	}
	pick := func(onDark, onLight ansi.IndexedColor) color.Color {
		if dark {
			return onDark
		}
		return onLight
	}
	// Of the palette of 256, so that what a terminal with 16 colors gets is near.
	accent := pick(75, 25)
	t.Title, t.Key = t.Title.Foreground(accent), t.Key.Foreground(accent)
	t.Faint = plain.Foreground(pick(245, 242))
	t.mark = t.mark.ForegroundColor(pick(221, 94))
	t.tones[output.ToneGood] = plain.Foreground(pick(78, 22))
	t.tones[output.ToneWarn] = plain.Foreground(pick(221, 94))
	t.tones[output.ToneBad] = plain.Foreground(pick(203, 124))
	return t
}

// Mark gives text as what a search has found.
func (t Theme) Mark(text string) string {
	if text == "" {
		return ""
	}
	return t.mark.Styled(text)
}

// Paint gives text in the color of a tone.
func (t Theme) Paint(tone output.Tone, text string) string {
	style, ok := t.tones[tone]
	if !ok || text == "" {
		return text
	}
	return style.Render(text)
}
