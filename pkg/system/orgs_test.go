package system_test

import (
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

func TestOrgAndTeamBodies(t *testing.T) {
	w := newWorld(t)
	missing := bson.NewObjectID().Hex()
	for _, tc := range []struct {
		json       string
		org, team  []string // problems
		slug, code string   // what comes of a good one, or its conflict
	}{
		{json: `{}`, org: []string{"name:required"}, team: []string{"name:required"}},
		{json: `{"name": ""}`, org: []string{"name:required"}, team: []string{"name:required"}},
		{json: `{"name": 1, "description": [], "slug": true}`, org: []string{"name:type", "slug:type", "description:type"}, team: []string{"name:type", "slug:type", "description:type"}},
		{json: `{"name": "x", "slug": "Not A Slug"}`, org: []string{"slug:slug"}, team: []string{"slug:slug"}},
		{json: `{"name": "x", "slug": "a--b"}`, org: []string{"slug:slug"}, team: []string{"slug:slug"}},
		{json: `{"name": "x", "slug": "0123456789abcdef01234567"}`, org: []string{"slug:slug"}, team: []string{"slug:slug"}}, // an id
		{json: `{"name": "ABCDEFABCDEFABCDEFABCDEF"}`, org: []string{"slug:required"}, team: []string{"slug:required"}},
		{json: `{"name": "日本"}`, org: []string{"slug:required"}, team: []string{"slug:required"}},
		{json: `{"name": "日本", "slug": "nihon"}`, slug: "nihon"},
		{json: `{"name": " Übung & Söhne GmbH 2 "}`, slug: "bung-s-hne-gmbh-2"},
		{json: `{"name": "` + strings.Repeat("a-", 50) + `"}`, slug: strings.Repeat("a-", 31) + "a"},
		{json: `{"name": "` + strings.Repeat("a", 101) + `"}`, org: []string{"name:max"}, team: []string{"name:max"}},
		{json: `{"name": "x", "id": "y", "_rev": 1, "createdAt": null, "Name": "z"}`, org: []string{"id:readonly", "_rev:unknown", "createdAt:readonly", "Name:unknown"}, team: []string{"id:readonly", "_rev:unknown", "createdAt:readonly", "Name:unknown"}},
		{json: `{"name": "x", "active": 0}`, org: []string{"active:type"}, team: []string{"active:unknown"}},
		{json: `{"name": "x", "scopes": ["project.create", "project.read"]}`, org: []string{"scopes:unknown"}, team: []string{"scopes.0:oneof"}},
		{json: `{"name": "x", "orgId": "` + missing + `"}`, org: []string{"orgId:unknown"}, team: []string{"orgId:exists"}},
		{json: `{"name": "x", "orgId": "x"}`, org: []string{"orgId:unknown"}, team: []string{"orgId:exists"}},
		{json: `{"name": "x", "orgId": "` + strings.ToUpper(w.orgs["acme"]) + `"}`, org: []string{"orgId:unknown"}, team: []string{"orgId:exists"}},
		{json: `{"name": "x", "orgId": {"$ne": ""}}`, org: []string{"orgId:unknown"}, team: []string{"orgId:type"}},
	} {
		t.Run(tc.json, func(t *testing.T) {
			o, orgErr := w.Orgs.Create(t.Context(), admin, w.body(tc.json))
			x, teamErr := w.Teams.Create(t.Context(), admin, w.body(tc.json))
			if tc.slug != "" {
				if o.Slug != tc.slug || x.Slug != tc.slug || orgErr != nil || teamErr != nil {
					t.Errorf("%q %q %v %v", o.Slug, x.Slug, orgErr, teamErr)
				}
				return
			}
			wantProblems(t, orgErr, tc.org...)
			wantProblems(t, teamErr, tc.team...)
		})
	}
	for _, json := range []string{`{"name": "Acme"}`, `{"name": "x", "slug": "acme"}`, `{"name": "ACME!"}`} {
		_, err := w.Orgs.Create(t.Context(), admin, w.body(json))
		if e := errs.From(err); e == nil || e.Kind != errs.Conflict || e.Message != `slug "acme" is already taken` {
			t.Errorf("%s: %v", json, err)
		}
	}
	_, err := w.Teams.Update(t.Context(), admin, w.teams["far"], w.body(`{"slug": "crew"}`))
	if e := errs.From(err); e == nil || e.Kind != errs.Conflict {
		t.Error(err)
	}
	o, err := w.Orgs.Update(t.Context(), admin, strings.ToUpper(w.orgs["acme"]), w.body(`{"name": "New Name", "description": "d"}`))
	if err != nil || o.Slug != "acme" || o.Name != "New Name" || o.Description != "d" || o.Rev != 2 || !o.Active {
		t.Errorf("a new name changes the slug, or not all is written: %+v %v", o, err)
	}
	if o, err = w.Orgs.Update(t.Context(), admin, o.ID.Hex(), w.body(`{"slug": null, "active": null}`)); err != nil || o.Slug != "new-name" || !o.Active {
		t.Errorf("%+v %v", o, err)
	}
}

func TestOrgsInUseStay(t *testing.T) {
	w := newWorld(t)
	for org, want := range map[string]string{
		"acme": "the organization still has 4 users, 1 team, 1 project: move or delete them first",
		"beta": "the organization still has 2 users, 1 team, 1 project: move or delete them first",
	} {
		err := w.Orgs.Delete(t.Context(), admin, w.orgs[org])
		if e := errs.From(err); e == nil || e.Code != "org_in_use" || e.Kind != errs.Conflict || e.Message != want {
			t.Errorf("%s: %v", org, err)
		}
	}
	o, err := w.Orgs.Create(t.Context(), admin, w.body(`{"name": "empty"}`))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	w.Orgs.OnChange(func(id string) { told = append(told, id) })
	if err := w.Orgs.Delete(t.Context(), admin, strings.ToUpper(o.ID.Hex())); err != nil {
		t.Error(err)
	}
	wantError(t, w.Orgs.Delete(t.Context(), admin, o.ID.Hex()), errs.ErrNotFound)
	diff(t, "told", []string{o.ID.Hex()}, told)
}

// A team that can't be deleted in whole stays, with its users.
func TestTeamsAreDeletedInOneStep(t *testing.T) {
	w := newWorld(t)
	boss := w.userOf("boss")
	gone := false
	w.store.inTransaction(func(coll string) error {
		if coll == "teams" && !gone {
			gone = true
			return errs.New(errs.Unavailable, "broken", "the store is gone")
		}
		return nil
	})
	if err := w.Teams.Delete(t.Context(), admin, w.teams["crew"]); err == nil || !gone {
		t.Fatalf("it did not fail: %v", err)
	}
	diff(t, "its user", boss, w.userOf("boss"))
	if _, err := w.Teams.Get(t.Context(), admin, w.teams["crew"]); err != nil {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		model, filter, sort string
		want                string // names in their order, or the error
	}{
		{"orgs", `{"active": false}`, "", "gone"},
		{"orgs", `{"slug": {"$in": ["beta", "acme"]}}`, "-slug", "acme beta"},
		{"orgs", `{"_id": "` + w.orgs["acme"] + `"}`, "", "acme"},
		{"orgs", `{"id": "` + strings.ToUpper(w.orgs["acme"]) + `"}`, "", "acme"},
		{"orgs", `{"createdAt": {"$gt": "2020-01-01T00:00:00Z"}}`, "", "acme beta gone"},
		{"orgs", `{"createdAt": {"$gt": "2030-01-01T00:00:00Z"}}`, "", ""},
		{"orgs", `{"active": "no"}`, "", ""},
		{"orgs", `{"_rev": 1}`, "", "unknown field: _rev"},
		{"orgs", `{"createdBy": null}`, "", "unknown field: createdBy"},
		{"orgs", `{}`, "_rev", "unknown field: _rev"},
		{"orgs", `{"$where": "1"}`, "", "*"},
		{"teams", `{"orgId": "` + w.orgs["beta"] + `"}`, "", "far"},
		{"teams", `{"scopes": "audit.read"}`, "", "free"},
		{"teams", `{"orgId": ""}`, "name", "free"},
		{"users", `{"teamIds": "` + w.teams["crew"] + `"}`, "", "boss lost"},
		{"users", `{"orgIds": {"$size": 2}}`, "", "both"},
		{"users", `{"username": {"$regex": "^b"}, "isAdmin": false}`, "-username", "ben boss both"},
		{"users", `{"lastLoginAt": {"$exists": true}}`, "", ""},
		{"users", `{"passwordHash": {"$exists": true}}`, "", "unknown field: passwordHash"},
		{"users", `{"$or": [{"tokenVersion": 0}]}`, "", "unknown field: tokenVersion"},
		{"projects", `{"namespace": "pacme", "enabled": true}`, "", "pacme"},
	} {
		t.Run(tc.model+" "+tc.filter+" "+tc.sort, func(t *testing.T) {
			names, total, err := w.views()[tc.model].list(admin, query.Params{Where: query.Where{Filter: w.body(tc.filter)}, Sort: tc.sort, Count: true})
			got := strings.Join(names, " ")
			if err != nil {
				got = errs.From(err).Message
			}
			if got != tc.want && (tc.want != "*" || err == nil) {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if err == nil && *total != int64(len(names)) {
				t.Errorf("total %d", *total)
			}
		})
	}
	// Sorted, page by page, of what one caller may see.
	one := int64(1)
	params := query.Params{Sort: "-slug", Limit: &one}
	var got []string
	for {
		page, err := w.Orgs.List(t.Context(), w.as("both"), params)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			got = append(got, o.Slug)
		}
		if !page.HasMore {
			break
		}
		params.After = page.Next
	}
	diff(t, "pages", []string{"beta", "acme"}, got)
}

// Of many who make an org of one name at once, one does.
func TestOneOrgOfEachSlug(t *testing.T) {
	f := newSystem(t)
	for _, slug := range []string{"a", "b", "c"} {
		var wg sync.WaitGroup
		made := make(chan system.Org, 16)
		for range 16 {
			wg.Go(func() {
				o, err := f.Orgs.Create(t.Context(), admin, bson.D{{Key: "name", Value: slug}})
				if err == nil {
					made <- o
				} else if errs.From(err).Kind != errs.Conflict {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(made)
		if len(made) != 1 {
			t.Errorf("%d orgs of the slug %s", len(made), slug)
		}
	}
}

// An update that others get in the way of starts again, and none is lost.
func TestOrgUpdatesDontGetLost(t *testing.T) {
	w := newWorld(t)
	w.store.once(func() {
		if _, err := w.another().Orgs.Update(t.Context(), admin, w.orgs["acme"], bson.D{{Key: "description", Value: "theirs"}}); err != nil {
			t.Error(err)
		}
	})
	o, err := w.Orgs.Update(t.Context(), admin, w.orgs["acme"], bson.D{{Key: "name", Value: "ours"}})
	if err != nil || o.Name != "ours" || o.Description != "theirs" || o.Rev != 3 {
		t.Errorf("%+v %v", o, err)
	}
	w.store.once(func() {
		if err := w.another().Teams.Delete(t.Context(), admin, w.teams["far"]); err != nil {
			t.Error(err)
		}
	})
	_, err = w.Teams.Update(t.Context(), admin, w.teams["far"], bson.D{{Key: "name", Value: "ours"}})
	wantError(t, err, errs.ErrNotFound)
}
