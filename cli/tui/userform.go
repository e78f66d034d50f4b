package tui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// userForm is where a user is made: a name, a password, what they may do, and which organizations and teams they are in.
type userForm struct {
	form

	of   *accounts
	read *userChoices
}

// userChoices is what a user can be given.
type userChoices struct {
	scopes []string
	orgs   []api.Org
	teams  []api.Team
}

// The lines of a userForm; behind them there is the one for what is given.
const (
	userName = iota
	userFullName
	userEmail
	userPassword
	userAgain
)

// Rows of the list, or what is before their names and ids.
const (
	givesAdmin = "admin"
	givesScope = "scope/"
	givesOrg   = "org/"
	givesTeam  = "team/"
)

func newUserForm(h *frame.Host, of *accounts) frame.Screen {
	return &userForm{of: of, form: newForm(h, true,
		line("Username  ", "what they log in with"), line("Name      ", "for people; may be left out"), line("E-mail    ", "may be left out"),
		secretLine("Password  ", "left empty: one is made up, and shown once"), secretLine("Again     ", "the same password"), line("Gets      ", "type to filter, space gives"))}
}

func (f *userForm) Title() string { return "Make a user" }

// Every implements frame.Reader.
func (f *userForm) Every() time.Duration { return 0 }

func (f *userForm) Read(ctx context.Context) (tea.Msg, error) {
	c := f.host.Client
	out := &userChoices{}
	var err error
	if out.scopes, err = c.TokenScopes(ctx); client.IsStatus(err, http.StatusForbidden) { // who has not logged in is not told what they may give
		out.scopes, err = api.Scopes(), nil
	}
	if err != nil {
		return nil, err
	}
	if out.orgs, err = readable(ctx, c.Orgs()); err != nil {
		return nil, err
	}
	out.teams, err = readable(ctx, c.Teams())
	slices.SortFunc(out.orgs, func(a, b api.Org) int { return strings.Compare(a.Slug, b.Slug) })
	slices.SortFunc(out.teams, func(a, b api.Team) int { return strings.Compare(a.Slug, b.Slug) })
	return out, err
}

// readable lists what there is, and nothing where the caller may not read it.
func readable[T, W any](ctx context.Context, m client.Model[T, W]) (all []T, err error) {
	for one, err := range m.All(ctx, client.Query{}) {
		if client.IsStatus(err, http.StatusForbidden) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// userMade is a user that was made, with the password if that was made up.
type userMade struct {
	user      *api.User
	generated string
}

func (f *userForm) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *userChoices:
		f.read = msg
		f.list.Set(f.sections()...)
	case userMade:
		f.wipe()
		f.of.made = kindUser + "/" + msg.user.ID
		back := f.host.Back()
		if msg.generated != "" {
			return tea.Batch(back, showSecret(f.of.host, secret{
				title: "The password", about: "The user " + msg.user.Username + " is made, with this password.", value: msg.generated,
			}))
		}
		return tea.Batch(back, f.of.host.Say("the user "+msg.user.Username+" is made"))
	default:
		return f.take(msg, f.submit)
	}
	return nil
}

// sections are what can be given.
func (f *userForm) sections() []widget.Section {
	section := func(title, column string) widget.Section {
		return widget.Section{Title: title, Columns: []widget.Column{{Name: column, Least: 12}, {Name: "NAME", Rank: 1, Least: 12}}}
	}
	row := func(s *widget.Section, id, text, name string) {
		s.Rows = append(s.Rows, widget.Row{ID: id, Cells: []widget.Cell{widget.Text(text), widget.Text(name)}, Marked: f.given[id]})
	}
	rights := section("Rights", "RIGHT")
	row(&rights, givesAdmin, "admin", "may do everything")
	for _, scope := range f.read.scopes {
		row(&rights, givesScope+scope, scope, "")
	}
	all := []widget.Section{rights}
	if len(f.read.orgs) > 0 {
		orgs := section("Organizations: who is in none sees all", "ORGANIZATION")
		for _, o := range f.read.orgs {
			row(&orgs, givesOrg+o.ID, o.Slug, o.Name)
		}
		all = append(all, orgs)
	}
	if len(f.read.teams) > 0 {
		teams := section("Teams", "TEAM")
		for _, t := range f.read.teams {
			row(&teams, givesTeam+t.ID, t.Slug, t.Name)
		}
		all = append(all, teams)
	}
	return all
}

// submit makes the user.
func (f *userForm) submit() tea.Cmd {
	username, name, email := f.text(userName), f.text(userFullName), f.text(userEmail)
	if username == "" {
		return f.host.Say("type a username")
	}
	password, generated, ok := f.password(userPassword, userAgain)
	if !ok {
		return nil
	}
	write := api.UserWrite{Username: &username, Password: &password}
	if name != "" {
		write.Name = &name
	}
	if email != "" {
		write.Email = &email
	}
	if f.given[givesAdmin] {
		write.IsAdmin = new(true)
	}
	for before, to := range map[string]**[]string{givesScope: &write.Scopes, givesOrg: &write.OrgIDs, givesTeam: &write.TeamIDs} {
		var all []string
		for id := range f.given {
			if given, ok := strings.CutPrefix(id, before); ok {
				all = append(all, given)
			}
		}
		if slices.Sort(all); len(all) > 0 {
			*to = &all
		}
	}
	f.asked = true
	return tea.Batch(f.host.Say("making the user "+username+" …"), f.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		made, err := f.host.Client.Users().Create(ctx, write)
		return userMade{made, generated}, err
	}))
}

func (f *userForm) Keys() []key.Binding { return f.keys("make them") }

func (f *userForm) View(width, height int) string { return f.view(width, height) }
