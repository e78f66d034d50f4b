package tui

import (
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

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
	return []key.Binding{
		frame.When(tok != nil || user != nil, "enter", "details", onEither), frame.When(a.login(), "c", "make a token", "you have logged in"),
		a.host.Allowed(rightToMakeUsers, "u", "make a user"), a.host.AllowedWhen(right, tok != nil || user != nil, "ctrl+d", does, onEither),
		a.host.AllowedWhen(rightToChangeUsers, user != nil, "x", active, onUser), a.host.AllowedWhen(rightToChangeUsers, user != nil, "P", "password", onUser),
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
	users := widget.Section{Title: "Users", None: "none that you may see: u makes one", Columns: []widget.Column{
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
