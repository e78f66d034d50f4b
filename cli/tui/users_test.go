package tui_test

import (
	"reflect"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

const typedPassword = "hunter2-hunter3"

// unseen fails where a text is on the screen.
func (term terminal) unseen(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(term.View(), text) {
			t.Errorf("%s is on the screen:\n%s", text, term.View())
		}
	}
}

// written is how a user was written last, which the service forgets.
func (term terminal) written() (write api.UserWrite) {
	term.change(func() { write, term.user = term.user, api.UserWrite{} })
	return write
}

// TestMakeUser gives a user a name, a password, and what svcctl user create can give.
func TestMakeUser(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("8", "u", "enter")
		term.shows(t, "Tokens and users › Make a user\n", "Username", "what they log in with", "Gets", "0 given", "Rights", "admin", "may do everything", "Organizations", "acme", "type a username")
		term.Type("ben q?:1")
		term.Press("tab")
		term.Type("Ben")
		term.Press("tab", "tab")
		for i, r := range typedPassword {
			term.Type(string(r))
			term.unseen(t, typedPassword[:max(i+1, 4)])
			term.shows(t, strings.Repeat("•", i+1))
		}
		term.Press("tab")
		term.Type("hunter")
		term.Press("enter")
		term.shows(t, "error: the two passwords differ", "hint: type the same one twice")
		if got := term.requests(); got != "" {
			t.Errorf("it asks %s", got)
		}
		term.Press("esc") // of the error
		term.Send(tea.PasteMsg{Content: "2-hunter3\n"})
		term.Press("tab")
		term.Type("reload")
		term.Press(" ", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace")
		term.Type("edit")
		term.Press(" ")
		term.shows(t, "2 given")
		term.Press("enter")
		term.shows(t, "Projects › Tokens and users\n", "▸ ben q?:1", "the user ben q?:1 is made")
		term.unseen(t, typedPassword)
		written := term.written()
		if holds(reflect.ValueOf(term.Model()), typedPassword, map[uintptr]bool{}) {
			t.Error("the program still has the password")
		}
		want := api.UserWrite{Username: new("ben q?:1"), Name: new("Ben"), Password: new(typedPassword), Scopes: &[]string{"project.reload"}, TeamIDs: &[]string{"t2"}}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Error(diff)
		}
		if got := term.requests(); got != "POST /user" {
			t.Errorf("it asks %s", got)
		}
	})
}

// TestPasswordThatIsMadeUp is shown once.
func TestPasswordThatIsMadeUp(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("8", "u")
		term.Type("ben")
		term.change(func() {
			term.fail = map[string]api.Problem{"/user": {Status: 409, Code: "conflict", Detail: "there is a user ben already"}}
		})
		term.Press("enter")
		term.shows(t, "Make a user\n", "error: there is a user ben already")
		term.change(func() { term.fail = nil })
		term.Press("tab", "tab", "tab", "tab", "tab", " ", "down", "enter")
		written := term.written()
		made := *written.Password
		if len(made) != 20 || !*written.IsAdmin {
			t.Errorf("it was %s, %v", made, written.IsAdmin)
		}
		if !holds(reflect.ValueOf(term.Model()), made, map[uintptr]bool{}) {
			t.Error("the test does not find what is there")
		}
		term.shows(t, "Tokens and users › The password\n", "The user ben is made, with this password. Keep it now", made)
		term.Press("q", "1", ":")
		term.shows(t, made)
		term.Press("enter", "esc")
		term.shows(t, "▸ ben")
		term.unseen(t, made)
		if holds(reflect.ValueOf(term.Model()), made, map[uintptr]bool{}) {
			t.Error("the program still has the password")
		}
	})
}

// TestSetPassword gives a user another password.
func TestSetPassword(t *testing.T) {
	t.Parallel()
	s := sample()
	s.me = &api.Me{Kind: "user", ID: "u1", Username: "ann", IsAdmin: true}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("8", "P")
		term.shows(t, "move to a user first")
		term.Press("tab", "P")
		term.shows(t, "Password of ann\n", "this one, too: svcctl login begins another")
		term.Press("esc", "down", "P")
		term.shows(t, "Password of ci\n", "Give the user ci another password. Their logins and personal access tokens end.")
		term.Type(typedPassword)
		term.Press("tab")
		term.Type(typedPassword)
		term.unseen(t, typedPassword)
		term.change(func() {
			term.fail = map[string]api.Problem{"/user/u2": {Status: 422, Detail: "the password is too short"}}
		})
		term.Press("enter")
		term.shows(t, "Password of ci\n", "error: the password is too short")
		term.change(func() { term.fail = nil })
		term.Press("enter")
		term.shows(t, "▸ ci", "The password of ci is changed")
		term.unseen(t, typedPassword)
		written := term.written()
		if holds(reflect.ValueOf(term.Model()), typedPassword, map[uintptr]bool{}) {
			t.Error("the program still has the password")
		}
		if diff := cmp.Diff(api.UserWrite{Password: new(typedPassword)}, written); diff != "" {
			t.Error(diff)
		}
		term.Press("P", "enter") // one that is made up
		term.shows(t, "The password\n", "The password of ci is changed", *term.user.Password)
		if got, want := term.requests(), "PUT /user/u2\nPUT /user/u2\nPUT /user/u2"; got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
	})
}

// TestUsersWithoutRights: what takes a right is not offered, and said.
func TestUsersWithoutRights(t *testing.T) {
	t.Parallel()
	s := sample()
	s.me = &api.Me{Kind: "user", ID: "u2", Username: "ci", Scopes: []string{"user.read"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(160, 40)
		term.Press("8", "tab", "u")
		term.hides(t, "u make a user", "P password")
		term.shows(t, "you lack the right user.create")
		term.Press("P")
		term.shows(t, "you lack the right user.update; svcctl user passwd changes your own password")
		term.Press("?")
		term.shows(t, "make a user, when you have the right user.create", "password, when you have the right user.update")
	})
	// Who has not logged in is not told which rights they may give, and may read no teams: there are those that there are.
	s = sample()
	denied := api.Problem{Status: 403, Code: "permission_denied", Detail: "permission denied"}
	s.fail = map[string]api.Problem{"/token/_scopes": denied, "/org": denied, "/team": denied}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("8", "u")
		term.shows(t, "Rights", "admin", api.Scopes()[0])
		term.hides(t, "Teams", "Organizations", "error")
	})
}
