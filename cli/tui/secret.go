package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// secret shows what is never shown again: the value of a token, or a password that was made up. It is gone when the screen is left.
type secret struct {
	host  *frame.Host
	title string
	about string // what it is
	value string // "": it was shown
	more  string
}

// showSecret shows it above the screen of h.
func showSecret(h *frame.Host, what secret) tea.Cmd {
	return h.Push(func(h *frame.Host) frame.Screen { what.host = h; return &what })
}

func (s *secret) Title() string { return s.title }

// Typing implements frame.Typer, so that no key leaves the screen by mistake.
func (s *secret) Typing() bool { return true }

func (s *secret) Update(tea.Msg) tea.Cmd { return nil }

// Back implements frame.Backer. Enter does not close it: whoever has pressed that twice to make what it shows would never have seen it.
func (s *secret) Back() (cmd tea.Cmd, used bool) {
	s.value = ""
	return s.host.Back(), true
}

func (s *secret) Keys() []key.Binding {
	return []key.Binding{frame.Binding("esc", "I have kept it: it is not shown again")}
}

func (s *secret) View(width, height int) string {
	if s.value == "" {
		return ""
	}
	t := s.host.Theme()
	out := widget.Wrap(output.Escape(s.about+" Keep it now: it is not shown again, here or anywhere."), width)
	out = append(out, "")
	for _, line := range widget.Wrap(output.Escape(s.value), width) {
		out = append(out, t.Title.Render(line))
	}
	if s.more != "" {
		out = append(append(out, ""), widget.Wrap(output.Escape(s.more), width)...)
	}
	return lines(out[:min(len(out), max(height, 0))])
}
