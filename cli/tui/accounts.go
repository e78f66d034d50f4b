package tui

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// The kinds of rows of accounts, before their ids.
const (
	kindToken = "token"
	kindUser  = "user"
)

// accounts shows the personal access tokens and the users that the user may see. It makes and revokes tokens, disables users and deletes them.
type accounts struct {
	table

	read *accountsRead // nil: not yet
}

// accountsRead is what the service says of tokens and users.
type accountsRead struct {
	tokens   []api.Token
	users    []api.User
	noTokens bool // who asks may not see them
	noUsers  bool
}

func (r *accountsRead) token(id string) *api.Token {
	for i := range r.tokens {
		if r.tokens[i].ID == id {
			return &r.tokens[i]
		}
	}
	return nil
}

func (r *accountsRead) user(id string) *api.User {
	for i := range r.users {
		if r.users[i].ID == id {
			return &r.users[i]
		}
	}
	return nil
}

func newAccounts(h *frame.Host, _ frame.Place) frame.Screen {
	a := &accounts{table: table{host: h}}
	a.value = func(id string) any {
		kind, id, _ := strings.Cut(id, "/")
		if one := a.read.token(id); kind == kindToken && one != nil {
			return one
		}
		if one := a.read.user(id); kind == kindUser && one != nil {
			return one
		}
		return nil
	}
	return a
}

func (a *accounts) Title() string { return "Tokens and users" }

func (a *accounts) Every() time.Duration { return 5 * time.Second }

func (a *accounts) Read(ctx context.Context) (tea.Msg, error) {
	out := &accountsRead{}
	for one, err := range a.host.Client.Tokens().All(ctx, client.Query{}) {
		if client.IsStatus(err, http.StatusForbidden) {
			out.noTokens = true
			break
		}
		if err != nil {
			return nil, err
		}
		out.tokens = append(out.tokens, one)
	}
	for one, err := range a.host.Client.Users().All(ctx, client.Query{}) {
		if client.IsStatus(err, http.StatusForbidden) {
			out.noUsers = true
			break
		}
		if err != nil {
			return nil, err
		}
		out.users = append(out.users, one)
	}
	slices.SortFunc(out.users, func(a, b api.User) int { return strings.Compare(a.Username, b.Username) })
	return out, nil
}

func (a *accounts) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *accountsRead:
		a.read = msg
		a.list.Set(a.sections()...)
	case tea.KeyPressMsg:
		return a.press(msg.String())
	}
	return nil
}

// selected is what the row with the cursor is about; both are nil where there is none.
func (a *accounts) selected() (*api.Token, *api.User) {
	if a.read == nil {
		return nil, nil
	}
	kind, id, _ := strings.Cut(a.list.Selected(), "/")
	if kind == kindToken {
		return a.read.token(id), nil
	}
	return nil, a.read.user(id)
}

func (a *accounts) press(pressed string) tea.Cmd {
	if a.key(pressed) || a.of != "" {
		return nil
	}
	tok, user := a.selected()
	switch pressed {
	case "enter":
		if a.list.Selected() != "" {
			a.open()
		}
	case "tab":
		a.list.SelectSection()
	case "c":
		if !a.login() {
			return a.host.Say("a token takes a login: svcctl login; another credential can't make one")
		}
		return a.host.Push(func(h *frame.Host) frame.Screen { return newTokenForm(h, a) })
	case "ctrl+d":
		switch {
		case tok != nil:
			return a.askRevoke(tok)
		case user != nil:
			return a.askDelete(user)
		}
	case "x":
		if user != nil {
			return a.askActive(user)
		}
		return a.host.Say("move to a user first")
	}
	return nil
}

// login says whether the user has logged in, as far as that is known.
func (a *accounts) login() bool { me := a.host.Me(); return me == nil || me.Kind == "user" }

// wordOf is what is typed to confirm something about a thing: its name, or where that can't be typed its id.
func wordOf(name, id string) string {
	if name == "" || output.Escape(name) != name || strings.TrimSpace(name) != name {
		return id
	}
	return name
}

func (a *accounts) askRevoke(t *api.Token) tea.Cmd {
	id, word := t.ID, wordOf(t.Name, t.ID)
	lines := []string{"Revoke the token " + t.Name + " (" + t.ID + ") of " + a.owner(t) + ".", "Whoever uses it is refused from then on. It does not come back."}
	if used := output.Age(a.host.Now(), t.LastUsedAt.Time); used != "" {
		lines = append(lines, "It was last used "+used+" ago.")
	}
	return confirmTyped(a.host, typedQuestion{title: "Revoke a token", lines: lines, word: word, does: "revoke", act: func() tea.Cmd {
		return a.host.Act("revoking "+word, func(ctx context.Context) (string, error) {
			_, err := a.host.Client.Tokens().Delete(ctx, id)
			return "the token " + word + " is revoked", err
		})
	}})
}

func (a *accounts) askDelete(u *api.User) tea.Cmd {
	if !a.host.May("user.delete") {
		return a.host.Say("you lack the right user.delete")
	}
	id, word := u.ID, wordOf(u.Username, u.ID)
	lines := []string{"Delete the user " + u.Username + " with all their logins and personal access tokens.", "They don't come back; x only keeps a user from logging in."}
	return confirmTyped(a.host, typedQuestion{title: "Delete a user", lines: lines, word: word, does: "delete", act: func() tea.Cmd {
		return a.host.Act("deleting "+word, func(ctx context.Context) (string, error) {
			_, err := a.host.Client.Users().Delete(ctx, id)
			return "the user " + word + " is deleted", err
		})
	}})
}

// askActive asks whether a user is to be disabled, or may log in again.
func (a *accounts) askActive(u *api.User) tea.Cmd {
	if !a.host.May("user.update") {
		return a.host.Say("you lack the right user.update")
	}
	id, word, active := u.ID, wordOf(u.Username, u.ID), !u.Active
	doing, done := "disabling ", " can't log in any more; their logins and personal access tokens have ended"
	if active {
		doing, done = "enabling ", " may log in again"
	}
	act := func() tea.Cmd {
		return a.host.Act(doing+word, func(ctx context.Context) (string, error) {
			_, err := a.host.Client.Users().Update(ctx, id, api.UserWrite{Active: &active})
			return word + done, err
		})
	}
	if active {
		a.host.Confirm("May "+u.Username+" log in again? What they had of logins and tokens stays ended.", act)
		return nil
	}
	lines := []string{"Disable the user " + u.Username + ": they can't log in any more.", "Their logins and personal access tokens end, and don't come back."}
	return confirmTyped(a.host, typedQuestion{title: "Disable a user", lines: lines, word: word, does: "disable", act: act})
}

func (a *accounts) Keys() []key.Binding {
	if a.of != "" {
		return a.pageKeys()
	}
	tok, user := a.selected()
	const onUser, onEither = "the cursor is on a user", "the cursor is on a token or a user"
	active := "disable"
	if user != nil && !user.Active {
		active = "enable"
	}
	does, right := "revoke", ""
	if user != nil {
		does, right = "delete", "user.delete"
	}
	needs := func(right, shown, does string, there bool, when string) key.Binding {
		if !a.host.May(right) {
			return a.host.Allowed(right, shown, does)
		}
		return frame.When(there, shown, does, when)
	}
	return []key.Binding{
		frame.When(tok != nil || user != nil, "enter", "details", onEither), frame.When(a.login(), "c", "make a token", "you have logged in"),
		needs(right, "ctrl+d", does, tok != nil || user != nil, onEither), needs("user.update", "x", active, user != nil, onUser),
		frame.When(tok != nil || user != nil, "tab", "the other list", onEither), frame.When(tok != nil || user != nil, "y", "YAML", onEither),
	}
}

func (a *accounts) View(width, height int) string { return a.view(width, height, a.doc) }

func (a *accounts) sections() []widget.Section {
	now := a.host.Now()
	tokens := widget.Section{Title: "Personal access tokens", None: "none: c makes one", Columns: []widget.Column{
		{Name: "NAME", Least: 10}, {Name: "EXPIRES"}, {Name: "LAST USED", Right: true, Rank: 1}, {Name: "OF", Rank: 2, Least: 6}, {Name: "SCOPES", Rank: 3, Least: 12}, {Name: "ID", Rank: 4},
	}}
	if a.read.noTokens {
		tokens.None = a.host.Reach("you may not see them: that takes a login (svcctl login), not another credential")
	}
	for i := range a.read.tokens {
		t := &a.read.tokens[i]
		tokens.Rows = append(tokens.Rows, widget.Row{ID: kindToken + "/" + t.ID, Cells: []widget.Cell{
			widget.Text(t.Name), expiryOf(t, now), widget.Text(ageOr(now, t.LastUsedAt, "never")), widget.Text(a.owner(t)), widget.Text(strings.Join(t.Scopes, ", ")), widget.Text(t.ID),
		}})
	}
	users := widget.Section{Title: "Users", None: a.host.Reach("none that you may see: svcctl user create makes one"), Columns: []widget.Column{
		{Name: "USERNAME", Least: 10}, {Name: "ACTIVE"}, {Name: "ADMIN", Rank: 1}, {Name: "LAST LOGIN", Right: true, Rank: 2}, {Name: "NAME", Rank: 3, Least: 8}, {Name: "SCOPES", Rank: 4, Least: 12}, {Name: "EMAIL", Rank: 5, Least: 12},
	}}
	if a.read.noUsers {
		users.None = "you may not see them: that takes the right user.read"
	}
	for i := range a.read.users {
		u := &a.read.users[i]
		active := widget.Text("yes")
		if !u.Active {
			active = widget.Cell{Text: "no", Tone: output.ToneBad}
		}
		admin := ""
		if u.IsAdmin {
			admin = "admin"
		}
		users.Rows = append(users.Rows, widget.Row{ID: kindUser + "/" + u.ID, Cells: []widget.Cell{
			widget.Text(u.Username), active, widget.Text(admin), widget.Text(ageOr(now, u.LastLoginAt, "never")), widget.Text(u.Name), widget.Text(strings.Join(u.Scopes, ", ")), widget.Text(u.Email),
		}})
	}
	return []widget.Section{tokens, users}
}

// owner is whose a token is, by the name if that may be known.
func (a *accounts) owner(t *api.Token) string {
	if u := a.read.user(t.UserID); u != nil {
		return u.Username
	}
	if me := a.host.Me(); me != nil && me.ID == t.UserID {
		return me.Username
	}
	return t.UserID
}

// expiryOf says when a token ends, or that it has.
func expiryOf(t *api.Token, now time.Time) widget.Cell {
	text := token.Expires(*t)
	switch {
	case t.ExpiresAt.IsZero():
		return widget.Cell{Text: text, Tone: output.ToneWarn}
	case !t.ExpiresAt.After(now):
		return widget.Cell{Text: "expired " + text, Tone: output.ToneBad}
	}
	return widget.Text(text)
}

// ageOr is how long ago something was, or a word where it never was.
func ageOr(now time.Time, at api.Time, never string) string {
	if at.IsZero() {
		return never
	}
	return output.Age(now, at.Time)
}

// doc is the page about a row.
func (a *accounts) doc(id string) (d widget.Doc, ok bool) {
	kind, id, _ := strings.Cut(id, "/")
	now := a.host.Now()
	if t := a.read.token(id); kind == kindToken && t != nil {
		d.Heading("Token " + t.Name)
		d.Field("ID", t.ID)
		d.Field("Of", a.owner(t))
		expiry := expiryOf(t, now)
		d.State("Expires", expiry.Text, expiry.Tone)
		d.Field("Last used", ageOr(now, t.LastUsedAt, "never"))
		d.Field("Made", when(t.CreatedAt))
		d.Field("Scopes", strings.Join(t.Scopes, ", "))
		d.Field("Value", "it was shown when it was made, and never again")
		return d, true
	}
	u := a.read.user(id)
	if kind != kindUser || u == nil {
		return d, false
	}
	d.Heading("User " + u.Username)
	d.Field("ID", u.ID)
	d.Field("Name", u.Name)
	d.Field("E-mail", u.Email)
	d.Field("Language", u.Language)
	d.State("Active", strconv.FormatBool(u.Active), toneIf(!u.Active, output.ToneBad))
	d.Field("Administrator", strconv.FormatBool(u.IsAdmin))
	d.Field("Last login", ageOr(now, u.LastLoginAt, "never"))
	d.Field("Made", when(u.CreatedAt))
	d.Field("Changed", when(u.UpdatedAt))
	d.Field("Scopes", strings.Join(u.Scopes, ", "))
	d.Field("Organizations", strings.Join(u.OrgIDs, ", "))
	d.Field("Teams", strings.Join(u.TeamIDs, ", "))
	return d, true
}
