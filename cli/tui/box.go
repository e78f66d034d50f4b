package tui

import (
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// box is a line that is typed on a screen, such as a query. What is typed is not kept when it is closed.
type box struct {
	input textinput.Model
	hint  string
	apply func(text string) tea.Cmd // nil: the box is closed
}

// start opens the box behind a sign. hint says what can be typed; completions are whole lines.
func (b *box) start(sign, value, hint string, completions []string, apply func(text string) tea.Cmd) {
	b.input, b.hint, b.apply = frame.NewInput(sign), hint, apply
	b.input.ShowSuggestions = len(completions) > 0
	b.input.SetSuggestions(completions)
	b.input.SetValue(value)
}

// open says that a line is being typed.
func (b *box) open() bool { return b.apply != nil }

// close closes it, and says whether it was open.
func (b *box) close() bool {
	was := b.open()
	*b = box{}
	return was
}

// take takes what is typed.
func (b *box) take(msg tea.Msg) (cmd tea.Cmd) {
	if pressed, ok := msg.(tea.KeyPressMsg); ok && pressed.String() == "enter" {
		text, apply := b.input.Value(), b.apply
		b.close()
		return apply(text)
	}
	b.input, cmd = frame.TypeInto(b.input, msg)
	return cmd
}

// view is two lines: what is typed, and what can be.
func (b *box) view(width int, t widget.Theme) []string {
	b.input.SetWidth(max(width-4, 1))
	return []string{widget.Cut(b.input.View(), width), t.Faint.Render(widget.Cut(b.hint, width))}
}

func (b *box) keys() []key.Binding {
	keys := []key.Binding{frame.Binding("enter", "take it")}
	if b.input.ShowSuggestions {
		keys = append(keys, frame.Binding("tab", "complete"))
	}
	return append(keys, frame.Binding("esc", "leave it as it is"))
}
