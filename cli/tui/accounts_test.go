package tui_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

const tokenValue = "svc_pat_65f0c2a1b3d4e5f607182940_b0eUa3-secret_Zq8Xw1Vt7Ys5Rr3Pn2Mm9Ll4Kk6Jj0Hh"

// giveAccounts answers what is asked of tokens and users.
func (s *service) giveAccounts(give func(pattern string, fn func(r *http.Request) any)) {
	give("GET /token", func(*http.Request) any { return api.List[api.Token]{Items: s.tokens} })
	give("GET /token/_scopes", func(*http.Request) any { return s.scopes })
	give("POST /token", func(r *http.Request) any {
		var body api.TokenWrite
		_ = json.NewDecoder(r.Body).Decode(&body) // it is the client's
		made := api.Token{ID: "65f0c2a1b3d4e5f607182940", UserID: "u1", Name: *body.Name, Scopes: *body.Scopes, CreatedAt: ago(0)}
		if body.ExpiresAt != nil {
			made.ExpiresAt = *body.ExpiresAt
		}
		s.tokens = append(s.tokens, made)
		made.Token = tokenValue
		return made
	})
	give("DELETE /token/{id}", func(r *http.Request) any {
		s.tokens = slices.DeleteFunc(s.tokens, func(t api.Token) bool { return t.ID == r.PathValue("id") })
		return api.DeleteResult{}
	})
	give("GET /user", func(*http.Request) any { return api.List[api.User]{Items: s.users} })
	give("POST /user", func(r *http.Request) any {
		s.user = api.UserWrite{}
		_ = json.NewDecoder(r.Body).Decode(&s.user) // it is the client's
		made := api.User{ID: "u9", Username: *s.user.Username, Active: true}
		s.users = append(s.users, made)
		return made
	})
	give("PUT /user/{id}", func(r *http.Request) any {
		s.user = api.UserWrite{}
		_ = json.NewDecoder(r.Body).Decode(&s.user) // it is the client's
		for i := range s.users {
			if s.users[i].ID == r.PathValue("id") && s.user.Active != nil {
				s.users[i].Active = *s.user.Active
			}
		}
		return api.User{}
	})
	give("GET /org", func(*http.Request) any { return api.List[api.Org]{Items: s.orgs} })
	give("GET /team", func(*http.Request) any { return api.List[api.Team]{Items: s.teams} })
	give("DELETE /user/{id}", func(r *http.Request) any {
		s.users = slices.DeleteFunc(s.users, func(u api.User) bool { return u.ID == r.PathValue("id") })
		return api.DeleteResult{}
	})
}

func sampleTokens() []api.Token {
	return []api.Token{
		{ID: "65f0c2a1b3d4e5f607182930", UserID: "u1", Name: "deploy", Scopes: []string{"project.read", "project.reload"}, ExpiresAt: ago(-90 * 24 * time.Hour), LastUsedAt: ago(5 * time.Minute), CreatedAt: ago(time.Hour)},
		{ID: "65f0c2a1b3d4e5f607182931", UserID: "u2", Name: "old", Scopes: []string{"namespace.blog"}, ExpiresAt: ago(24 * time.Hour), CreatedAt: ago(1000 * time.Hour)},
	}
}

func sampleUsers() []api.User {
	return []api.User{
		{ID: "u1", Username: "ann", Name: "Ann Lee", Email: "ann@mail.example", IsAdmin: true, Active: true, LastLoginAt: ago(time.Hour), CreatedAt: ago(2000 * time.Hour)},
		{ID: "u2", Username: "ci", Active: true, Scopes: []string{"project.read", "project.reload"}},
		{ID: "u3", Username: "old", Active: false},
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 30)
		term.Press("8")
		term.shows(t, "Projects › Tokens and users\n", "Personal access tokens", "▸ deploy", "2000-03-31", "5m", "ann", "project.read, project.reload", "old", "expired 1999-12-31", "never", "ci", "Users", "ann", "admin", "60m", "Ann Lee", "old", "no")
		term.Press("enter")
		term.shows(t, "Token deploy", "Value      it was shown when it was made, and never again")
		term.Press("y")
		term.shows(t, "name: deploy\n")
		term.Press("esc", "ctrl+d")
		term.shows(t, "Revoke a token\n", "Revoke the token deploy (65f0c2a1b3d4e5f607182930) of ann.", "It was last used 5m ago.", "Type deploy to revoke.")
		term.Type("ci")
		term.Press("enter")
		term.shows(t, "type deploy to revoke, esc goes back")
		term.Press("backspace", "backspace")
		term.Type("deploy")
		term.Press("enter")
		term.shows(t, "the token deploy is revoked")
		term.hides(t, "▸ deploy")
		term.Press("tab")
		term.shows(t, "▸ ann")
		term.Press("down", "x")
		term.shows(t, "Disable a user\n", "Disable the user ci: they can't log in any more.", "Type ci to disable.")
		term.Type("ci")
		term.Press("enter")
		term.shows(t, "▸ ci", "no", "ci can't log in any more; their logins and personal access tokens have ended")
		term.Press("x")
		term.shows(t, "May ci log in again?")
		term.Press("y")
		term.shows(t, "▸ ci", "yes", "ci may log in again")
		term.Press("ctrl+d")
		term.shows(t, "Delete the user ci with all their logins", "Type ci to delete.")
		term.Type("ci")
		term.Press("enter")
		term.shows(t, "the user ci is deleted")
		want := "DELETE /token/65f0c2a1b3d4e5f607182930\nPUT /user/u2\nPUT /user/u2\nDELETE /user/u2"
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
	})
}

// TestTokenIsShownOnce: when its screen was left, the value is nowhere in the program.
func TestTokenIsShownOnce(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("8", "c", "enter")
		term.shows(t, "Make a token\n", "type a name")
		term.Type("ci q?:1")
		term.Press("enter")
		term.shows(t, "what may it do?")
		term.Press("tab")
		term.Type("30x")
		term.Press("tab")
		term.Type("rel")
		term.Press(" ", "enter")
		term.shows(t, "error: when does it end? 30x is no time")
		term.Press("tab", "tab", "backspace")
		term.Type("d")
		term.Press("enter")
		term.shows(t, "Tokens and users › The token\n", "The token ci q?:1 is made. Keep it now", tokenValue, "It ends: 2000-01-31. It may: project.reload")
		if got := term.requests(); got != "POST /token" {
			t.Errorf("it asks %s", got)
		}
		term.Press("q", "1", ":", "?") // none of which leaves it
		term.shows(t, tokenValue)
		term.Resize(40, 20)
		if view := strings.ReplaceAll(term.View(), "\n", ""); !strings.Contains(strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(view), tokenValue) {
			t.Errorf("a narrow terminal cuts it: %s", term.View())
		}
		term.Resize(80, 24)
		if !holds(reflect.ValueOf(term.Model()), tokenValue, map[uintptr]bool{}) {
			t.Error("the test does not find what is there")
		}
		term.Press("enter") // as who has pressed it twice
		term.shows(t, tokenValue)
		term.Press("esc")
		term.shows(t, "ci q?:1")
		if holds(reflect.ValueOf(term.Model()), tokenValue, map[uintptr]bool{}) {
			t.Error("the program still has the value")
		}
		for _, keys := range [][]string{{"end", "enter", "y"}, {"esc", ":"}, {"esc", "?"}, {"esc", "1", "8"}} {
			term.Press(keys...)
			term.hides(t, tokenValue, "secret")
		}
	})
}

// holds says whether a text is anywhere in what a value leads to.
func holds(v reflect.Value, text string, seen map[uintptr]bool) bool {
	switch v.Kind() {
	case reflect.String:
		return strings.Contains(v.String(), text)
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return false
		}
		seen[v.Pointer()] = true
		return holds(v.Elem(), text, seen)
	case reflect.Interface:
		return !v.IsNil() && holds(v.Elem(), text, seen)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holds(v.Index(i), text, seen) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if holds(key, text, seen) || holds(v.MapIndex(key), text, seen) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if holds(v.Field(i), text, seen) {
				return true
			}
		}
	}
	return false
}

// TestAccountsOfOthers: what it takes to see and to do something is said.
func TestAccountsOfOthers(t *testing.T) {
	t.Parallel()
	denied := api.Problem{Status: 403, Code: "permission_denied", Detail: "permission denied"}
	s := sample()
	s.me = &api.Me{Kind: "pat", ID: "u2", Username: "ci", Scopes: []string{"user.read"}}
	s.fail = map[string]api.Problem{"/token": denied}
	inTerminal(t, s, "", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("8")
		term.shows(t, "you may not see them: that takes a login", "Users", "▸ ann")
		term.hides(t, "make a token", "disable", "ctrl+d")
		for key, said := range map[string]string{"c": "a token takes a login", "x": "you lack the right user.update", "ctrl+d": "you lack the right user.delete"} {
			term.Press(key)
			term.shows(t, said)
		}
		term.Press("?")
		term.shows(t, "make a token, when you have logged in", "delete, when you have the right user.delete", "disable, when you have the right user.update")
		term.Press("esc")
		term.change(func() { term.fail["/user"] = denied })
		term.Wait(6 * time.Second)
		term.shows(t, "you may not see them: that takes the right user.read")
		if got := term.requests(); got != "" {
			t.Errorf("it asks %s", got)
		}
	})
}
