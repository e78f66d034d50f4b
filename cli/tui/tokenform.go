package tui

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// tokenForm is where a personal access token is made: a name, when it ends, and what it may do.
type tokenForm struct {
	form

	of     *accounts
	scopes []string // that can be given
}

// The lines of a tokenForm; behind them there is the one for scopes.
const (
	tokenName = iota
	tokenExpires
)

func newTokenForm(h *frame.Host, of *accounts) frame.Screen {
	return &tokenForm{of: of, form: newForm(h, true,
		line("Name     ", "what the token is for"), line("Expires  ", "30d, 2030-01-31, never; nothing is as the service says"), line("Scopes   ", "type to filter, space gives one"))}
}

func (f *tokenForm) Title() string { return "Make a token" }

// Every implements frame.Reader.
func (f *tokenForm) Every() time.Duration { return 0 }

type tokenScopes struct{ all []string }

func (f *tokenForm) Read(ctx context.Context) (tea.Msg, error) {
	all, err := f.host.Client.TokenScopes(ctx)
	return tokenScopes{all}, err
}

// tokenMade carries the value of a token, which nothing keeps but the screen that shows it once.
type tokenMade struct{ token *api.Token }

func (f *tokenForm) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tokenScopes:
		f.scopes = msg.all
		f.show()
	case tokenMade:
		f.of.made = kindToken + "/" + msg.token.ID
		return tea.Batch(f.host.Back(), showSecret(f.of.host, secret{
			title: "The token", about: "The token " + msg.token.Name + " is made.", value: msg.token.Token,
			more: "It ends: " + token.Expires(*msg.token) + ". It may: " + strings.Join(msg.token.Scopes, ", "),
		}))
	default:
		return f.take(msg, f.submit)
	}
	return nil
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
	name, expires := f.text(tokenName), f.text(tokenExpires)
	var scopes []string
	for _, scope := range f.scopes {
		if f.given[scope] {
			scopes = append(scopes, scope)
		}
	}
	switch {
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
	return tea.Batch(f.host.Say("making the token "+name+" …"), f.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		made, err := f.host.Client.Tokens().Create(ctx, write)
		return tokenMade{made}, err
	}))
}

func (f *tokenForm) Keys() []key.Binding { return f.keys("make it") }

func (f *tokenForm) View(width, height int) string { return f.view(width, height) }
