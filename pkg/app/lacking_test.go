package app_test

import (
	"net/http"
	"testing"
	"time"
)

// TestUnknownScope sees that a word that is no scope is answered with the one that was meant, and not quoted.
func TestUnknownScope(t *testing.T) {
	s := run(t, nil)
	for scope, want := range map[string]string{
		"project.raed":  "is no scope; did you mean project.read?",
		"team.create":   "is no scope: only administrators have that right",
		"canary-secret": "is no scope: docs/security.md lists them",
		"namespace.a.b": "is no scope: in a project they are namespace.<project>, and namespace.<project>.<collection>.read, .create, .update or .delete",
		"USER.READ":     "is no scope; did you mean user.read?",
	} {
		got := s.do("POST", "/api/v1/team", admin, json1(map[string]any{"name": "T", "scopes": []string{scope}})).String()
		if got != "400 validation_failed: scopes.0: "+want {
			t.Errorf("%s: %s", scope, got)
		}
	}
}

// TestLackingRight sees that a refusal names the right that is lacking, to callers who are logged in, and to them alone.
func TestLackingRight(t *testing.T) {
	s := runShop(t, nil)
	_, ann := s.user("ann", map[string]any{"scopes": []string{"project.read", "namespace.shop.items.update"}})
	pat := s.do("POST", "/api/v1/token", session(ann), json1(map[string]any{
		"name": "p", "scopes": []string{"namespace.shop.items.update"}, "expiresAt": time.Now().Add(time.Hour),
	})).field("token")
	org := s.do("POST", "/api/v1/org", admin, text(`{"name": "Other"}`)).field("id")
	_, limited := s.user("limited", map[string]any{"orgIds": []string{org}})
	for _, tt := range []struct {
		name, method, path string
		by                 option
		want, right        string
	}{
		{"a scope", "GET", "/api/v1/user", session(ann), denied, "user.read"},
		{"a scope for a project", "POST", "/api/v1/_/shop/_/admin/reload", session(ann), denied, "project.reload"},
		{"an administrator's right", "POST", "/api/v1/team", session(ann), denied, "team.create"},
		{"a set does not allow it", "DELETE", "/api/v1/_/shop/items/" + unknownID, session(ann), denied, "delete on items"},
		{"a pat without the scope", "GET", "/api/v1/_/shop/items", session(pat), denied, "namespace.shop.items.read"},
		{"a pat with the scope", "PUT", "/api/v1/_/shop/items/" + unknownID, session(pat), denied, "update on items"},
		{"a pat and a system right", "GET", "/api/v1/project", session(pat), denied, "project.read"},
		{"a project of another org", "GET", "/api/v1/_/shop/items", session(limited), "404 project_not_found: project not found", ""},
		{"nobody", "GET", "/api/v1/user", noop, denied, ""},
		{"nobody, records", "POST", "/api/v1/_/shop/items", noop, denied, ""},
		{"a collection token", "GET", "/api/v1/user", token(collectionToken), "403 permission_denied: permission denied: admin token lacks permission user.read", ""},
		{"a bad credential", "GET", "/api/v1/user", session("nonsense"), denied, ""},
	} {
		got := s.do(tt.method, tt.path, tt.by)
		right := got.field("right")
		if got.String() != tt.want || right != tt.right {
			t.Errorf("%s: %s, right %q; want %s, right %q", tt.name, got, right, tt.want, tt.right)
		}
	}
	s.do("GET", "/api/v1/_/shop/items", session(ann)).want(t, http.StatusOK)
}
