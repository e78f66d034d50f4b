package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

const auditConfig = `
namespace: notes
admin: {tokens: [{name: deploy, value: ` + projectToken + `}]}
audit: {enabled: true}
collections:
  - name: notes
    fields: [{name: text, type: string}, {name: secret, type: string, hidden: true}]
    permissions:
      public: {methods: {get: true}}
      user: {methods: {}}
      "token:` + collectionToken + `": {methods: {get: true, post: true}}
`

// trail gives the entries at a path as a caller sees them, oldest first.
func (s *service) trail(path string, as option) []api.AuditEntry {
	s.t.Helper()
	res := s.do("GET", path, as)
	res.want(s.t, http.StatusOK)
	var list api.List[api.AuditEntry]
	if err := json.Unmarshal([]byte(res.body), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// TestAudit does what the log of the service tells of, and reads it there.
func TestAudit(t *testing.T) {
	s := run(t, nil)
	s.register("notes", auditConfig)
	ann, annToken := s.user("ann", map[string]any{"scopes": []string{"audit.read"}})
	s.do("POST", "/api/v1/login", text(`{"username": "ann", "password": "canary-wrong-1"}`)).want(t, http.StatusForbidden)
	s.do("POST", "/api/v1/login", text(`{"username": "canary-nobody", "password": "canary-wrong-2"}`)).want(t, http.StatusForbidden)
	s.do("PUT", "/api/v1/user/"+ann, admin, header("X-Request-Id", "req-7"), text(`{"name": "Ann"}`)).want(t, http.StatusOK)
	s.do("POST", "/api/v1/_/notes/_/admin/reload?wait=true", session(annToken)).want(t, http.StatusForbidden)
	s.do("POST", "/api/v1/_/notes/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	s.do("POST", "/api/v1/_/notes/_/admin/rollback", admin, text(`{"generation": 9}`)).want(t, http.StatusNotFound)
	s.do("POST", "/api/v1/_/notes/_/admin/rollback", admin, text(`{"generation": 1}`)).want(t, http.StatusOK)
	res := s.do("PUT", "/api/v1/me/password", session(annToken), json1(map[string]any{"currentPassword": password, "newPassword": password + "2"}))
	res.want(t, http.StatusOK)
	s.do("POST", "/api/v1/logout", session(res.field("token"))).want(t, http.StatusNoContent)
	org := s.do("POST", "/api/v1/org", admin, text(`{"name": "Acme"}`)).field("id")
	team := s.do("POST", "/api/v1/team", admin, text(`{"name": "Press", "orgId": "`+org+`"}`)).field("id")
	s.do("DELETE", "/api/v1/team/"+team, admin).want(t, http.StatusOK)
	s.do("DELETE", "/api/v1/org/"+org, admin).want(t, http.StatusOK)
	s.do("DELETE", "/api/v1/user/"+ann, admin).want(t, http.StatusOK)
	key := s.do("POST", "/api/v1/admin/keys/rotate", admin).field("id")
	s.do("POST", "/api/v1/user", admin, text(`{"username": "x"}`)).want(t, http.StatusBadRequest)

	const path = "/api/v1/audit?sort=at"
	entries := s.trail(path, admin)
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Actor.Kind+" "+e.Actor.Name+": "+e.Op+" "+e.Collection+" "+e.RecordID)
		if e.Address != "127.0.0.1" || e.RequestID == "" || e.Kind != "system" {
			t.Errorf("%s of %s from %q, request %q", e.Kind, e.Op, e.Address, e.RequestID)
		}
	}
	want := []string{
		"admin admin token: create projects " + s.projectID(),
		"admin admin token: create users " + ann,
		"user ann: login users " + ann,
		"anonymous : login_failed users " + ann,
		"anonymous : login_failed users ",
		"admin admin token: update users " + ann,
		"admin admin token: reload projects " + s.projectID(),
		"admin admin token: rollback projects " + s.projectID(),
		"user ann: password users " + ann,
		"user ann: logout users " + ann,
		"admin admin token: create orgs " + org,
		"admin admin token: create teams " + team,
		"admin admin token: delete teams " + team,
		"admin admin token: delete orgs " + org,
		"admin admin token: delete users " + ann,
		"admin admin token: rotate-keys  " + key,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	update := s.trail(path+"&filter[requestId]=req-7", admin)
	if len(update) != 1 || !strings.Contains(string(update[0].Before), `"name":""`) || !strings.Contains(string(update[0].After), `"name":"Ann"`) {
		t.Errorf("the update of req-7: %+v", update)
	}
	whole := s.do("GET", path, admin).body
	for _, secret := range []string{password, "canary", "argon2", adminToken, annToken} {
		if strings.Contains(whole, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	report := s.do("GET", "/api/v1/audit/verify", admin)
	if !strings.HasPrefix(report.body, `{"ok":true,"entries":16,`) {
		t.Error(report.body)
	}
}

// TestTheServicesAuditIsForAdministrators asks the log of the service itself as one who has audit.read: whatever happens, the
// answers are the same.
func TestTheServicesAuditIsForAdministrators(t *testing.T) {
	s := run(t, nil)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"audit.read"}})
	ask := func() string {
		var out strings.Builder
		for _, q := range []string{
			"", "?count=true", "?limit=0&count=true", "?offset=2", "?sort=at&limit=1", `?filter={"op":"create"}`, "?filter[actor.name]=reader&count=true", "?filter[hash]=x",
		} {
			res := s.do("GET", "/api/v1/audit"+q, session(reader))
			out.WriteString(res.String() + " " + res.header.Get("Link") + regexp.MustCompile(`"instance":"[^"]*"|"requestId":"[^"]*"`).ReplaceAllString(res.body, "") + "\n")
		}
		return out.String()
	}
	before := ask()
	if !strings.Contains(before, `"items":[]`) || !strings.Contains(before, `"total":0`) || strings.Contains(before, "create") {
		t.Error(before)
	}
	s.user("ann", map[string]any{"isAdmin": true})
	s.register("notes", auditConfig)
	s.do("POST", "/api/v1/_/notes/notes", admin, text(`{"text": "a"}`)).want(t, http.StatusCreated)
	if after := ask(); after != before {
		t.Errorf("%s\n%s", before, after)
	}
}

// TestProjectAudit reads a project's log with and without the rights to it.
func TestProjectAudit(t *testing.T) {
	s := run(t, nil)
	s.register("notes", auditConfig)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"audit.read"}})
	_, other := s.user("other", nil)
	path := "/api/v1/_/notes/_/audit"
	s.do("POST", "/api/v1/_/notes/notes", token(collectionToken), text(`{"text": "a"}`)).want(t, http.StatusCreated)
	s.do("POST", "/api/v1/_/notes/notes", admin, text(`{"text": "b", "secret": "canary-secret"}`)).want(t, http.StatusCreated)

	if got := s.do("GET", path, session(other)).String(); got != denied {
		t.Errorf("without audit.read: %s", got)
	}
	if got := s.do("GET", path, token(collectionToken)).status; got != http.StatusForbidden {
		t.Errorf("with a collection token: %d", got)
	}
	if got := s.trail(path, session(reader)); len(got) != 0 {
		t.Errorf("who may not read the collection sees %+v", got)
	}
	entries := s.trail(path+"?sort=at", admin)
	if len(entries) != 2 || entries[0].Actor.Kind != "token" || entries[0].Actor.ID != hashOf(collectionToken)[:8] || entries[0].Op != "create" {
		t.Fatalf("%+v", entries)
	}
	if body := s.do("GET", path, admin).body; strings.Contains(body, "canary") || !strings.Contains(body, `"secret":"[redacted]"`) {
		t.Error(body)
	}
	s.do("POST", "/api/v1/_/notes/notes", token(projectToken), text(`{"text": "c"}`)).want(t, http.StatusCreated)
	if entries = s.trail(path+"?sort=-at", admin); len(entries) != 3 || entries[0].Actor.Name != "deploy" {
		t.Errorf("the name of an admin token: %+v", entries)
	}
	if report := s.do("GET", "/api/v1/audit/verify?project=notes", admin); !strings.HasPrefix(report.body, `{"ok":true,"entries":3,`) {
		t.Error(report.body)
	}
	for _, name := range []string{"svc.audit", "svc.audit_head", "svc%2Eaudit"} {
		if got := s.do("GET", "/api/v1/_/notes/"+name, admin).String(); got != "404 collection_not_found: collection not found" {
			t.Errorf("%s as a collection: %s", name, got)
		}
	}
}
