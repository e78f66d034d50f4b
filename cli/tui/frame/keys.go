package frame

import (
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/widget"
)

// key takes a key: first those that always do the same, then what is in front of the screen, then the frame's own, and what is
// left is the screen's.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	pressed := msg.String()
	switch pressed {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return suspend()
	case "ctrl+l":
		return tea.ClearScreen
	}
	if !m.notice.stays {
		m.notice = notice{}
	}
	top := m.top()
	switch {
	case top == nil:
		return nil
	case m.question != nil:
		return m.answer(pressed)
	case m.prompt.open():
		return m.promptKey(msg)
	case m.help != nil:
		m.helpKey(pressed)
		return nil
	}
	if pressed == "esc" {
		return m.esc(top)
	}
	if t, ok := top.screen.(Typer); ok && t.Typing() {
		return top.screen.Update(msg)
	}
	switch pressed {
	case "q":
		return tea.Quit
	case "?":
		m.help = &widget.Pager{}
		return nil
	case ":":
		m.prompt.start(promptCommand, "", m.suggestions())
		return nil
	case "/":
		if top.filters() {
			m.prompt.start(promptFilter, top.filter, nil)
		}
		return nil
	case "ctrl+r":
		return m.refresh()
	}
	if i := slices.IndexFunc(m.cfg.Screens, func(d Def) bool { return d.Key == pressed && pressed != "" }); i >= 0 {
		return m.goTo(m.cfg.Screens[i], "")
	}
	if !top.loaded {
		return nil
	}
	return top.screen.Update(msg)
}

// esc goes back by one step: of the screen itself, from its filter, or to the screen beneath.
func (m *Model) esc(top *layer) tea.Cmd {
	m.dismiss()
	if b, ok := top.screen.(Backer); ok {
		if cmd, used := b.Back(); used {
			return cmd
		}
	}
	if top.filter != "" {
		m.filter("")
		return nil
	}
	return m.back()
}

// goTo opens a screen. Where it needs a project and none is named, it is that of the cursor, of what is open, or of the start.
func (m *Model) goTo(d Def, namespace string) tea.Cmd {
	m.dismiss()
	if !d.Project {
		return m.open(d, "")
	}
	if namespace == "" {
		namespace = m.namespace()
	}
	if namespace == "" {
		m.complain(trouble{message: "which project?", hint: "move to one in the list, or name it: :" + d.Name + " NAMESPACE"})
		return nil
	}
	return m.open(d, namespace)
}

func (m *Model) namespace() string {
	top := m.top()
	if c, ok := top.screen.(Chooser); ok && c.Namespace() != "" {
		return c.Namespace()
	}
	if top.namespace != "" {
		return top.namespace
	}
	return m.cfg.Namespace
}

// filters says whether there are rows to be filtered.
func (l *layer) filters() bool {
	f, ok := l.screen.(Filterer)
	return ok && l.loaded && f.Filters()
}

func (m *Model) filter(text string) {
	top := m.top()
	if f, ok := top.screen.(Filterer); ok {
		top.filter = text
		f.Filter(text)
	}
}

func (m *Model) answer(pressed string) tea.Cmd {
	switch pressed {
	case "y", "Y":
		yes := m.question.yes
		m.question = nil
		return yes()
	case "n", "N", "esc", "q":
		m.question = nil
	}
	return nil
}

func (m *Model) paste(msg tea.PasteMsg) tea.Cmd {
	top := m.top()
	switch {
	case top == nil || m.question != nil:
		return nil
	case m.prompt.open():
		return m.promptKey(msg)
	}
	if t, ok := top.screen.(Typer); ok && t.Typing() {
		return top.screen.Update(msg)
	}
	return nil
}

// hints are the keys that the footer shows, the screen's first.
func (m *Model) hints() (hints, last []key.Binding) {
	switch {
	case m.question != nil:
		return []key.Binding{Binding("y", "yes"), Binding("n", "no")}, nil
	case m.prompt.mode == promptCommand:
		return []key.Binding{Binding("enter", "run"), Binding("tab", "complete"), Binding("esc", "close")}, nil
	case m.prompt.mode == promptFilter:
		return []key.Binding{Binding("enter", "keep"), Binding("esc", "show all")}, nil
	case m.help != nil:
		return []key.Binding{Binding("↑↓", "scroll"), Binding("esc", "close")}, nil
	case m.top() == nil:
		return nil, nil
	}
	if m.top().loaded {
		hints = m.top().screen.Keys()
	}
	if t, ok := m.top().screen.(Typer); ok && t.Typing() {
		return hints, nil
	}
	if m.top().filters() {
		hints = append(hints, Binding("/", "filter"))
	}
	if len(m.stack) > 1 {
		hints = append(hints, Binding("esc", "back"))
	}
	hints = append(hints, Binding(":", "command"))
	return hints, []key.Binding{Binding("?", "help"), Binding("q", "quit")}
}
