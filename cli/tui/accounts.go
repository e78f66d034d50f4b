package tui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// The kinds of rows of accounts, before their ids.
const (
	kindToken = "token"
	kindUser  = "user"
)

// Rights that it takes.
const (
	rightToMakeUsers   = "user.create"
	rightToChangeUsers = "user.update"
)

// accounts shows the personal access tokens and the users that the user may see. It makes both, revokes tokens, gives users other passwords,
// disables and deletes them.
type accounts struct {
	table

	read *accountsRead // nil: not yet
	made string        // id of the row of what was made, to which the cursor goes when it is there
}

// accountsRead is what the service says of tokens and users.
type accountsRead struct {
	tokens   []api.Token
	users    []api.User
	noTokens bool // who asks may not see them
	noUsers  bool
}

func (r *accountsRead) token(id string) *api.Token {
	return first(r.tokens, func(t *api.Token) bool { return t.ID == id })
}

func (r *accountsRead) user(id string) *api.User {
	return first(r.users, func(u *api.User) bool { return u.ID == id })
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
		a.list.Select(a.made)
		a.made = ""
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
	case "u":
		if !a.host.May(rightToMakeUsers) {
			return a.host.Lack(rightToMakeUsers)
		}
		return a.host.Push(func(h *frame.Host) frame.Screen { return newUserForm(h, a) })
	case "x", "P":
		switch {
		case user == nil:
			return a.host.Say("move to a user first")
		case pressed == "x":
			return a.askActive(user)
		case !a.host.May(rightToChangeUsers):
			return a.host.Say("you lack the right " + rightToChangeUsers + "; svcctl user passwd changes your own password")
		}
		return a.host.Push(func(h *frame.Host) frame.Screen { return newPasswordForm(h, a, *user) })
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
		return a.host.Lack("user.delete")
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
	if !a.host.May(rightToChangeUsers) {
		return a.host.Lack(rightToChangeUsers)
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
