package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// tokenForm is where a personal access token is made: a name, when it ends, and what it may do.
type tokenForm struct {
	host   *frame.Host
	of     *accounts
	inputs [3]textinput.Model // the name, when it ends, and what the scopes are filtered by
	at     int                // which one is typed in
	scopes []string           // that can be given
	given  map[string]bool
	list   widget.List
	asked  bool
}

// The inputs of a tokenForm.
const (
	inputName = iota
	inputExpires
	inputScopes
)

func newTokenForm(h *frame.Host, of *accounts) frame.Screen {
	f := &tokenForm{host: h, of: of, given: map[string]bool{}}
	for i, sign := range []string{"Name     ", "Expires  ", "Scopes   "} {
		f.inputs[i] = frame.NewInput(sign)
		f.inputs[i].Blur()
	}
	f.inputs[inputName].Focus()
	return f
}

func (f *tokenForm) Title() string { return "Make a token" }

// Every implements frame.Reader.
func (f *tokenForm) Every() time.Duration { return 0 }

type tokenScopes struct{ all []string }

func (f *tokenForm) Read(ctx context.Context) (tea.Msg, error) {
	all, err := f.host.Client.TokenScopes(ctx)
	return tokenScopes{all}, err
}

// Typing implements frame.Typer.
func (f *tokenForm) Typing() bool { return true }

// tokenMade carries the value of a token, which nothing keeps but the screen that shows it once.
type tokenMade struct{ token *api.Token }

func (f *tokenForm) Update(msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tokenScopes:
		f.scopes = msg.all
		f.show()
	case frame.Failed:
		f.asked = false
	case tokenMade:
		back, made := f.host.Back(), msg.token
		return tea.Batch(back, f.of.host.Push(func(h *frame.Host) frame.Screen { return &secret{host: h, token: made} }))
	case tea.PasteMsg:
		return f.edit(msg)
	case tea.KeyPressMsg:
		switch pressed := msg.String(); {
		case pressed == "enter":
			return f.submit()
		case pressed == "tab", pressed == "shift+tab":
			f.inputs[f.at].Blur()
			if f.at = (f.at + 1) % len(f.inputs); pressed == "shift+tab" {
				f.at = (f.at + len(f.inputs) - 2) % len(f.inputs)
			}
			return f.inputs[f.at].Focus()
		case f.at == inputScopes && pressed == "space":
			f.toggle()
			return nil
		case f.at == inputScopes && slices.Contains([]string{"up", "down", "pgup", "pgdown"}, pressed):
			f.list.Key(pressed)
			return nil
		}
		return f.edit(msg)
	}
	return nil
}

// edit changes what is typed.
func (f *tokenForm) edit(msg tea.Msg) (cmd tea.Cmd) {
	f.inputs[f.at], cmd = f.inputs[f.at].Update(msg)
	if f.at == inputScopes {
		f.list.Filter(f.inputs[inputScopes].Value())
	}
	return cmd
}

// toggle gives the scope with the cursor, or takes it back.
func (f *tokenForm) toggle() {
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

func (f *tokenForm) show() {
	s := widget.Section{None: "there are no scopes that you could give", Columns: []widget.Column{{Name: "SCOPE", Least: 12}}}
	for _, scope := range f.scopes {
		s.Rows = append(s.Rows, widget.Row{ID: scope, Cells: []widget.Cell{widget.Text(scope)}, Marked: f.given[scope]})
	}
	f.list.Set(s)
}

// submit makes the token.
func (f *tokenForm) submit() tea.Cmd {
	name, expires := strings.TrimSpace(f.inputs[inputName].Value()), strings.TrimSpace(f.inputs[inputExpires].Value())
	var scopes []string
	for _, scope := range f.scopes {
		if f.given[scope] {
			scopes = append(scopes, scope)
		}
	}
	switch {
	case f.asked:
		return nil
	case name == "":
		return f.host.Say("type a name: it says what the token is for")
	case len(scopes) == 0:
		return f.host.Say("what may it do? tab goes to the scopes, and space gives one")
	}
	write := api.TokenWrite{Name: &name, Scopes: &scopes}
	if expires != "" {
		at, err := token.ParseExpires(expires, f.host.Now())
		if err != nil {
			f.host.Fail("when does it end? "+expires+" is no time", "such as 30d, 2030-01-31 or never; nothing is as the service says")
			return nil
		}
		write.ExpiresAt = &api.Time{Time: at}
	}
	f.asked = true
	return f.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		made, err := f.host.Client.Tokens().Create(ctx, write)
		return tokenMade{made}, err
	})
}

func (f *tokenForm) Keys() []key.Binding {
	keys := []key.Binding{frame.Binding("enter", "make it"), frame.Binding("tab", "next")}
	if f.at == inputScopes {
		keys = append(keys, frame.Binding("space", "give, or take back"))
	}
	return append(keys, frame.Binding("esc", "back"))
}

func (f *tokenForm) View(width, height int) string {
	t := f.host.Theme()
	hints := []string{"what the token is for", "30d, 2030-01-31, never; nothing is as the service says", fmt.Sprintf("%d given; type to filter, space gives one", len(f.given))}
	var out []string
	for i := range f.inputs {
		f.inputs[i].SetWidth(max(min(width/2, 40), 1))
		line := strings.TrimRight(f.inputs[i].View(), " ")
		if i == f.at {
			line += "  " + t.Faint.Render(hints[i])
		} else if i == inputScopes {
			line += "  " + t.Faint.Render(fmt.Sprintf("%d given", len(f.given)))
		}
		out = append(out, widget.Cut(line, width))
	}
	if height > len(out)+1 {
		out = append(out, "", f.list.View(width, height-len(out)-1, t))
	}
	return lines(out)
}

// secret shows the value of a token that was made, once. It is gone when the screen is left.
type secret struct {
	host  *frame.Host
	token *api.Token // nil: it was shown
}

func (s *secret) Title() string { return "The token" }

// Typing implements frame.Typer, so that no key leaves the screen by mistake.
func (s *secret) Typing() bool { return true }

func (s *secret) Update(msg tea.Msg) tea.Cmd {
	if pressed, ok := msg.(tea.KeyPressMsg); ok && pressed.String() == "enter" {
		return s.close()
	}
	return nil
}

// Back implements frame.Backer.
func (s *secret) Back() (cmd tea.Cmd, used bool) { return s.close(), true }

func (s *secret) close() tea.Cmd {
	s.token = nil
	return s.host.Back()
}

func (s *secret) Keys() []key.Binding {
	return []key.Binding{frame.Binding("enter", "I have kept it: it is not shown again")}
}

func (s *secret) View(width, height int) string {
	if s.token == nil {
		return ""
	}
	t := s.host.Theme()
	out := widget.Wrap(output.Escape("The token "+s.token.Name+" is made. Keep its value now: it is not shown again, here or anywhere."), width)
	out = append(out, "")
	for _, line := range widget.Wrap(output.Escape(s.token.Token), width) {
		out = append(out, t.Title.Render(line))
	}
	out = append(out, "")
	out = append(out, widget.Wrap(output.Escape("It ends: "+token.Expires(*s.token)+". It may: "+strings.Join(s.token.Scopes, ", ")), width)...)
	return lines(out[:min(len(out), max(height, 0))])
}
