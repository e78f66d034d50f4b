package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// form is lines that are typed. Where it gives things, such as rights, the last line is what their list is filtered by.
type form struct {
	host  *frame.Host
	lines []formLine
	at    int // which one is typed in
	gives bool
	list  widget.List
	given map[string]bool // ids of rows of the list
	asked bool            // it was sent, and is not answered
}

// formLine is a line of a form.
type formLine struct {
	input  textinput.Model
	hint   string
	secret bool // nothing of what is typed is shown
}

// maxSecret is how many characters a secret may have here: more than the service takes, so that it is refused and not cut.
const maxSecret = 2000

// newForm makes a form of lines, each with the sign before it and a hint for what to type.
func newForm(h *frame.Host, gives bool, lines ...formLine) form {
	f := form{host: h, lines: lines, gives: gives, given: map[string]bool{}}
	for i := 1; i < len(lines); i++ {
		lines[i].input.Blur()
	}
	return f
}

// line is a line of a form.
func line(sign, hint string) formLine { return formLine{input: frame.NewInput(sign), hint: hint} }

// secretLine is one in which a password is typed.
func secretLine(sign, hint string) formLine {
	l := line(sign, hint)
	l.secret = true
	l.input.EchoMode, l.input.EchoCharacter, l.input.CharLimit = textinput.EchoPassword, '•', maxSecret
	return l
}

// Typing implements frame.Typer.
func (f *form) Typing() bool { return true }

// text is what was typed in a line, without blanks around it.
func (f *form) text(i int) string { return strings.TrimSpace(f.lines[i].input.Value()) }

// choosing says that the list is filtered, and its rows are given.
func (f *form) choosing() bool { return f.gives && f.at == len(f.lines)-1 }

// take takes what is typed, and that what was sent has failed. submit sends the form.
func (f *form) take(msg tea.Msg, submit func() tea.Cmd) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Failed:
		f.asked = false
	case tea.PasteMsg:
		msg.Content = strings.TrimRight(msg.Content, "\r\n")
		return f.edit(msg)
	case tea.KeyPressMsg:
		switch pressed := msg.String(); {
		case pressed == "enter":
			if !f.asked {
				return submit()
			}
		case pressed == "tab":
			return f.move(1)
		case pressed == "shift+tab":
			return f.move(-1)
		case f.choosing() && pressed == "space":
			f.toggle()
		case f.choosing() && slices.Contains([]string{"up", "down", "pgup", "pgdown"}, pressed):
			f.list.Key(pressed)
		case pressed == "down":
			return f.move(1)
		case pressed == "up":
			return f.move(-1)
		default:
			return f.edit(msg)
		}
	}
	return nil
}

// move goes to another line.
func (f *form) move(by int) tea.Cmd {
	f.lines[f.at].input.Blur()
	f.at = (f.at + by + len(f.lines)) % len(f.lines)
	return f.lines[f.at].input.Focus()
}

// edit changes what is typed.
func (f *form) edit(msg tea.Msg) (cmd tea.Cmd) {
	f.lines[f.at].input, cmd = frame.TypeInto(f.lines[f.at].input, msg)
	if f.choosing() {
		f.list.Filter(f.lines[f.at].input.Value())
	}
	return cmd
}

// toggle gives the row with the cursor, or takes it back.
func (f *form) toggle() {
	id := f.list.Selected()
	if id == "" {
		return
	}
	if f.given[id] {
		delete(f.given, id)
	} else {
		f.given[id] = true
	}
	f.list.Mark(id, f.given[id])
	f.list.Key("down")
}

// wipe forgets the secrets that were typed.
func (f *form) wipe() {
	for i := range f.lines {
		if f.lines[i].secret {
			f.lines[i].input.Reset()
		}
	}
}

// password gives what was typed twice; where nothing was, one that is made up, which is generated, too.
func (f *form) password(first, again int) (password, generated string, ok bool) {
	password = f.lines[first].input.Value()
	switch {
	case password != f.lines[again].input.Value():
		f.host.Fail("the two passwords differ", "type the same one twice")
		return "", "", false
	case password != "":
		return password, "", true
	}
	made, err := command.GeneratePassword()
	if err != nil {
		f.host.Fail("no password could be made up: "+err.Error(), "type one")
		return "", "", false
	}
	return made, made, true
}

func (f *form) keys(does string) []key.Binding {
	keys := []key.Binding{frame.Binding("enter", does)}
	if len(f.lines) > 1 {
		keys = append(keys, frame.Binding("tab", "next"))
	}
	if f.choosing() {
		keys = append(keys, frame.Binding("space", "give, or take back"))
	}
	return append(keys, frame.Binding("esc", "back"))
}

// roomForList is how many lines the list has at least while something of it is chosen, with one before it.
const roomForList = 6

// view draws the form. Where there is no room for all, the line that is typed in is there, and the list while it is chosen from.
func (f *form) view(width, height int) string {
	t := f.host.Theme()
	var out []string
	for i := range f.lines {
		l := &f.lines[i]
		l.input.SetWidth(max(min(width/2, 40), 1))
		shown := strings.TrimRight(l.input.View(), " ")
		hint := ""
		if i == f.at {
			hint = l.hint
		}
		if f.gives && i == len(f.lines)-1 {
			hint = strings.TrimSuffix(fmt.Sprintf("%d given; %s", len(f.given), hint), "; ")
		}
		if hint != "" {
			shown += "  " + t.Faint.Render(hint)
		}
		out = append(out, widget.Cut(shown, width))
	}
	switch {
	case f.choosing() && height < len(out)+roomForList:
		out = out[len(out)-1:]
	case height < len(out):
		first := min(f.at, max(len(out)-height, 0))
		out = out[first:min(first+max(height, 0), len(out))]
	}
	if f.gives && height > len(out)+1 {
		out = append(out, "", f.list.View(width, height-len(out)-1, t))
	}
	return lines(out)
}
