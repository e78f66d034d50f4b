package system_test

import (
	"context"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/system"
)

// world is a service with two organizations and one that is inactive, with teams and users in and between them.
type world struct {
	*fixture
	orgs  map[string]string // ids by slug
	teams map[string]string
	users map[string]string // by username
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{fixture: newSystem(t), orgs: map[string]string{}, teams: map[string]string{}, users: map[string]string{}}
	for _, slug := range []string{"acme", "beta", "gone"} {
		o, err := w.Orgs.Create(t.Context(), admin, bson.D{{Key: "name", Value: slug}, {Key: "active", Value: slug != "gone"}})
		if err != nil {
			t.Fatal(err)
		}
		w.orgs[slug] = o.ID.Hex()
	}
	for _, team := range []struct {
		slug, org string
		scopes    bson.A
	}{
		{"crew", "acme", bson.A{"project.read"}},
		{"far", "beta", bson.A{"project.reload"}},
		{"idle", "gone", bson.A{"server.shutdown"}},
		{"free", "", bson.A{"audit.read"}},
	} {
		made, err := w.Teams.Create(t.Context(), admin, bson.D{
			{Key: "name", Value: team.slug}, {Key: "orgId", Value: w.orgs[team.org]}, {Key: "scopes", Value: team.scopes},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.teams[team.slug] = made.ID.Hex()
	}
	for _, u := range []struct {
		name                string
		orgs, teams, scopes []string
		admin               bool
	}{
		{name: "root", admin: true},
		{name: "rootacme", orgs: []string{"acme"}, admin: true},
		{name: "boss", orgs: []string{"acme"}, teams: []string{"crew"}, scopes: manage()},
		{name: "ann", orgs: []string{"acme"}},
		{name: "ben", orgs: []string{"beta"}, teams: []string{"far"}},
		{name: "both", orgs: []string{"acme", "beta"}},
		{name: "lost", orgs: []string{"gone"}, teams: []string{"idle", "crew"}, scopes: manage()},
		{name: "wide", scopes: manage()},
		{name: "guest", teams: []string{"free"}},
	} {
		made := w.user(u.name, bson.E{Key: "isAdmin", Value: u.admin}, bson.E{Key: "scopes", Value: list(u.scopes)},
			bson.E{Key: "orgIds", Value: w.ids(w.orgs, u.orgs)}, bson.E{Key: "teamIds", Value: w.ids(w.teams, u.teams)})
		w.users[u.name] = made.ID.Hex()
	}
	for namespace, org := range map[string]string{"pacme": "acme", "pbeta": "beta", "pgone": "gone", "pfree": ""} {
		resolve := func(context.Context, string) (string, error) { return namespace, nil }
		body := bson.D{{Key: "configFile", Value: namespace}, {Key: "orgId", Value: w.orgs[org]}}
		if _, err := w.Projects.Create(t.Context(), body, resolve); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// manage are the rights of who manages users.
func manage() []string { return []string{"user.create", "user.delete", "user.read", "user.update"} }

func list(items []string) bson.A {
	out := bson.A{}
	for _, item := range items {
		out = append(out, item)
	}
	return out
}

func (w *world) ids(of map[string]string, names []string) bson.A {
	out := bson.A{}
	for _, name := range names {
		out = append(out, of[name])
	}
	return out
}

func (w *world) userOf(name string) system.User {
	w.Helper()
	u, err := w.Users.ByID(w.Context(), w.users[name])
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// as is a user who is logged in; change may make it another caller.
func (w *world) as(name string, change ...func(p *access.Principal)) *access.Principal {
	w.Helper()
	return w.principal(w.userOf(name), change...)
}

func (w *world) principal(u system.User, change ...func(p *access.Principal)) *access.Principal {
	w.Helper()
	st, err := w.Users.Standing(w.Context(), u)
	if err != nil {
		w.Fatal(err)
	}
	p := &access.Principal{
		Kind: access.KindUser, ID: u.ID.Hex(), Name: u.Username, IsAdmin: u.IsAdmin, Scopes: st.Scopes,
		Limited: st.Limited, OrgIDs: st.OrgIDs, TeamIDs: st.TeamIDs, Teams: st.Teams,
	}
	for _, fn := range change {
		fn(p)
	}
	return p
}

// byPAT makes a caller one that comes with a personal access token.
func byPAT(scopes ...string) func(p *access.Principal) {
	return func(p *access.Principal) { p.Kind, p.TokenID, p.Cap = access.KindPAT, bson.NewObjectID().Hex(), scopes }
}

// name is what an id is called.
func (w *world) name(id string) string {
	for _, of := range []map[string]string{w.orgs, w.teams, w.users} {
		for name, known := range of {
			if id == known {
				return name
			}
		}
	}
	return id
}

func (w *world) names(ids []string) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, w.name(id))
	}
	slices.Sort(out)
	return out
}

func TestStanding(t *testing.T) {
	w := newWorld(t)
	dangling := bson.NewObjectID().Hex()
	for name, tc := range map[string]struct {
		orgs, teams, scopes []string
		want                system.Standing
	}{
		"nothing":              {want: system.Standing{}},
		"own scopes":           {scopes: []string{"user.read"}, want: system.Standing{Scopes: []string{"user.read"}}},
		"an org":               {orgs: []string{"acme"}, want: system.Standing{Limited: true, OrgIDs: []string{"acme"}}},
		"an inactive org":      {orgs: []string{"gone"}, want: system.Standing{Limited: true}},
		"one of each":          {orgs: []string{"gone", "beta"}, want: system.Standing{Limited: true, OrgIDs: []string{"beta"}}},
		"an org that is gone":  {orgs: []string{dangling}, want: system.Standing{Limited: true}},
		"a team":               {teams: []string{"crew"}, want: system.Standing{Scopes: []string{"project.read"}, TeamIDs: []string{"crew"}, Teams: []string{"crew"}}},
		"of no org":            {teams: []string{"free"}, want: system.Standing{Scopes: []string{"audit.read"}, TeamIDs: []string{"free"}, Teams: []string{"free"}}},
		"of an inactive org":   {teams: []string{"idle"}, want: system.Standing{}},
		"a team that is gone":  {teams: []string{dangling}, want: system.Standing{}},
		"twice the same right": {scopes: []string{"project.read"}, teams: []string{"crew", "idle"}, want: system.Standing{Scopes: []string{"project.read"}, TeamIDs: []string{"crew"}, Teams: []string{"crew"}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := system.User{Scopes: tc.scopes}
			for _, o := range tc.orgs {
				u.OrgIDs = append(u.OrgIDs, orKnown(w.orgs, o))
			}
			for _, o := range tc.teams {
				u.TeamIDs = append(u.TeamIDs, orKnown(w.teams, o))
			}
			got, err := w.Users.Standing(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			got.OrgIDs, got.TeamIDs = named(w, got.OrgIDs), named(w, got.TeamIDs)
			diff(t, "standing", tc.want, got)
		})
	}
}

func orKnown(ids map[string]string, name string) string {
	if id, ok := ids[name]; ok {
		return id
	}
	return name
}

func named(w *world, ids []string) []string {
	if len(ids) == 0 {
		return nil
	}
	return w.names(ids)
}

// A team moves to another org, an org is deactivated and comes back: who is in them has what follows.
func TestStandingFollowsTeamsAndOrgs(t *testing.T) {
	w := newWorld(t)
	boss := func() []string { return w.as("boss").Scopes }
	with := append([]string{"project.read"}, manage()...)
	diff(t, "at first", with, boss())
	for _, step := range []struct {
		name  string
		do    func() error
		holds bool
	}{
		{"moved to an inactive org", func() error { return w.moveTeam("crew", "gone") }, false},
		{"moved to a foreign org", func() error { return w.moveTeam("crew", "beta") }, true},
		{"that org is deactivated", func() error { return w.activate("beta", false) }, false},
		{"and comes back", func() error { return w.activate("beta", true) }, true},
		{"moved to no org", func() error { return w.moveTeam("crew", "") }, true},
		{"deleted", func() error { return w.Teams.Delete(t.Context(), admin, w.teams["crew"]) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		want := manage()
		if step.holds {
			want = with
		}
		diff(t, step.name, want, boss())
	}
	for _, name := range []string{"boss", "lost"} {
		if u := w.userOf(name); slices.Contains(u.TeamIDs, w.teams["crew"]) {
			t.Errorf("%s is still in a team that is deleted", name)
		}
	}
	if u := w.userOf("lost"); !slices.Equal(u.TeamIDs, []string{w.teams["idle"]}) || u.Rev != 2 {
		t.Errorf("another team went with it, or the revision stayed: %+v", u)
	}
}

func (w *world) moveTeam(team, org string) error {
	_, err := w.Teams.Update(w.Context(), admin, w.teams[team], bson.D{{Key: "orgId", Value: w.orgs[org]}})
	return err
}

func (w *world) activate(org string, active bool) error {
	_, err := w.Orgs.Update(w.Context(), admin, w.orgs[org], bson.D{{Key: "active", Value: active}})
	return err
}
