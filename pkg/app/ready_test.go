package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestReadyTells: a project that is not ready keeps no instance from serving the others; who asks is told of it, and by name who may know what projects there are.
func TestReadyTells(t *testing.T) {
	t.Parallel()
	s := runShop(t, nil)
	const verbose, fine = "/readyz?verbose", `{"status":"ok","checks":[{"name":"service","status":"ok"},{"name":"store","status":"ok"},{"name":"projects","status":"ok"}]}`
	from := header("X-Forwarded-For", "203.0.113.9")
	s.shows(verbose, fine)
	s.configure("shop", "namespace: shop\nnonsense: 1\n")
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin)
	s.shows(verbose, `{"name":"projects","status":"degraded","message":"not all registered projects are ready [shop (Invalid)]: svcctl status shows which, svcctl project status NAMESPACE why"}`)
	for _, tt := range []struct {
		name, path string
		as         []option
		named      bool
	}{
		{"here", verbose, nil, true},
		{"elsewhere", verbose, []option{from}, false},
		{"elsewhere, with the token of a project", verbose, []option{from, token(projectToken)}, false},
		{"elsewhere, as the administrator of the server", verbose, []option{from, admin}, true},
	} {
		got := s.do("GET", tt.path, tt.as...)
		got.contains(t, http.StatusOK, `"status":"degraded","message":"not all registered projects are ready`)
		if tt.named {
			got.contains(t, http.StatusOK, "[shop (Invalid)]")
		} else {
			got.lacks(t, "shop")
		}
	}
	other := s.register("other", strings.Replace(shopConfig, "namespace: shop", "namespace: other", 1))
	s.configure("shop", shopConfig)
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin)
	s.shows(verbose, fine)
	s.do("PUT", "/api/v1/project/"+other, admin, text(`{"enabled": false}`)).want(t, http.StatusOK)
	s.shows("/api/v1/project/"+other+"/status", `"reason":"Disabled"`)
	if got := s.do("GET", verbose, admin); got.body != fine {
		t.Errorf("with a project that is disabled, which was asked for: %s", got.body)
	}
	if got := s.do("GET", "/readyz").String(); got != `200 {"status":"ok"}` && got != `200` {
		t.Errorf("without verbose: %s", got)
	}
}
