package frame

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
)

// linesForSpace is how many lines a terminal has where the header has one below it.
const linesForSpace = 16

// The least that a terminal needs: below, a sentence says so.
const (
	leastWidth  = 40
	leastHeight = 10
)

// maxMessage is how many lines an error may take, with its hint.
const maxMessage = 4

// View draws everything.
func (m *Model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}

func (m *Model) draw() string {
	if m.width <= 0 || m.height <= 0 || m.top() == nil {
		return ""
	}
	if m.width < leastWidth || m.height < leastHeight {
		return m.tooSmall()
	}
	head := append(m.header(), m.path())
	if m.height >= linesForSpace {
		head = append(head, "")
	}
	foot := append(m.message(), m.bottom())
	room := max(m.height-len(head)-len(foot), 0)
	body := strings.Split(m.body(room), "\n")
	for len(body) < room {
		body = append(body, "")
	}
	lines := append(append(head, body[:room]...), foot...)
	lines = lines[max(len(lines)-m.height, 0):]
	for i := range lines {
		lines[i] = output.Unjoined(widget.Cut(lines[i], m.width)) // a field whose text is longer shows a part of it
	}
	return strings.Join(lines, "\n")
}

// tooSmall says what is needed. What goes on goes on.
func (m *Model) tooSmall() string {
	lines := widget.Wrap(fmt.Sprintf("This terminal has %d×%d characters. Make it %d×%d or larger; q quits.", m.width, m.height, leastWidth, leastHeight), m.width)
	lines = lines[:min(len(lines), m.height)]
	for i := range lines {
		lines[i] = widget.Cut(lines[i], m.width)
	}
	return strings.Join(lines, "\n")
}

func (m *Model) body(height int) string {
	if m.help != nil {
		return m.help.View(m.helpDoc(), m.width, height, m.theme)
	}
	top := m.top()
	switch {
	case top.loaded:
		return top.screen.View(m.width, height)
	case top.readTrouble.message != "":
		return ""
	}
	asking := "asking the service …"
	if n := len(top.held); n > 0 {
		asking += fmt.Sprintf(" (keys pressed meanwhile: %d; esc drops them)", n)
	}
	return m.theme.Faint.Render(widget.Cut(asking, m.width))
}

// path says where the screen is, and what its rows are filtered by. Where it has no room, its beginning makes way.
func (m *Model) path() string {
	filter := ""
	if top := m.top(); top.filter != "" && m.prompt.mode != promptFilter {
		filter = m.theme.Faint.Render("  /" + output.Escape(top.filter))
	}
	sep := m.theme.Faint.Render(" › ")
	path := ""
	for i := range m.stack {
		parts := make([]string, 0, len(m.stack))
		if i > 0 {
			parts = append(parts, "…")
		}
		for _, l := range m.stack[i:] {
			parts = append(parts, m.theme.Title.Render(output.Escape(l.screen.Title())))
		}
		if path = strings.Join(parts, sep) + filter; widget.Width(path) <= m.width {
			break
		}
	}
	return path
}

// message is what the user is told or asked, if anything.
func (m *Model) message() []string {
	top := m.top()
	n := m.notice
	for _, t := range []trouble{top.readTrouble, top.followTrouble} {
		if n.text == "" && t.message != "" {
			n = notice{text: output.Escape("error, " + t.next + ": " + t.message), hint: output.Escape(t.hint), tone: output.ToneBad}
		}
	}
	if m.question != nil {
		n = notice{text: m.question.text + " (y/n)", tone: output.ToneWarn}
	}
	if n.text == "" {
		return nil
	}
	lines := m.wrapped(n.text, func(text string) string { return m.theme.Paint(n.tone, text) })
	if n.hint != "" && m.question == nil {
		lines = append(lines, m.wrapped("hint: "+n.hint, func(text string) string { return text })...)
	}
	return lines[:min(len(lines), max(1, min(maxMessage, m.height/3)))]
}

func (m *Model) wrapped(text string, paint func(string) string) []string {
	lines := widget.Wrap(text, m.width)
	if most := maxMessage - 1; len(lines) > most {
		lines = lines[:most]
		lines[most-1] = widget.Cut(lines[most-1]+"…", m.width)
	}
	for i := range lines {
		lines[i] = paint(lines[i])
	}
	return lines
}

// bottom is the last line: what is typed, or which keys there are.
func (m *Model) bottom() string {
	if m.prompt.open() {
		m.prompt.input.SetWidth(max(m.width-2, 1))
		return strings.TrimRight(m.prompt.input.View(), " ") // it fills the line up, and more
	}
	hints, last := m.hints()
	end := widget.Fit(m.drawn(last), "  ", m.width)
	room := m.width
	if end != "" {
		room -= widget.Width(end) + 2
	}
	line := widget.Fit(m.drawn(hints), "  ", max(room, 0))
	if line == "" || end == "" {
		return line + end
	}
	return line + "  " + end
}

func (m *Model) drawn(keys []key.Binding) (parts []string) {
	for _, k := range keys {
		if k.Enabled() {
			parts = append(parts, m.theme.Key.Render(k.Help().Key)+" "+m.theme.Faint.Render(k.Help().Desc))
		}
	}
	return parts
}
