package app_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

// onBoth runs a test against a service with the project shop on the embedded store, and one on MongoDB.
func onBoth(t *testing.T, test func(s *service)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(runShop(t, nil)) })
	t.Run("mongodb", func(t *testing.T) {
		uri := emptyMongo(t, "svc_shop", "svc_other", "svc_svc")
		test(runShop(t, func(c *app.Config) { c.StoreURI = uri }))
	})
}

// make creates a record of a system model and gives its id.
func (s *service) make(model string, body map[string]any) string {
	s.t.Helper()
	res := s.do("POST", "/api/v1/"+model, admin, json1(body))
	res.want(s.t, http.StatusCreated)
	return res.field("id")
}

// whole is an answer with all that a client can tell it from another by; the request id is the client's own, and an
// answer's time of day is not of it.
func whole(a answer) string {
	var out []string
	for name, values := range a.header {
		if name != "Date" {
			out = append(out, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("%d\n%s\n\n%s", a.status, strings.Join(out, "\n"), a.body)
}

// S12: collections that are named as system models or their storage are collections of their project, and nothing else.
func TestS12CollectionsDontAliasSystemModels(t *testing.T) {
	names := []string{"user", "users", "org", "orgs", "team", "teams", "token", "tokens", "project", "projects", "secrets", "generations", "login_failures"}
	var config strings.Builder
	config.WriteString("namespace: svc\ncollections:\n") // so is the database of the system models called
	for _, name := range names {
		config.WriteString("  - {name: " + name + ", permissions: {public: {methods: {get: true, post: true, put: {bulk: true}, delete: {bulk: true}}}, user: {methods: {}}}}\n")
	}
	onBoth(t, func(s *service) {
		s.user("root2", map[string]any{"isAdmin": true})
		_, session1 := s.user("ann", nil)
		s.make("org", map[string]any{"name": "acme"})
		s.make("team", map[string]any{"name": "crew"})
		s.register("svc", config.String())
		system := func() string {
			var out strings.Builder
			for _, model := range []string{"user", "org", "team", "project"} {
				out.WriteString(s.do("GET", "/api/v1/"+model, admin).body + "\n")
			}
			return out.String()
		}
		before := system()
		for _, name := range names {
			path := "/api/v1/_/svc/" + name
			if got := s.do("GET", path).body; !strings.Contains(got, `"items":[]`) {
				s.t.Errorf("%s holds %s", name, got)
			}
			s.do("POST", path, text(`{"username": "evil", "isAdmin": true, "active": true, "slug": "evil", "tokenVersion": 9}`)).want(s.t, http.StatusCreated)
			s.do("PUT", path+"?filter=%7B%7D", text(`{"isAdmin": true, "scopes": ["server.shutdown"]}`)).want(s.t, http.StatusOK)
			s.do("DELETE", path+"?filter=%7B%7D").want(s.t, http.StatusOK)
		}
		if after := system(); after != before {
			s.t.Errorf("the system models changed:\n%s\n%s", before, after)
		}
		s.do("GET", "/api/v1/me", session(session1)).want(s.t, http.StatusOK)
		for i, name := range []string{"_x", "_", "svc.users", "system.users", "../svc/users", "users$", ".users"} {
			s.configure(fmt.Sprint("bad", i), "namespace: bad\ncollections: [{name: '"+name+"', permissions: {public: {methods: {}}, user: {methods: {}}}}]\n")
			got := s.do("POST", "/api/v1/project", admin, json1(map[string]any{"configFile": fmt.Sprintf("bad%d/project.yaml", i)}))
			if got.status != http.StatusUnprocessableEntity {
				s.t.Errorf("a collection named %s: %s", name, got)
			}
		}
	})
}

// S13: an id of one project, or of another org's, is nothing in the other, on every route.
func TestS13IDsOfOneTenantAreNothingInAnother(t *testing.T) {
	onBoth(t, func(s *service) {
		acme, beta := s.make("org", map[string]any{"name": "acme"}), s.make("org", map[string]any{"name": "beta"})
		other := s.register("other", strings.Replace(shopConfig, "namespace: shop", "namespace: other", 1))
		shop := s.projectID()
		s.do("PUT", "/api/v1/project/"+shop, admin, json1(map[string]any{"orgId": acme})).want(s.t, http.StatusOK)
		s.do("PUT", "/api/v1/project/"+other, admin, json1(map[string]any{"orgId": beta})).want(s.t, http.StatusOK)
		id := s.item(`{"title": "A", "n": 1}`)
		before := s.do("GET", "/api/v1/_/shop/items", admin).body
		for _, as := range []option{admin, token(collectionToken)} {
			for _, rt := range [][2]string{{"GET", ""}, {"PUT", `{"n": 2}`}, {"PATCH", `{"n": 2}`}, {"DELETE", ""}} {
				if got := s.do(rt[0], "/api/v1/_/other/items/"+id, as, text(rt[1]), header("Content-Type", mediaOf(rt[0]))); got.String() != notFound {
					s.t.Errorf("%s of shop's id in other: %s", rt[0], got)
				}
			}
			for _, query := range []string{`?filter={"id":"` + id + `"}`, `/_count?filter={"id":"` + id + `"}`} {
				if got := s.do("GET", "/api/v1/_/other/items"+query, as).body; strings.Contains(got, id) || strings.Contains(got, `"count":1`) {
					s.t.Errorf("%s: %s", query, got)
				}
			}
		}
		taken := s.do("POST", "/api/v1/_/shop/_/admin/backup", admin)
		run := taken.field("id")
		var made api.Run
		unmarshal(s.t, s.ended(taken.header.Get("Location"), admin), &made)
		for _, path := range []string{"/" + made.Subject, "/" + made.Subject + "/download", "/" + made.Subject + "/events", "/" + run + "/events", "/runs/" + run} {
			s.do("GET", "/api/v1/_/shop/_/admin/snapshots"+path, admin).want(s.t, http.StatusOK)
			s.do("GET", "/api/v1/_/other/_/admin/snapshots"+path, admin).want(s.t, http.StatusNotFound)
		}
		for method, path := range map[string]string{"POST": "/verify", "DELETE": ""} {
			s.do(method, "/api/v1/_/other/_/admin/snapshots/"+made.Subject+path, admin).want(s.t, http.StatusNotFound)
		}
		_, ben := s.user("ben", map[string]any{"orgIds": []string{beta}, "scopes": []string{"project.read", "project.reload"}})
		for _, rt := range projectRoutes(id) {
			missing := s.do(rt[0], "/api/v1"+strings.ReplaceAll(rt[1], "%s", "none"), session(ben), text(rt[2]), header("X-Request-Id", "r"))
			foreign := s.do(rt[0], "/api/v1"+strings.ReplaceAll(rt[1], "%s", "shop"), session(ben), text(rt[2]), header("X-Request-Id", "r"))
			if whole(foreign) != whole(missing) || missing.status != http.StatusNotFound {
				s.t.Errorf("%s %s of a foreign org:\n%s\n\nand of nobody:\n%s", rt[0], rt[1], whole(foreign), whole(missing))
			}
			if own := s.do(rt[0], "/api/v1"+strings.ReplaceAll(rt[1], "%s", "other"), session(ben), text(rt[2])); own.String() == noProject {
				s.t.Errorf("%s %s of one's own: %s", rt[0], rt[1], own)
			}
		}
		if after := s.do("GET", "/api/v1/_/shop/items", admin).body; after != before {
			s.t.Errorf("something was written:\n%s\n%s", before, after)
		}
		// The project moves to the other org: at once it is there for them, and gone for those of the first.
		_, ann := s.user("ann", map[string]any{"orgIds": []string{acme}})
		s.do("GET", "/api/v1/_/shop/items", session(ann)).want(s.t, http.StatusOK)
		s.do("PUT", "/api/v1/project/"+shop, admin, json1(map[string]any{"orgId": beta})).want(s.t, http.StatusOK)
		if got := s.do("GET", "/api/v1/_/shop/items", session(ann)).String(); got != noProject {
			s.t.Errorf("after the move: %s", got)
		}
		s.do("GET", "/api/v1/_/shop/items", session(ben)).want(s.t, http.StatusOK)
	})
}

func mediaOf(method string) string {
	if method == "PATCH" {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// projectRoutes are the routes below a project: method, path with %s for its namespace, body.
func projectRoutes(id string) [][3]string {
	return [][3]string{
		{"GET", "/_/%s/items", ""},
		{"HEAD", "/_/%s/items", ""},
		{"POST", "/_/%s/items", `{"title": "x"}`},
		{"PUT", "/_/%s/items?filter=%7B%7D", `{"n": 9}`},
		{"DELETE", "/_/%s/items?filter=%7B%7D", ""},
		{"GET", "/_/%s/items/_count", ""},
		{"GET", "/_/%s/items/" + id, ""},
		{"PUT", "/_/%s/items/" + id, `{"n": 9}`},
		{"PATCH", "/_/%s/items/" + id, `{"n": 9}`},
		{"DELETE", "/_/%s/items/" + id, ""},
		{"GET", "/_/%s/none", ""},
		{"GET", "/_/%s/items/x/y/z", ""},
		{"PATCH", "/_/%s/items", "{}"},
		{"OPTIONS", "/_/%s/items", ""},
		{"POST", "/_/%s/_/admin/reload", ""},
		{"POST", "/_/%s/_/admin/reload?wait=true", ""},
		{"GET", "/_/%s/_/admin/snapshots", ""},
		{"POST", "/_/%s/_/admin/snapshots", `{"profile": "all"}`},
		{"GET", "/_/%s/_/admin/snapshots/20260301T031500Z-k3x9q2/download", ""},
		{"GET", "/_/%s/_/admin/backup/download", ""},
		{"GET", "/_/%s/_/audit", ""},
		{"GET", `/_/%s/_/audit?count=true&filter={"recordId":"` + id + `"}`, ""},
		{"POST", "/_/%s/_/admin/access/explain", `{"principal": {"kind": "anonymous"}, "method": "get", "collection": "items", "id": "` + id + `"}`},
		{"GET", "/_/%s/_/collections", ""},
		{"GET", "/_/%s/_/collections/items", ""},
		{"GET", "/_/%s/items?nonsense=1", ""},
	}
}

// S14: what a caller may not read is like what isn't there, to the byte.
func TestS14ForeignRecordsAreLikeMissingOnes(t *testing.T) {
	onBoth(t, func(s *service) {
		acme, beta := s.make("org", map[string]any{"name": "acme"}), s.make("org", map[string]any{"name": "beta"})
		shop := s.projectID()
		s.do("PUT", "/api/v1/project/"+shop, admin, json1(map[string]any{"orgId": beta})).want(s.t, http.StatusOK)
		foreign := map[string]string{"org": beta, "project": shop, "team": s.make("team", map[string]any{"name": "far", "orgId": beta})}
		foreign["user"], _ = s.user("ben", map[string]any{"orgIds": []string{beta}})
		_, ann := s.user("ann", map[string]any{"orgIds": []string{acme}, "scopes": []string{
			"user.read", "user.create", "user.update", "user.delete", "org.read", "team.read", "project.read", "project.reload",
		}})
		ask := func(method, path, id, body string) string {
			res := s.do(method, "/api/v1"+path, session(ann), text(body), header("X-Request-Id", "r"))
			if res.status < 400 {
				s.t.Errorf("%s %s: %s", method, path, res)
			}
			return strings.ReplaceAll(whole(res), id, "<id>")
		}
		for model, id := range foreign {
			for _, path := range []string{"/" + model + "/%s", "/project/%s/status"} {
				for _, rt := range [][2]string{
					{"GET", ""}, {"HEAD", ""}, {"PUT", `{}`}, {"PUT", `{"name": "x"}`}, {"PUT", `{"nonsense": 1}`}, {"PUT", `{`}, {"DELETE", ""}, {"PATCH", `{}`},
				} {
					if got, want := ask(rt[0], fmt.Sprintf(path, id), id, rt[1]), ask(rt[0], fmt.Sprintf(path, unknownID), unknownID, rt[1]); got != want {
						s.t.Errorf("%s %s %s:\n%s\n\nand of nobody:\n%s", rt[0], path, rt[1], got, want)
					}
				}
			}
			if got := s.do("GET", "/api/v1/"+model+"?count=true", session(ann)).body; strings.Contains(got, id) {
				s.t.Errorf("the list of %s: %s", model, got)
			}
		}
		for member, id := range map[string]string{"orgIds": foreign["org"], "teamIds": foreign["team"]} {
			body := `{"username": "new", "password": "` + password + `", "` + member + `": ["%s"]}`
			if got, want := ask("POST", "/user", id, fmt.Sprintf(body, id)), ask("POST", "/user", unknownID, fmt.Sprintf(body, unknownID)); got != want {
				s.t.Errorf("%s in a body:\n%s\n\nand of nobody:\n%s", member, got, want)
			}
		}
	})
}

// S14: nor does the time tell. It is measured when SOAK is set.
func TestS14Timing(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 to measure")
	}
	onBoth(t, func(s *service) {
		acme, beta := s.make("org", map[string]any{"name": "acme"}), s.make("org", map[string]any{"name": "beta"})
		ben, _ := s.user("ben", map[string]any{"orgIds": []string{beta}})
		_, ann := s.user("ann", map[string]any{"orgIds": []string{acme}, "scopes": []string{"user.read", "org.read", "team.read", "project.read"}})
		hidden := s.item(`{"title": "unseen", "n": -1}`) // the filter of public
		s.register("away", strings.Replace(shopConfig, "namespace: shop", "namespace: away", 1))
		s.do("PUT", "/api/v1/project/"+s.projectID(), admin, json1(map[string]any{"orgId": beta})).want(s.t, http.StatusOK)
		for path, ids := range map[string][2]string{
			"user/%s":         {ben, unknownID},
			"org/%s":          {beta, unknownID},
			"team/%s":         {s.make("team", map[string]any{"name": "far", "orgId": beta}), unknownID},
			"project/%s":      {s.projectID(), unknownID},
			"_/%s/items":      {"shop", "none"},
			"_/shop/items/%s": {hidden, unknownID},
		} {
			as := session(ann)
			if strings.HasPrefix(path, "_/shop") {
				as = noop
			}
			var took [2][]time.Duration
			for range 500 {
				for i, id := range ids {
					began := time.Now()
					if got := s.do("GET", "/api/v1/"+fmt.Sprintf(path, id), as).status; got != http.StatusNotFound {
						s.t.Fatalf("%s %s: %d", path, id, got)
					}
					took[i] = append(took[i], time.Since(began))
				}
			}
			slices.Sort(took[0])
			slices.Sort(took[1])
			unreadable, missing := took[0][250], took[1][250]
			s.t.Logf("%s: unreadable %v, missing %v", path, unreadable, missing)
			if d := (unreadable - missing).Abs(); d > 5*time.Millisecond {
				s.t.Errorf("%s: the medians differ by %v", path, d)
			}
		}
	})
}

// S20: what the service sets can't be set by a body, in whatever form; what is refused leaves no trace.
func TestS20MassAssignment(t *testing.T) {
	onBoth(t, func(s *service) {
		userID, _ := s.user("ann", nil)
		targets := map[string]string{"user": userID, "org": s.make("org", map[string]any{"name": "acme"}), "team": s.make("team", map[string]any{"name": "crew"}), "project": s.projectID()}
		for model, id := range targets {
			before := s.do("GET", "/api/v1/"+model+"/"+id, admin).body
			for _, member := range []string{
				`"id": "650102030405060708090a0b"`, `"_id": "650102030405060708090a0b"`, `"id": null`, `"_rev": 9`, `"_rev": null`,
				`"createdAt": "2000-01-01T00:00:00Z"`, `"createdAt": null`, `"updatedAt": null`, `"createdBy": "x"`, `"passwordHash": "x"`, `"tokenVersion": 0`,
				`"tokenVersion": null`, `"patVersion": 0`, `"lastLoginAt": null`, `"namespace": "x"`, `"namespace": null`, `"NAME": "x"`, `"Name": "x"`, `"isadmin": true`,
				`"IsAdmin": true`, `"name.first": "x"`, `"scopes.0": "user.read"`, `"scopes[0]": "user.read"`, `"$set": {"isAdmin": true}`,
				`"$push": {"scopes": "user.read"}`, `"scopes": {"$push": "user.read"}`, `"__proto__": {"isAdmin": true}`, `"constructor": 1`,
				`"name": {"$set": "x"}`, `"name": ["x"]`, `"name": "x", "name": "y"`, `"name\u0000": "x"`, `"": 1`,
			} {
				body := "{" + member + "}"
				for _, try := range []answer{
					s.do("PUT", "/api/v1/"+model+"/"+id, admin, text(body)),
					s.do("PUT", "/api/v1/"+model+"/"+id, admin, text(`{"description": "kept", `+member+`}`)),
					s.do("POST", "/api/v1/"+model, admin, text(`{"username": "new", "password": "`+password+`", "name": "new", `+member+`}`)),
				} {
					if try.status != http.StatusBadRequest {
						s.t.Errorf("%s with %s: %s", model, member, try)
					}
				}
			}
			if after := s.do("GET", "/api/v1/"+model+"/"+id, admin).body; after != before {
				s.t.Errorf("%s was\n%s and is\n%s", model, before, after)
			}
		}
		for _, body := range []string{ // of records, alone and in bulk
			`{"title": "x", "_rev": 5}`, `{"title": "x", "id": "650102030405060708090a0b"}`, `{"title": "x", "createdBy": "x"}`, `{"title": "x", "createdAt": null}`,
			`{"title": "x", "secret": "x"}`, `{"title": "x", "secret": null}`, `{"title": "x", "SECRET": "x"}`, `{"title": "x", "parts.0.sku": "x"}`,
		} {
			if got := s.do("POST", "/api/v1/_/shop/items", token(writeToken), text(body)); got.status != http.StatusBadRequest {
				s.t.Errorf("%s: %s", body, got)
			}
			got := s.do("POST", "/api/v1/_/shop/items", token(writeToken), text(`{"items": [`+body+`]}`))
			if !strings.Contains(got.body, `"succeeded":0`) && got.status != http.StatusBadRequest {
				s.t.Errorf("in bulk, %s: %s %s", body, got, got.body)
			}
		}
	})
}

// S23: nobody becomes more than they are, nor makes another more than they are themselves.
func TestS23PrivilegeEscalation(t *testing.T) {
	onBoth(t, func(s *service) {
		acme, beta := s.make("org", map[string]any{"name": "acme"}), s.make("org", map[string]any{"name": "beta"})
		crew := s.make("team", map[string]any{"name": "crew", "orgId": acme, "scopes": []string{"project.reload"}})
		root, _ := s.user("root2", map[string]any{"isAdmin": true})
		manage := []string{"user.create", "user.delete", "user.read", "user.update", "org.read", "team.read", "project.read"}
		bossID, boss := s.user("boss", map[string]any{"orgIds": []string{acme}, "scopes": manage})
		annID, _ := s.user("ann", map[string]any{"orgIds": []string{acme}})
		strong, _ := s.user("strong", map[string]any{"orgIds": []string{acme}, "scopes": []string{"server.shutdown"}})
		both, _ := s.user("both", map[string]any{"orgIds": []string{acme, beta}})
		project := s.projectID()
		model := func() string {
			return s.do("GET", "/api/v1/user?sort=username", admin).body + s.do("GET", "/api/v1/org", admin).body +
				s.do("GET", "/api/v1/team", admin).body + s.do("GET", "/api/v1/project", admin).body
		}
		before := model()
		for _, tt := range []struct {
			method, path, body string
			status             int
		}{
			{"PUT", "/user/" + bossID, `{"isAdmin": true}`, 403},
			{"PUT", "/user/" + bossID, `{"scopes": ["server.shutdown"]}`, 403},
			{"PUT", "/user/" + bossID, `{"orgIds": []}`, 403},
			{"PUT", "/user/" + bossID, `{"orgIds": null}`, 403},
			{"PUT", "/user/" + bossID, `{"orgIds": ["` + acme + `", "` + beta + `"]}`, 400}, // as one that isn't there
			{"PUT", "/user/" + bossID, `{"teamIds": ["` + crew + `"]}`, 403},
			{"PUT", "/user/" + bossID, `{"password": "taken-over-1"}`, 400},
			{"PUT", "/user/" + strings.ToUpper(bossID), `{"password": "taken-over-1"}`, 400},
			{"PUT", "/me/password", `{"currentPassword": "wrong", "newPassword": "taken-over-1"}`, 403},
			{"PUT", "/me/password", `{"newPassword": "taken-over-1"}`, 400},
			{"PUT", "/user/" + annID, `{"scopes": ["user.read"]}`, 403},
			{"PUT", "/user/" + annID, `{"isAdmin": true}`, 403},
			{"PUT", "/user/" + annID, `{"teamIds": ["` + crew + `"]}`, 403},
			{"PUT", "/user/" + annID, `{"orgIds": []}`, 403},
			{"PUT", "/user/" + strong, `{"password": "taken-over-1"}`, 403},
			{"PUT", "/user/" + strong, `{"email": "boss@example.org"}`, 403},
			{"PUT", "/user/" + strong, `{"scopes": []}`, 403},
			{"DELETE", "/user/" + strong, ``, 403},
			{"PUT", "/user/" + both, `{"password": "taken-over-1"}`, 403},
			{"PUT", "/user/" + both, `{"orgIds": ["` + acme + `"]}`, 403},
			{"PUT", "/user/" + root, `{"password": "taken-over-1"}`, 404},
			{"DELETE", "/user/" + root, ``, 404},
			{"POST", "/user", `{"username": "new", "password": "taken-over-1", "isAdmin": true}`, 403},
			{"POST", "/user", `{"username": "new", "password": "taken-over-1", "scopes": ["user.read"]}`, 403},
			{"POST", "/user", `{"username": "new", "password": "taken-over-1", "orgIds": []}`, 403},
			{"POST", "/user", `{"username": "new", "password": "taken-over-1", "teamIds": ["` + crew + `"]}`, 403},
			{"POST", "/org", `{"name": "mine"}`, 403},
			{"PUT", "/org/" + acme, `{"active": false}`, 403},
			{"DELETE", "/org/" + beta, ``, 403},
			{"POST", "/team", `{"name": "mine", "scopes": ["server.shutdown"]}`, 403},
			{"PUT", "/team/" + crew, `{"scopes": ["server.shutdown"]}`, 403},
			{"PUT", "/team/" + crew, `{"orgId": "` + beta + `"}`, 403},
			{"PUT", "/project/" + project, `{"orgId": "` + acme + `"}`, 403}, // re-parenting
			{"POST", "/project", `{"configFile": "shop/project.yaml"}`, 403},
			{"DELETE", "/project/" + project, ``, 403},
		} {
			if got := s.do(tt.method, "/api/v1"+tt.path, session(boss), text(tt.body)); got.status != tt.status {
				s.t.Errorf("%s %s %s: %s", tt.method, tt.path, tt.body, got)
			}
		}
		if after := model(); after != before {
			s.t.Errorf("something changed:\n%s\n%s", before, after)
		}
		for _, name := range []string{"boss", "ann", "strong", "both", "root2"} {
			s.login(name) // with the password as it was
		}
		// What is allowed: a user of the own org, who gets that org.
		res := s.do("POST", "/api/v1/user", session(boss), text(`{"username": "new", "password": "`+password+`"}`))
		if res.want(s.t, http.StatusCreated); !strings.Contains(res.body, `"orgIds":["`+acme+`"]`) {
			s.t.Error(res.body)
		}
	})
}

// S38: of many who create the same at once, one does, and the index agrees with what is stored.
func TestS38UniqueRace(t *testing.T) {
	const writers = 64
	rounds := 4
	switch {
	case os.Getenv("SOAK") != "":
		rounds = 1000
	case testing.Short():
		rounds = 2
	}
	onBoth(t, func(s *service) {
		eventually(t, func() string { // what isn't indexed yet isn't unique yet
			status := s.do("GET", "/api/v1/project/"+s.projectID()+"/status", admin).body
			if strings.Contains(status, `"type":"IndexesConverged","status":"True"`) {
				return ""
			}
			return status
		})
		for round := range rounds {
			for path, body := range map[string]string{
				"org": `{"name": "n", "slug": "s%d"}`, "team": `{"name": "n", "slug": "s%d"}`, "_/shop/items": `{"title": "t", "n": 1, "slug": "s%d"}`,
			} {
				var wg sync.WaitGroup
				statuses := make(chan int, writers)
				for range writers {
					wg.Go(func() { statuses <- s.do("POST", "/api/v1/"+path, admin, text(fmt.Sprintf(body, round))).status })
				}
				wg.Wait()
				close(statuses)
				count := map[int]int{}
				for status := range statuses {
					count[status]++
				}
				if count[http.StatusCreated] != 1 || count[http.StatusConflict] != writers-1 {
					s.t.Errorf("%s, round %d: %v", path, round, count)
				}
				filter := fmt.Sprintf(`?count=true&filter={"slug":"s%d"}`, round)
				if got := s.do("GET", "/api/v1/"+path+filter, admin).body; !strings.Contains(got, `"total":1`) {
					s.t.Errorf("%s, round %d, by the index: %s", path, round, got)
				}
			}
		}
		for _, path := range []string{"org", "team", "_/shop/items"} {
			if got := s.do("GET", "/api/v1/"+path+"?count=true&limit=0", admin).body; !strings.Contains(got, fmt.Sprintf(`"total":%d`, rounds)) {
				s.t.Errorf("%s: %s", path, got)
			}
		}
	})
}
