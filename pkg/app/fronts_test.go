package app_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

// onFronts starts a service with the project shop on hosts of its own.
func onFronts(t *testing.T, change func(c *app.Config)) *service {
	t.Helper()
	return runShop(t, func(c *app.Config) {
		c.AdminHosts = []string{"Admin.example.com", "::1"}
		c.Fronts = map[string]string{"www.example.com": "shop", "dead.example.com": "none"}
		if change != nil {
			change(c)
		}
	})
}

func TestHosts(t *testing.T) {
	s := onFronts(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	for _, tt := range []struct{ host, path, want string }{
		{"admin.example.com", "/api/version", "200"},
		{"ADMIN.example.com:8443", "/api/version", "200"},
		{"admin.example.com", "/api/v1/version", "200"},
		{"admin.example.com", "/api/_/shop/items/" + id, "200"},
		{"admin.example.com", "/api/_/shop/%69tems/" + id, "200"},
		{"admin.example.com", "/api/project", denied},
		{"admin.example.com", "/", noRoute},
		{"admin.example.com", "/version", noRoute},
		{"[::1]:8080", "/api/version", "200"},
		{"[::1]", "/api/version", "200"},
		{"www.example.com", "/api/items/" + id, "200"},
		{"WWW.example.com.:443", "/api/items/" + id, "200"},
		{"www.example.com", "/api/items?limit=1", "200"},
		{"www.example.com", "/api/items/_count", "200"},
		{"www.example.com", "/api/project", "404 collection_not_found: collection not found"},
		{"www.example.com", "/api/version", "404 collection_not_found: collection not found"},
		{"www.example.com", "/api/v1", "404 collection_not_found: collection not found"},
		{"www.example.com", "/api/v1/version", "200"},
		{"www.example.com", "/api/_/collections", denied},
		{"www.example.com", "/api/", noRoute},
		{"www.example.com", "/api", noRoute},
		{"www.example.com", "/items/" + id, noRoute},
		{"www.example.com", "/api//items/" + id, noRoute},
		{"www.example.com", "/api/../../project", noRoute},
		{"www.example.com", "/api/items/../../../project", notFound},
		{"www.example.com", "/api/%2E%2E/%2E%2E/project", noRoute},
		{"www.example.com", "/api/v1/_/shop/items", "200"},
		{"dead.example.com", "/api/items", noProject},
		{"other.example.com", "/api/version", noRoute},
		{"other.example.com", "/api/v1/version", "200"},
	} {
		if got := s.do("GET", tt.path, host(tt.host)).String(); got != tt.want {
			t.Errorf("%s%s\ngot  %s\nwant %s", tt.host, tt.path, got, tt.want)
		}
	}
	if next := s.do("GET", "/api/items?limit=1&token="+readToken, host("www.example.com")); strings.Contains(next.header.Get("Link"), readToken) {
		t.Error("a link holds a token")
	}
}

// TestFrontsAreNoOtherDoor: on a front, a request is held against the same rights, and told the same, as on the API's own
// path.
func TestFrontsAreNoOtherDoor(t *testing.T) {
	s := onFronts(t, func(c *app.Config) { c.Fronts["open.example.com"] = "open" })
	s.file("open", "ping.js", "module.exports = () => ({ok: true})")
	s.register("open", corsConfig)
	id := s.item(`{"title": "A", "n": 1}`)
	for _, tt := range []struct {
		name, method, host, front, plain string
		options                          []option
	}{
		{"a record", "GET", "www.example.com", "/api/items/" + id, "/api/v1/_/shop/items/" + id, nil},
		{"its head", "HEAD", "www.example.com", "/api/items/" + id, "/api/v1/_/shop/items/" + id, nil},
		{"known already", "GET", "www.example.com", "/api/items/" + id, "/api/v1/_/shop/items/" + id, []option{header("If-None-Match", `"1"`)}},
		{"without the right", "DELETE", "www.example.com", "/api/items/" + id, "/api/v1/_/shop/items/" + id, nil},
		{"with another's token", "GET", "www.example.com", "/api/items", "/api/v1/_/shop/items", []option{token("made up")}},
		{"a page that may", "GET", "open.example.com", "/api/plain", "/api/v1/_/open/plain", []option{header("Origin", "https://app.example.com")}},
		{"a page that asks", "OPTIONS", "open.example.com", "/api/plain", "/api/v1/_/open/plain", []option{header("Origin", "https://app.example.com"), header("Access-Control-Request-Method", "GET")}},
		{"a page that may not", "GET", "open.example.com", "/api/plain", "/api/v1/_/open/plain", []option{header("Origin", "https://evil.example.org")}},
		{"an action", "GET", "open.example.com", "/api/_/actions/ping", "/api/v1/_/open/_/actions/ping", nil},
		{"no such method", "PUT", "www.example.com", "/api/items/_count", "/api/v1/_/shop/items/_count", []option{header("Content-Type", "application/json")}},
	} {
		id := header("X-Request-Id", "same")
		got := s.do(tt.method, tt.front, append(tt.options, host(tt.host), id)...)
		want := s.do(tt.method, tt.plain, append(tt.options, id)...)
		got.header.Del("Date")
		want.header.Del("Date")
		if d := cmp.Diff(want.header, got.header); d != "" || got.status != want.status || got.body != want.body {
			t.Errorf("%s: %d %s, on the plain path %d %s\n%s", tt.name, got.status, got.body, want.status, want.body, d)
		}
	}
	made := s.do("POST", "/api/items", host("www.example.com"), admin, text(`{"title": "B", "n": 2}`))
	if made.want(t, http.StatusCreated); !strings.HasPrefix(made.header.Get("Location"), "/api/v1/_/shop/items/") {
		t.Errorf("Location: %s", made.header.Get("Location"))
	}
}

// TestHostOfAProxy: the host that a proxy names counts if the proxy is trusted, and the request itself is for no front.
func TestHostOfAProxy(t *testing.T) {
	trusting := onFronts(t, func(c *app.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Fronts["other.example.com"] = "none"
	})
	plain := onFronts(t, nil)
	for _, tt := range []struct {
		name string
		s    *service
		host string
		said []string
		want string
	}{
		{"of one that is not trusted", plain, "127.0.0.1", []string{"www.example.com"}, noRoute},
		{"of one that is", trusting, "127.0.0.1", []string{"www.example.com"}, "200"},
		{"with a port", trusting, "127.0.0.1", []string{"WWW.example.com:443"}, "200"},
		{"its own word is the last", trusting, "127.0.0.1", []string{"other.example.com, www.example.com"}, "200"},
		{"its own header is the last", trusting, "127.0.0.1", []string{"other.example.com", "www.example.com"}, "200"},
		{"what clients wrote before is nothing", trusting, "127.0.0.1", []string{"www.example.com, api.example.com"}, noRoute},
		{"the request names a front", trusting, "other.example.com", []string{"www.example.com"}, noProject},
		{"no host", trusting, "127.0.0.1", []string{"@:/"}, noRoute},
	} {
		got := tt.s.do("GET", "/api/items", host(tt.host), func(r *http.Request) { r.Header["X-Forwarded-Host"] = tt.said })
		if got.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
