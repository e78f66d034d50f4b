package system_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/system"
)

var errCut = errors.New("the power went")

// everything is what the store holds of the system models and of their log.
func (f *fixture) everything() string {
	f.Helper()
	var out strings.Builder
	for _, name := range []string{"users", "orgs", "teams", "projects", "tokens", "secrets", "svc.audit"} {
		err := f.store.Store.Database(system.DatabaseName).Collection(name).Find(f.Context(), store.Query{}, func(doc bson.Raw) error {
			out.WriteString(name + " " + doc.String() + "\n")
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	return out.String()
}

// trail is the log, oldest first: what was done to what; - and + for a state before and after.
func (f *fixture) trail() (lines []string, entries []audit.Entry) {
	f.Helper()
	logs := audit.New(audit.Options{Store: f.store.Store, Now: f.clock.Now, SystemDatabase: system.DatabaseName})
	limit := int64(1000)
	page, err := logs.System().List(f.Context(), query.Params{Sort: "id", Limit: &limit}, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range page.Items {
		line := e.Op + " " + e.Collection
		if e.Before != nil {
			line += " -"
		}
		if e.After != nil {
			line += " +"
		}
		lines = append(lines, line)
	}
	return lines, page.Items
}

// TestEachWriteHasItsEntry does every kind of write. The power goes in the midst of each, at each of its writes to the
// store in turn, and nothing of it is there; then it is done, and has exactly the entries that belong to it.
func TestEachWriteHasItsEntry(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	var ann, bob, root system.User
	var org system.Org
	var team system.Team
	var project system.Project
	var tok system.Token
	resolve := func(context.Context, string) (string, error) { return "blog", nil }
	if _, err := f.Secrets.SigningKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tokens.HashOf(ctx, ""); err != nil { // its key is made with the first one
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		want []string // the entries: op, model, and the states that it has
		do   func() error
	}{
		{"first administrator", []string{"create users +"}, func() error {
			made, err := f.Users.CreateFirst(ctx, "root", "correct-horse")
			if err == nil && !made {
				return errors.New("not made")
			}
			if err == nil {
				root, err = f.Users.ByUsername(ctx, "root")
			}
			return err
		}},
		{"no second first administrator", nil, func() error { return second(f.Users.CreateFirst(ctx, "root2", "correct-horse")) }},
		{"create a user", []string{"create users +"}, func() (err error) {
			ann, err = f.Users.Create(ctx, admin, body(t, `{"username": "ann", "password": "correct-horse"}`))
			return err
		}},
		{"create an administrator", []string{"create users +"}, func() (err error) {
			bob, err = f.Users.Create(ctx, admin, body(t, `{"username": "bob", "password": "correct-horse", "isAdmin": true}`))
			return err
		}},
		{"login", []string{"login users"}, func() error { return second(f.Users.LoggedIn(ctx, ann, "")) }},
		{"failed login", []string{"login_failed users"}, func() error { return f.LoginFailed(ctx, ann.ID) }},
		{"update a user", []string{"update users - +"}, func() error {
			return second(f.Users.Update(ctx, admin, ann.ID.Hex(), body(t, `{"name": "Ann"}`)))
		}},
		{"create a token", []string{"create tokens +"}, func() (err error) { tok, err = f.newToken(f.reload(ann)); return err }},
		{"update a token", []string{"update tokens - +"}, func() error {
			return second(f.Tokens.Update(ctx, userPrincipal(ann), tok.ID.Hex(), body(t, `{"name": "b"}`), grantable))
		}},
		{"logout", []string{"logout users"}, func() error { return f.Users.RevokeTokens(ctx, ann.ID, false) }},
		{"delete a token", []string{"delete tokens -"}, func() error {
			return f.Tokens.Delete(ctx, userPrincipal(ann), tok.ID.Hex())
		}},
		{"a token", []string{"create tokens +"}, func() error { return second(f.newToken(f.reload(ann))) }},
		{"another", []string{"create tokens +"}, func() error { return second(f.newToken(f.reload(ann))) }},
		{"logout of everything", []string{"logout users", "delete tokens -", "delete tokens -"}, func() error { return f.Users.RevokeTokens(ctx, ann.ID, true) }},
		{"one more", []string{"create tokens +"}, func() error { return second(f.newToken(f.reload(ann))) }},
		{"password", []string{"password users", "delete tokens -"}, func() error { return second(f.Users.SetPassword(ctx, f.reload(ann), "other-horse")) }},
		{"again", []string{"create tokens +"}, func() error { return second(f.newToken(f.reload(ann))) }},
		{"deactivate", []string{"update users - +", "delete tokens -"}, func() error {
			return second(f.Users.Update(ctx, admin, ann.ID.Hex(), body(t, `{"active": false}`)))
		}},
		{"bob's", []string{"create tokens +"}, func() error { return second(f.newToken(bob)) }},
		{"delete an administrator", []string{"delete users -", "delete tokens -"}, func() error { return f.Users.Delete(ctx, admin, bob.ID.Hex()) }},
		{"delete the last one", nil, func() error { return wrong(f.Users.Delete(ctx, admin, root.ID.Hex()), system.ErrLastAdmin) }},
		{"create an org", []string{"create orgs +"}, func() (err error) {
			org, err = f.Orgs.Create(ctx, admin, body(t, `{"name": "Acme"}`))
			return err
		}},
		{"update an org", []string{"update orgs - +"}, func() error {
			return second(f.Orgs.Update(ctx, admin, org.ID.Hex(), body(t, `{"active": false}`)))
		}},
		{"create a team", []string{"create teams +"}, func() (err error) {
			team, err = f.Teams.Create(ctx, admin, body(t, `{"name": "Press"}`))
			return err
		}},
		{"update a team", []string{"update teams - +"}, func() error {
			return second(f.Teams.Update(ctx, admin, team.ID.Hex(), body(t, `{"scopes": ["user.read"]}`)))
		}},
		{"delete a team", []string{"delete teams -"}, func() error { return f.Teams.Delete(ctx, admin, team.ID.Hex()) }},
		{"delete an org", []string{"delete orgs -"}, func() error { return f.Orgs.Delete(ctx, admin, org.ID.Hex()) }},
		{"register", []string{"create projects +"}, func() (err error) {
			project, err = f.Projects.Create(ctx, body(t, `{"configFile": "a.yaml"}`), resolve)
			return err
		}},
		{"update a project", []string{"update projects - +"}, func() error {
			return second(f.Projects.Update(ctx, project.ID.Hex(), body(t, `{"enabled": false}`), resolve))
		}},
		{"reload", []string{"reload projects"}, func() error { return f.Reloaded(ctx, project.ID.Hex(), "blog") }},
		{"unregister", []string{"delete projects -"}, func() error { return second(f.Projects.Delete(ctx, project.ID.Hex())) }},
		{"rotate keys", []string{"rotate-keys "}, func() error { return second(f.Secrets.Rotate(ctx, 0)) }},
		{"a key from the settings", []string{"rotate-keys "}, func() error { return second(f.Secrets.Adopt(ctx, []byte(strings.Repeat("k", 32)), 0)) }},
		{"the same key", nil, func() error { return second(f.Secrets.Adopt(ctx, []byte(strings.Repeat("k", 32)), 0)) }},
		{"shutdown", []string{"shutdown "}, func() error { return f.ShutDown(ctx) }},
		{"refused", nil, func() error {
			if err := second(f.Users.Create(ctx, admin, body(t, `{"username": "ROOT", "password": "correct-horse"}`))); errs.KindOf(err) != errs.Conflict {
				return fmt.Errorf("a taken name: %w", err)
			}
			return nil
		}},
	} {
		before := f.everything()
		old, _ := f.trail()
		for cut := 1; cut < 10; cut++ {
			n := 0
			f.store.inTransaction(func(string) error {
				if n++; n == cut {
					return errCut
				}
				return nil
			})
			err := tc.do()
			f.store.inTransaction(nil)
			if n < cut { // it has fewer writes, and is done
				if err != nil {
					t.Fatalf("%s: %v", tc.name, err)
				}
				break
			}
			if after := f.everything(); !errors.Is(err, errCut) || after != before {
				t.Fatalf("%s, cut at write %d: %v\n%s\n\n%s", tc.name, cut, err, before, after)
			}
		}
		lines, _ := f.trail()
		diff(t, tc.name, strings.Join(tc.want, ", "), strings.Join(lines[len(old):], ", "))
	}
	_, entries := f.trail()
	for _, e := range entries {
		for _, state := range []bson.Raw{e.Before, e.After} {
			if s := state.String(); strings.Contains(s, "horse") || strings.Contains(s, `"hash": {"$binary"`) {
				t.Errorf("%s of %s has a secret: %s", e.Op, e.Collection, s)
			}
		}
		if e.Actor.Kind != "service" {
			t.Errorf("%s of %s is by %+v", e.Op, e.Collection, e.Actor)
		}
	}
}

func (f *fixture) newToken(u system.User) (system.Token, error) {
	tok, _, err := f.Tokens.Create(f.Context(), userPrincipal(u), bson.D{{Key: "name", Value: "ci"}, {Key: "scopes", Value: bson.A{}}}, nil)
	return tok, err
}

// wrong is nil if an error is the one that was to be expected.
func wrong(err, want error) error {
	if err == nil {
		return errors.New("no error")
	}
	if errors.Is(err, want) {
		return nil
	}
	return err
}

// TestTokenLimit makes more tokens than a user can have, many at a time.
func TestTokenLimit(t *testing.T) {
	f := newSystem(t)
	ann, bob := f.user("ann"), f.user("bob")
	for range system.MaxTokens - 3 {
		if _, err := f.newToken(ann); err != nil {
			t.Fatal(err)
		}
	}
	results := make(chan error, 12)
	for range cap(results) {
		go func() { results <- second(f.newToken(ann)) }()
	}
	made := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			made++
		case !strings.Contains(err.Error(), "at most 100 personal access tokens"):
			t.Error(err)
		}
	}
	if made != 3 {
		t.Errorf("%d of the last 3 tokens were made", made)
	}
	if _, err := f.newToken(bob); err != nil {
		t.Errorf("the tokens of others count: %v", err)
	}
	page, err := f.Tokens.List(t.Context(), userPrincipal(ann), query.Params{})
	if err != nil || len(page.Items) != system.MaxTokens {
		t.Fatal(len(page.Items), err)
	}
	if err := f.Tokens.Delete(t.Context(), userPrincipal(ann), page.Items[0].ID.Hex()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.newToken(ann); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
}
