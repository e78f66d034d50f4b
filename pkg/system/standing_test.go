package system_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// Who × what: nobody gives a user what they don't have, nor takes over who has more.
func TestWhoMayChangeWhom(t *testing.T) {
	w := newWorld(t)
	acme, beta := `"`+w.orgs["acme"]+`"`, `"`+w.orgs["beta"]+`"`
	crew, far := `"`+w.teams["crew"]+`"`, `"`+w.teams["far"]+`"`
	const (
		done   = "done"
		denied = "permission denied"
		absent = "not found"
	)
	for _, tc := range []struct {
		who    *access.Principal
		whom   string // "" is a new user
		change string
		want   string
	}{
		// The holder of user.* in an org.
		{w.as("boss"), "", ``, done},
		{w.as("boss"), "", `"orgIds": [` + acme + `]`, done},
		{w.as("boss"), "", `"orgIds": []`, denied},
		{w.as("boss"), "", `"orgIds": null`, denied},
		{w.as("boss"), "", `"scopes": ["user.read"]`, denied},
		{w.as("boss"), "", `"isAdmin": true`, denied},
		{w.as("boss"), "", `"teamIds": [` + crew + `]`, done},
		{w.as("boss"), "ann", `"name": "x"`, done},
		{w.as("boss"), "ann", `"password": "12345678"`, done},
		{w.as("boss"), "ann", `"active": false`, done},
		{w.as("boss"), "ann", `"teamIds": [` + crew + `]`, done},
		{w.as("boss"), "ann", `"orgIds": []`, denied},
		{w.as("boss"), "ann", `"scopes": ["project.read"]`, denied},
		{w.as("boss"), "ann", `"isAdmin": true`, denied},
		{w.as("boss"), "both", `"name": "x"`, denied}, // has an org more
		{w.as("boss"), "both", `"password": "12345678"`, denied},
		{w.as("boss"), "both", `"orgIds": [` + beta + `]`, denied},
		{w.as("boss"), "both", `"orgIds": [` + acme + `]`, denied},
		{w.as("boss"), "ben", `"name": "x"`, absent},
		{w.as("boss"), "wide", `"password": "12345678"`, absent},
		{w.as("boss"), "rootacme", `"name": "x"`, denied},
		{w.as("boss"), "rootacme", `"password": "12345678"`, denied},
		{w.as("boss"), "boss", `"name": "x"`, done},
		{w.as("boss"), "boss", `"teamIds": []`, done},
		{w.as("boss"), "boss", `"orgIds": []`, denied},
		{w.as("boss"), "boss", `"scopes": ["server.shutdown"]`, denied},
		{w.as("boss"), "boss", `"isAdmin": true`, denied},

		// Without a limit to orgs, and without what a team gives.
		{w.as("wide"), "", ``, done},
		{w.as("wide"), "", `"orgIds": [` + acme + `, ` + beta + `]`, done},
		{w.as("wide"), "ann", `"orgIds": [` + beta + `]`, done},
		{w.as("wide"), "ann", `"teamIds": [` + crew + `]`, denied},
		{w.as("wide"), "wide", `"teamIds": [` + far + `]`, denied},
		{w.as("wide"), "ben", `"password": "12345678"`, denied}, // is in a team
		{w.as("wide"), "guest", `"active": false`, denied},
		{w.as("wide"), "root", `"name": "x"`, denied},

		// In an org that is inactive.
		{w.as("lost"), "", ``, denied},
		{w.as("lost"), "ann", `"name": "x"`, absent},
		{w.as("lost"), "lost", `"name": "x"`, done},
		{w.as("lost"), "lost", `"orgIds": []`, denied},

		// By a personal access token: its owner's rights that its scopes cover, and no team.
		{w.as("boss", byPAT("user.create")), "", ``, done},
		{w.as("boss", byPAT("user.create")), "", `"teamIds": [` + crew + `]`, denied},
		{w.as("boss", byPAT("user.update")), "ann", `"password": "12345678"`, done},
		{w.as("boss", byPAT("user.update")), "ann", `"teamIds": [` + crew + `]`, denied},
		{w.as("boss", byPAT("user.update")), "boss", `"name": "x"`, done},
		{w.as("boss", byPAT("user.update")), "boss", `"password": "12345678"`, "password: change your own password at /me/password, which asks for the present one"},
		{w.as("boss", byPAT("user.update")), "boss", `"active": false`, denied}, // the account has more than the token
		{w.as("root", byPAT("user.update")), "ann", `"isAdmin": true`, denied},
		{w.as("root", byPAT("user.update")), "ann", `"scopes": ["user.read"]`, denied},
		{w.as("root", byPAT("user.update")), "boss", `"password": "12345678"`, denied},
		{w.as("root", byPAT("user.update")), "root", `"name": "x"`, denied},
		{w.as("root", byPAT(api.Scopes()...)), "rootacme", `"password": "12345678"`, denied},

		// Administrators.
		{w.as("root"), "", `"isAdmin": true`, done},
		{w.as("root"), "boss", `"scopes": ["server.shutdown"], "orgIds": [], "teamIds": [` + far + `]`, done},
		{w.as("root"), "rootacme", `"isAdmin": false`, done},
		{w.as("root"), "root", `"password": "12345678"`, "password: change your own password at /me/password, which asks for the present one"},
		{admin, "root", `"password": "12345678"`, done},

		// Who is nobody's user.
		{access.Anonymous(), "", ``, denied},
		{&access.Principal{Kind: access.KindToken}, "", ``, denied},
		{nil, "", ``, denied},
		{&access.Principal{Kind: access.KindUser, IsAdmin: true}, "", ``, denied},
	} {
		name := tc.whom
		if name == "" {
			name = "a new one"
		}
		who := "nobody"
		if tc.who != nil {
			who = fmt.Sprintf("%s %s", tc.who.Kind, tc.who.Name)
		}
		t.Run(fmt.Sprintf("%s, %s: %s", who, name, tc.change), func(t *testing.T) {
			var err error
			if tc.whom == "" {
				more := ""
				if tc.change != "" {
					more = ", " + tc.change
				}
				var u system.User
				u, err = w.Users.Create(t.Context(), tc.who, w.body(`{"username": "new", "password": "12345678"`+more+`}`))
				if err == nil {
					err = w.Users.Delete(t.Context(), admin, u.ID.Hex())
				}
			} else {
				before := w.userOf(tc.whom)
				if _, err = w.Users.Update(t.Context(), tc.who, before.ID.Hex(), w.body(`{`+tc.change+`}`)); err != nil {
					diff(t, "refused, yet changed", before, w.userOf(tc.whom))
				} else {
					w.restore(before)
				}
			}
			got := done
			if err != nil {
				got = errs.From(err).Message
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// restore makes a user what it was, but for what grows with each write.
func (w *world) restore(u system.User) {
	w.Helper()
	_, err := w.Users.Update(w.Context(), admin, u.ID.Hex(), bson.D{
		{Key: "name", Value: u.Name},
		{Key: "active", Value: u.Active},
		{Key: "isAdmin", Value: u.IsAdmin},
		{Key: "scopes", Value: list(u.Scopes)},
		{Key: "orgIds", Value: list(u.OrgIDs)},
		{Key: "teamIds", Value: list(u.TeamIDs)},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// Whatever is written by whomever: nobody has more afterwards than they had before, but for what the writer has, too.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	w := newWorld(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 5))
	defer func() {
		if t.Failed() {
			t.Log("seed", seed)
		}
	}()
	names := []string{"boss", "ann", "ben", "both", "lost", "wide", "guest", "root", "rootacme"}
	scopes := append(api.Scopes(), "namespace.blog", "namespace.blog.posts.read")
	some := func(of []string) bson.A {
		out := bson.A{}
		for range r.IntN(3) {
			out = append(out, of[r.IntN(len(of))])
		}
		return out
	}
	w.user("keeper", isAdmin) // the last administrator
	done := 0
	for range 3000 {
		// An administrator puts the two anywhere; then one changes the other.
		a, b := names[r.IntN(len(names))], names[r.IntN(len(names))]
		for _, name := range []string{a, b} {
			_, err := w.Users.Update(t.Context(), admin, w.users[name], bson.D{
				{Key: "scopes", Value: some(scopes)},
				{Key: "isAdmin", Value: name == "root" || r.IntN(8) == 0},
				{Key: "orgIds", Value: some(valuesOf(w.orgs))},
				{Key: "teamIds", Value: some(valuesOf(w.teams))},
				{Key: "active", Value: true},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		by := w.as(a)
		if r.IntN(2) == 0 {
			by = w.as(a, byPAT(append([]string{"user.update"}, scopes[r.IntN(len(scopes))])...))
		}
		body := bson.D{}
		for _, member := range []bson.E{
			{Key: "scopes", Value: some(scopes)},
			{Key: "orgIds", Value: some(valuesOf(w.orgs))},
			{Key: "teamIds", Value: some(valuesOf(w.teams))},
			{Key: "isAdmin", Value: r.IntN(2) == 0},
			{Key: "password", Value: "another one"},
			{Key: "name", Value: "x"},
		} {
			if r.IntN(3) == 0 {
				body = append(body, member)
			}
		}
		old := w.as(b)
		hash := w.userOf(b).PasswordHash
		if _, err := w.Users.Update(t.Context(), by, w.users[b], body); err != nil || by.Full() {
			continue
		}
		done++
		next := w.as(b)
		what := fmt.Sprintf("%+v\nwrote %v to\n%+v, which became\n%+v", by, body, old, next)
		if next.IsAdmin && !old.IsAdmin || next.IsAdmin && w.userOf(b).PasswordHash != hash {
			t.Fatalf("an administrator is made or taken over:\n%s", what)
		}
		took := w.userOf(b).PasswordHash != hash
		for _, scope := range scopes {
			if next.Has(scope) && (took || !old.Has(scope)) && !by.Has(scope) {
				t.Fatalf("%s is given:\n%s", scope, what)
			}
		}
		for org, id := range w.orgs {
			if next.InOrg(id) && (took || !old.InOrg(id)) && !by.InOrg(id) {
				t.Fatalf("the org %s is given:\n%s", org, what)
			}
		}
		for _, team := range next.TeamIDs {
			if (took || !slices.Contains(old.TeamIDs, team)) && (by.Kind == access.KindPAT || !slices.Contains(by.TeamIDs, team)) {
				t.Fatalf("the team %s is given:\n%s", w.name(team), what)
			}
		}
	}
	if done < 50 {
		t.Errorf("only %d changes were allowed, so this test is about little", done)
	}
}

func valuesOf(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// Only administrators write orgs, teams and registrations, whatever scopes there are.
func TestOnlyAdminsWriteOrgsAndTeams(t *testing.T) {
	w := newWorld(t)
	every := api.Scopes()
	for _, tc := range []struct {
		name string
		by   *access.Principal
		want error
	}{
		{"every scope", &access.Principal{Kind: access.KindUser, ID: w.users["wide"], Scopes: every}, errs.ErrDenied},
		{"a PAT of an admin", w.as("root", byPAT(every...)), errs.ErrDenied},
		{"nobody", nil, errs.ErrDenied},
		{"an admin", w.as("rootacme"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := bson.D{{Key: "name", Value: "new"}}
			o, err := w.Orgs.Create(t.Context(), tc.by, name)
			wantError(t, err, tc.want)
			x, err := w.Teams.Create(t.Context(), tc.by, name)
			wantError(t, err, tc.want)
			if tc.want != nil {
				o.ID, _ = bson.ObjectIDFromHex(w.orgs["acme"])
				x.ID, _ = bson.ObjectIDFromHex(w.teams["crew"])
			}
			_, err = w.Orgs.Update(t.Context(), tc.by, o.ID.Hex(), bson.D{{Key: "active", Value: false}})
			wantError(t, err, tc.want)
			_, err = w.Teams.Update(t.Context(), tc.by, x.ID.Hex(), bson.D{{Key: "scopes", Value: bson.A{"audit.read"}}})
			wantError(t, err, tc.want)
			wantError(t, w.Orgs.Delete(t.Context(), tc.by, o.ID.Hex()), tc.want)
			wantError(t, w.Teams.Delete(t.Context(), tc.by, x.ID.Hex()), tc.want)
		})
	}
}
