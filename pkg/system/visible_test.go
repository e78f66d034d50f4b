package system_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

// view is one model, as a caller meets it.
type view struct {
	ids  map[string]string // all that there are
	list func(by *access.Principal, params query.Params) (names []string, total *int64, err error)
	get  func(by *access.Principal, id string) error
}

func (w *world) views() map[string]view {
	w.Helper()
	projects := map[string]string{}
	all, err := w.Projects.All(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range all {
		projects[p.Namespace] = p.ID.Hex()
	}
	return map[string]view{
		"users":    viewOf(w, w.users, w.Users.List, w.Users.Get, func(u system.User) string { return u.Username }),
		"orgs":     viewOf(w, w.orgs, w.Orgs.List, w.Orgs.Get, func(o system.Org) string { return o.Slug }),
		"teams":    viewOf(w, w.teams, w.Teams.List, w.Teams.Get, func(x system.Team) string { return x.Slug }),
		"projects": viewOf(w, projects, w.Projects.List, w.Projects.Get, func(p system.Project) string { return p.Namespace }),
	}
}

func viewOf[T any](w *world, ids map[string]string,
	list func(context.Context, *access.Principal, query.Params) (query.Page[T], error),
	get func(context.Context, *access.Principal, string) (T, error), name func(T) string,
) view {
	return view{
		ids: ids,
		list: func(by *access.Principal, params query.Params) ([]string, *int64, error) {
			page, err := list(w.Context(), by, params)
			names := []string{}
			for _, item := range page.Items {
				names = append(names, name(item))
			}
			slices.Sort(names)
			return names, page.Total, err
		},
		get: func(by *access.Principal, id string) error { _, err := get(w.Context(), by, id); return err },
	}
}

const everyone = "ann ben boss both guest lost root rootacme wide"

func callers(w *world) map[string]*access.Principal {
	return map[string]*access.Principal{
		"admin token": admin, "admin": w.as("root"), "admin in an org": w.as("rootacme"), "no limit": w.as("wide"),
		"one org": w.as("boss"), "PAT of one org": w.as("boss", byPAT("user.read")), "two orgs": w.as("both"),
		"inactive org": w.as("lost"), "PAT of an admin": w.as("root", byPAT("user.read")),
		"collection token": {Kind: access.KindToken}, "anonymous": access.Anonymous(), "nobody": nil,
		"user without id": {Kind: access.KindUser},
	}
}

// Each caller sees what belongs to their orgs, in lists and by id alike, and nothing else is there.
func TestVisibility(t *testing.T) {
	w := newWorld(t)
	all := map[string]string{"users": everyone, "orgs": "acme beta gone", "teams": "crew far free idle", "projects": "pacme pbeta pfree pgone"}
	acme := map[string]string{"users": "ann boss both rootacme", "orgs": "acme", "teams": "crew", "projects": "pacme"}
	want := map[string]map[string]string{
		"admin token": all, "admin": all, "admin in an org": all, "no limit": all, "PAT of an admin": all,
		"one org": acme, "PAT of one org": acme,
		"two orgs":     {"users": "ann ben boss both rootacme", "orgs": "acme beta", "teams": "crew far", "projects": "pacme pbeta"},
		"inactive org": {"users": "lost", "teams": "crew"},
	}
	for caller, by := range callers(w) {
		for model, view := range w.views() {
			t.Run(caller+"/"+model, func(t *testing.T) {
				names, total, err := view.list(by, query.Params{Count: true})
				if err != nil {
					t.Fatal(err)
				}
				diff(t, "list", want[caller][model], strings.Join(names, " "))
				if *total != int64(len(names)) {
					t.Errorf("the total is %d of %d", *total, len(names))
				}
				for name, id := range view.ids {
					for _, id := range []string{id, strings.ToUpper(id)} { // one id
						err := view.get(by, id)
						if slices.Contains(names, name) != (err == nil) || err != nil && !errs.ErrNotFound.Is(err) {
							t.Errorf("%s by id: %v", name, err)
						}
					}
				}
				for _, field := range []string{"_id", "name"} { // no filter shows more
					either := bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: field, Value: bson.D{{Key: "$exists", Value: true}}}}, bson.D{{Key: field, Value: nil}}}}}
					if filtered, _, err := view.list(by, query.Params{Where: query.Where{Filter: either}}); err != nil || !slices.Equal(filtered, names) {
						t.Errorf("filtered: %v %v", filtered, err)
					}
				}
			})
		}
	}
}

// Who a caller can't see is as one who isn't there, also in writes.
func TestInvisibleUsersCantBeWritten(t *testing.T) {
	w := newWorld(t)
	before := w.everything()
	for caller, by := range callers(w) {
		for name, id := range w.users {
			if err := w.views()["users"].get(by, id); err == nil {
				continue
			}
			for _, body := range []string{`{}`, `{"name": "x"}`, `{"password": "12345678"}`, `{"isAdmin": true}`, `{"orgIds": []}`, `{"nonsense": 1}`} {
				_, err := w.Users.Update(t.Context(), by, id, w.body(body))
				if !errs.ErrNotFound.Is(err) {
					t.Errorf("%s changes %s with %s: %v", caller, name, body, err)
				}
			}
			if err := w.Users.Delete(t.Context(), by, id); !errs.ErrNotFound.Is(err) {
				t.Errorf("%s deletes %s: %v", caller, name, err)
			}
		}
	}
	diff(t, "afterwards", before, w.everything())
}

// A body that names an org or team that the caller can't see gets the answer of one that isn't there.
func TestBodiesCantFindForeignIDs(t *testing.T) {
	w := newWorld(t)
	boss, missing := w.as("boss"), bson.NewObjectID().Hex()
	for member, foreign := range map[string][]string{
		"orgIds": {w.orgs["beta"], w.orgs["gone"], missing}, "teamIds": {w.teams["far"], w.teams["free"], missing},
	} {
		for _, id := range foreign {
			body := bson.D{{Key: member, Value: bson.A{id}}}
			_, err := w.Users.Update(t.Context(), boss, w.users["ann"], body)
			wantProblems(t, err, member+":exists")
			_, err = w.Users.Create(t.Context(), boss, append(body, bson.D{{Key: "username", Value: "new"}, {Key: "password", Value: "12345678"}}...))
			wantProblems(t, err, member+":exists")
		}
	}
	// What a user has already may be sent back as it was read.
	u := w.userOf("lost")
	if _, err := w.Users.Update(t.Context(), w.as("lost"), u.ID.Hex(), bson.D{{Key: "orgIds", Value: list(u.OrgIDs)}, {Key: "teamIds", Value: list(u.TeamIDs)}}); err != nil {
		t.Error(err)
	}
}

func (w *world) body(json string) bson.D { return body(w.T, json) }

// everything is all users as they are stored.
func (w *world) everything() []system.User {
	w.Helper()
	page, err := w.Users.List(w.Context(), admin, query.Params{})
	if err != nil {
		w.Fatal(err)
	}
	return page.Items
}
