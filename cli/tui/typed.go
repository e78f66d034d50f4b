package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// typed is where what can't be undone is confirmed, by typing a word.
type typed struct {
	what typedQuestion

	host  *frame.Host
	input textinput.Model
}

// typedQuestion is what is asked.
type typedQuestion struct {
	title string
	lines []string       // what is going to happen
	word  string         // to be typed
	does  string         // such as "delete"
	act   func() tea.Cmd // what is done then, with the screen beneath shown again
}

// confirmTyped asks for a word to be typed.
func confirmTyped(h *frame.Host, what typedQuestion) tea.Cmd {
	return h.Push(func(h *frame.Host) frame.Screen { return &typed{what: what, host: h, input: frame.NewInput("> ")} })
}

func (q *typed) Title() string { return q.what.title }

// Typing implements frame.Typer.
func (q *typed) Typing() bool { return true }

func (q *typed) Update(msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if msg.String() == "enter" {
			return q.enter()
		}
		q.input, cmd = q.input.Update(msg)
	case tea.PasteMsg:
		q.input, cmd = q.input.Update(msg)
	}
	return cmd
}

func (q *typed) enter() tea.Cmd {
	if strings.TrimSpace(q.input.Value()) != q.what.word {
		return q.host.Say("type " + q.what.word + " to " + q.what.does + ", esc goes back")
	}
	return tea.Batch(q.host.Back(), q.what.act())
}

func (q *typed) Keys() []key.Binding {
	return []key.Binding{frame.Binding("enter", q.what.does), frame.Binding("esc", "back")}
}

func (q *typed) View(width, height int) string {
	t := q.host.Theme()
	var out []string
	for _, text := range q.what.lines {
		out = append(out, widget.Wrap(output.Escape(text), width)...)
	}
	q.input.SetWidth(max(width-4, 1))
	ask := []string{"", widget.Cut("Type "+t.Title.Render(output.Escape(q.what.word))+" to "+q.what.does+".", width), widget.Cut(q.input.View(), width)}
	out = append(out[:max(min(len(out), height-len(ask)), 0)], ask...)
	return lines(out[max(len(out)-max(height, 0), 0):])
}
