package frame

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

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
	m.prompt.input, cmd = m.prompt.input.Update(msg)
	if m.prompt.mode == promptFilter {
		m.filter(m.prompt.input.Value())
	}
	return cmd
}

// commands are the words behind ":" that there are now.
func (m *Model) commands() []Command {
	var all []Command
	for _, d := range m.cfg.Screens {
		help := d.Name
		if d.Project {
			help += " [NAMESPACE]"
		}
		all = append(all, Command{d.Name, help, func(rest string) tea.Cmd { return m.goTo(d, rest) }})
	}
	if c, ok := m.top().screen.(Commander); ok {
		all = append(all, c.Commands()...)
	}
	return append(all,
		Command{"help", "help", func(string) tea.Cmd { m.help = &widget.Pager{}; return nil }},
		Command{"quit", "quit, or q", func(string) tea.Cmd { return tea.Quit }},
	)
}

func (m *Model) suggestions() (words []string) {
	for _, c := range m.commands() {
		words = append(words, c.Name)
	}
	return words
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
	wrong := trouble{message: fmt.Sprintf("there is no command %q", word), hint: "there are " + strings.Join(m.suggestions(), ", ")}
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
