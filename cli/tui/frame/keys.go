package frame

import (
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/jsonyaml"
)

// key takes a key: first those that always do the same, then what is in front of the screen, then the frame's own, and what is
// left is the screen's.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	if msg.Text != "" && typable(msg.Text) != msg.Text { // as a terminal that takes a paste for keys gives it
		return nil
	}
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
	switch {
	case len(top.held) > 0 && pressed == "esc":
		top.held = nil
		return nil
	case len(top.held) > 0: // this one may be meant for what they open
		top.hold(msg)
		return nil
	case pressed == "esc":
		return m.esc(top)
	}
	if top.typing() {
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
		return m.readNames()
	case "/":
		if top.filters() {
			m.prompt.start(promptFilter, top.filter, nil)
			return nil
		}
	case "ctrl+r":
		return m.refresh()
	}
	if i := slices.IndexFunc(m.cfg.Screens, func(d Def) bool { return d.Key == pressed && pressed != "" }); i >= 0 {
		return m.goTo(m.cfg.Screens[i], "")
	}
	switch {
	case top.loaded:
		return top.screen.Update(msg)
	case top.readFailures == 0: // else an error is shown in place of the screen, and nobody types ahead of that
		top.hold(msg)
	}
	return nil
}

// mostHeld is how many keys are held, about a line of them.
const mostHeld = 80

// hold keeps a key for when the screen has been read for the first time.
func (l *layer) hold(msg tea.KeyPressMsg) {
	if len(l.held) < mostHeld {
		l.held = append(l.held, msg)
	}
}

// release takes the keys that were held, as if they were pressed now, until the user is asked something, by one of them or
// by what was read: nobody answers what they have not seen.
func (m *Model) release(l *layer) tea.Cmd {
	held := l.held
	l.held = nil
	var cmds []tea.Cmd
	for _, msg := range held {
		if m.question != nil || m.top().typing() {
			break
		}
		cmds = append(cmds, m.key(msg))
	}
	return tea.Batch(cmds...)
}

// esc goes back by one step: from an error that is told, of the screen itself, from its filter, or to the screen beneath.
func (m *Model) esc(top *layer) tea.Cmd {
	told := m.notice.stays && m.notice.tone == output.ToneBad
	if m.dismiss(); told {
		return nil
	}
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

// goTo opens a screen. What is not named of what it is of, is that of the cursor, of what is open, or of the start.
func (m *Model) goTo(d Def, rest string) tea.Cmd {
	m.dismiss()
	place := m.place()
	words := strings.Fields(strings.Replace(rest, "/", " ", 1))
	switch n := len(words); {
	case n > 2 || n == 2 && d.Of != OfCollection || n > 0 && d.Of == OfService:
		m.complain(trouble{message: "there is too much behind :" + d.Name, hint: "it is :" + usage(d)})
		return nil
	case n == 2:
		place = Place{words[0], words[1]}
	case n == 1 && d.Of == OfCollection:
		place.Collection = words[0]
	case n == 1:
		place = Place{Namespace: words[0]}
	}
	switch {
	case d.Of >= OfProject && place.Namespace == "":
		m.complain(trouble{message: "which project?", hint: "move to one in the list, or name it: :" + usage(d)})
		return nil
	case place.lacks(d.Of):
		m.complain(trouble{message: "which collection?", hint: "3 shows those that there are; move to one, or name it: :" + usage(d)})
		return nil
	}
	return m.open(d, place)
}

// usage is a screen's command, with what can follow it.
func usage(d Def) string {
	switch d.Of {
	case OfService:
		return d.Name
	case OfCollection:
		return d.Name + " [[NAMESPACE] COLLECTION]"
	default:
		return d.Name + " [NAMESPACE]"
	}
}

// place is what the cursor is on, or else what is open.
func (m *Model) place() Place {
	top := m.top()
	place := top.place
	if c, ok := top.screen.(CollectionChooser); ok {
		place.Collection = c.Collection()
	}
	if c, ok := top.screen.(Chooser); ok && c.Namespace() != "" {
		return Place{Namespace: c.Namespace()}
	}
	if place.Namespace == "" && top.def.Of != OfAny {
		place.Namespace = m.cfg.Namespace
	}
	return place
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
	msg.Content = typable(msg.Content)
	switch {
	case top == nil || m.question != nil:
		return nil
	case m.prompt.open():
		return m.promptKey(msg)
	}
	if top.typing() {
		return top.screen.Update(msg)
	}
	return nil
}

// typable is text without what would turn a line around, or drive a terminal: what is pasted may come from anywhere. What ends lines is for who takes the text.
func typable(text string) string {
	var b strings.Builder
	for char, unsafe := range jsonyaml.Runes(text) {
		if r, _ := utf8.DecodeRuneInString(char); !unsafe || r == '\n' || r == '\r' || r == '\t' {
			b.WriteRune(r)
		}
	}
	return b.String()
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
	if m.top().typing() {
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
