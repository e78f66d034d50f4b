package frame

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
)

// prompt is the line in which a command or a filter is typed.
type prompt struct {
	mode  promptMode
	input textinput.Model
}

type promptMode uint8

const (
	promptClosed promptMode = iota
	promptCommand
	promptFilter
)

func (p *prompt) open() bool { return p.mode != promptClosed }

func (p *prompt) start(mode promptMode, value string, suggestions []string) {
	p.mode, p.input = mode, NewInput(":")
	if mode == promptFilter {
		p.input = NewInput("/")
	}
	p.input.ShowSuggestions = len(suggestions) > 0
	p.input.SetSuggestions(suggestions)
	p.input.SetValue(value)
}

// maxInput is how many characters a line that is typed may have.
const maxInput = 1000

// NewInput makes a line in which text is typed, behind a sign.
func NewInput(sign string) textinput.Model {
	input := textinput.New()
	input.Prompt, input.CharLimit = sign, maxInput
	styles := textinput.Styles{} // the terminal's own, and a cursor that does not blink: nothing is redrawn while nobody types
	input.SetStyles(styles)
	input.KeyMap.Paste = key.NewBinding(key.WithDisabled()) // which would start another program; a terminal's own paste works
	input.Focus()
	return input
}

// TypeInto gives a line as a key or a paste makes it.
func TypeInto(input textinput.Model, msg tea.Msg) (_ textinput.Model, cmd tea.Cmd) {
	input, cmd = input.Update(msg)
	if _, pasted := msg.(tea.PasteMsg); pasted { // behind which it would complete what was typed before
		input.SetSuggestions(input.AvailableSuggestions())
	}
	return input, cmd
}

// promptKey takes what is typed.
func (m *Model) promptKey(msg tea.Msg) tea.Cmd {
	if pressed, ok := msg.(tea.KeyPressMsg); ok {
		switch pressed.String() {
		case "esc":
			if m.prompt.mode == promptFilter {
				m.filter("")
			}
			m.prompt = prompt{}
			return nil
		case "enter":
			mode, value := m.prompt.mode, m.prompt.input.Value()
			m.prompt = prompt{}
			if mode == promptCommand {
				return m.run(value)
			}
			return nil
		case "backspace":
			if m.prompt.input.Value() == "" { // behind which there is only the sign
				m.prompt = prompt{}
				return nil
			}
		}
	}
	var cmd tea.Cmd
	m.prompt.input, cmd = TypeInto(m.prompt.input, msg)
	if m.prompt.mode == promptFilter {
		m.filter(m.prompt.input.Value())
	}
	return cmd
}

// commands are the words behind ":" that there are now.
func (m *Model) commands() []Command {
	var all []Command
	for _, d := range m.cfg.Screens {
		all = append(all, Command{Name: d.Name, Help: usage(d), Run: func(rest string) tea.Cmd { return m.goTo(d, rest) }, Args: m.names.places(d.Of)})
	}
	if c, ok := m.top().screen.(Commander); ok {
		all = append(all, c.Commands()...)
	}
	return append(all,
		Command{Name: "help", Help: "help", Run: func(string) tea.Cmd { m.help = &widget.Pager{}; return nil }},
		Command{Name: "quit", Help: "quit, or q", Run: func(string) tea.Cmd { return tea.Quit }},
	)
}

// suggestions are the lines that can be completed: the names of commands, and then what can follow them.
func (m *Model) suggestions() []string {
	lines := m.commandNames()
	for _, c := range m.commands() {
		for _, arg := range c.Args {
			lines = append(lines, c.Name+" "+arg)
		}
	}
	return lines
}

func (m *Model) commandNames() (names []string) {
	for _, c := range m.commands() {
		names = append(names, c.Name)
	}
	return names
}

// namesRead are names of what screens can be of.
type namesRead struct {
	namespace               string // that collections are of
	namespaces, collections []string
}

// places are those that can be named behind the name of a screen.
func (n namesRead) places(of Scope) (all []string) {
	switch of {
	case OfService:
	case OfCollection:
		for _, c := range n.collections {
			if n.namespace != "" && output.Escape(c) == c {
				all = append(all, c, n.namespace+" "+c)
			}
		}
	default:
		for _, ns := range n.namespaces {
			if output.Escape(ns) == ns {
				all = append(all, ns)
			}
		}
	}
	return all
}

// readNames asks for what can be completed.
func (m *Model) readNames() tea.Cmd {
	if m.cfg.Names == nil {
		return nil
	}
	namespace := m.place().Namespace
	return m.tasks.do(m.tasks.ctx, func(ctx context.Context) tea.Msg {
		namespaces, collections := m.cfg.Names(ctx, namespace)
		return namesRead{namespace, namespaces, collections}
	})
}

func (m *Model) namesRead(msg namesRead) {
	m.names = msg
	if m.prompt.mode == promptCommand {
		m.prompt.input.SetSuggestions(m.suggestions())
	}
}

// run carries out a command: by its name, or by what only its name begins with.
func (m *Model) run(line string) tea.Cmd {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word == "" {
		return nil
	}
	m.dismiss()
	all := m.commands()
	matches := slices.DeleteFunc(slices.Clone(all), func(c Command) bool { return !strings.HasPrefix(c.Name, word) })
	if i := slices.IndexFunc(all, func(c Command) bool { return c.Name == word }); i >= 0 {
		matches = all[i : i+1]
	}
	if len(matches) == 1 {
		return matches[0].Run(strings.TrimSpace(rest))
	}
	wrong := trouble{message: fmt.Sprintf("there is no command %q", word), hint: "there are " + strings.Join(m.commandNames(), ", ")}
	if len(matches) > 1 {
		names := make([]string, len(matches))
		for i, c := range matches {
			names[i] = c.Name
		}
		wrong = trouble{message: fmt.Sprintf("%q may be %s", word, strings.Join(names, " or ")), hint: "type some more of it"}
	}
	m.complain(wrong)
	return nil
}
