package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

const corsConfig = `
namespace: open
cors: {origins: ["https://app.example.com"], maxAge: 1h}
collections:
  - name: plain
    permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}
  - name: shared
    cors: {origins: ["*"], exposeHeaders: [X-Own], methods: [GET]}
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
  - name: logged
    cors: {origins: ["https://app.example.com", "https://*.example.org:8443"], credentials: true, headers: [X-Auth-Token]}
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
  - name: closed
    cors: {}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
actions:
  - name: ping
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    hooks: {handle: {type: javascript, file: ping.js}}
  - name: own
    cors: {origins: ["https://own.example.com"]}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    hooks: {handle: {type: javascript, file: ping.js}}
`

func runOpen(t *testing.T) *service {
	t.Helper()
	s := run(t, func(*app.Config) {})
	s.file("open", "ping.js", "module.exports = () => ({ok: true})")
	s.register("open", corsConfig)
	return s
}

// The config of a collection or an action stands in the place of the project's; what none allows, nobody may.
func TestCORSPlaces(t *testing.T) {
	s := runOpen(t)
	s.register("shop", shopConfig)
	for _, tt := range []struct{ path, origin, want string }{
		{"/open/plain", "https://app.example.com", "https://app.example.com"},
		{"/open/plain", "https://own.example.com", ""},
		{"/open/plain/_count", "https://app.example.com", "https://app.example.com"},
		{"/open/plain/000000000000000000000000", "https://app.example.com", "https://app.example.com"}, // a 404 can be read
		{"/open/plain?nope=1", "https://app.example.com", "https://app.example.com"},
		{"/open/plain?%zz", "https://app.example.com", "https://app.example.com"},
		{"/open/none", "https://app.example.com", "https://app.example.com"},
		{"/open/shared", "https://anybody.example", "*"},
		{"/open/shared", "null", "*"},
		{"/open/logged", "https://app.example.com", "https://app.example.com"}, // a 403 can be read
		{"/open/logged", "https://a.example.org:8443", "https://a.example.org:8443"},
		{"/open/logged", "https://a.example.org", ""},
		{"/open/closed", "https://app.example.com", ""},
		{"/open/_/collections/closed", "https://app.example.com", ""},
		{"/open/_/collections", "https://app.example.com", "https://app.example.com"},
		{"/open/_/actions/ping", "https://app.example.com", "https://app.example.com"},
		{"/open/_/actions/own", "https://app.example.com", ""},
		{"/open/_/actions/own", "https://own.example.com", "https://own.example.com"},
		{"/shop/items", "https://app.example.com", ""},
		{"/none/items", "https://app.example.com", ""},
	} {
		res := s.do("GET", "/api/v1/_"+tt.path, header("Origin", tt.origin))
		if got := res.header.Get("Access-Control-Allow-Origin"); got != tt.want {
			t.Errorf("%s from %s: %s allows %q, want %q", tt.path, tt.origin, res, got, tt.want)
		}
		varies := slices.Contains(res.header.Values("Vary"), "Origin")
		if asked := strings.HasPrefix(tt.path, "/open"); varies != asked {
			t.Errorf("%s: Vary %q", tt.path, res.header.Values("Vary"))
		}
	}
	got := s.do("GET", "/api/v1/_/open/shared", header("Origin", "https://x.example")).header
	for _, name := range []string{"ETag", "Location", "Link", "X-Request-Id", "X-Svc-Generation", "Retry-After", "X-Own"} {
		if !slices.Contains(strings.Split(got.Get("Access-Control-Expose-Headers"), ", "), name) {
			t.Errorf("%s can't be read: %v", name, got)
		}
	}
	if got := s.do("POST", "/api/v1/_/open/shared", header("Origin", "https://x.example"), text(`{}`)); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a method that the config doesn't allow: %v", got.header)
	}
}

// A preflight is answered whoever asks, by the methods that the path has and the config allows.
func TestCORSPreflight(t *testing.T) {
	s := runOpen(t)
	const here = "https://app.example.com"
	for _, tt := range []struct {
		path, origin, method string
		status               int
		methods              string
	}{
		{"/open/plain", here, "POST", http.StatusNoContent, "GET, HEAD, POST, PUT, DELETE"},
		{"/open/plain/000000000000000000000000", here, "PATCH", http.StatusNoContent, "GET, HEAD, PUT, PATCH, DELETE"},
		{"/open/plain", here, "PATCH", http.StatusNoContent, ""},
		{"/open/plain", "https://evil.example", "POST", http.StatusNoContent, ""},
		{"/open/shared", "https://evil.example", "GET", http.StatusNoContent, "GET, HEAD"},
		{"/open/shared", "https://evil.example", "PUT", http.StatusNoContent, ""},
		{"/open/plain/_count", here, "GET", http.StatusNoContent, "GET, HEAD"},
		{"/open/plain/_count", here, "PUT", http.StatusNoContent, ""},
		{"/open/_/actions/ping", here, "GET", http.StatusNoContent, "GET, HEAD, POST"},
		{"/open/_/jobs/none/run", here, "POST", http.StatusNoContent, "POST"},
		{"/none/plain", here, "GET", http.StatusNotFound, ""},
	} {
		for _, shown := range []option{noop, session("no such session"), header("Cookie", "svc_session=x")} { // browsers show nothing
			if tt.status != http.StatusNoContent && shown != nil {
				shown = noop
			}
			res := s.do("OPTIONS", "/api/v1/_"+tt.path, header("Origin", tt.origin), header("Access-Control-Request-Method", tt.method), shown)
			if res.status != tt.status || res.header.Get("Access-Control-Allow-Methods") != tt.methods {
				t.Errorf("%s %s from %s: %s allows %q, want %q", tt.method, tt.path, tt.origin, res, res.header.Get("Access-Control-Allow-Methods"), tt.methods)
			}
		}
	}
	if got := s.do("OPTIONS", "/api/v1/_/open/plain").header.Get("Allow"); got != "GET, HEAD, POST, PUT, DELETE" {
		t.Errorf("who is no browser is told %q", got)
	}
	res := s.do("OPTIONS", "/api/v1/_/open/logged", header("Origin", here), header("Access-Control-Request-Method", "POST"))
	if res.header.Get("Access-Control-Allow-Headers") != "X-Auth-Token" || res.header.Get("Access-Control-Allow-Credentials") != "true" || res.header.Get("Access-Control-Allow-Origin") != here {
		t.Error(res.header)
	}
	if got := s.do("OPTIONS", "/api/v1/_/open/plain", header("Origin", here), header("Access-Control-Request-Method", "POST")).header; got.Get("Access-Control-Max-Age") != "3600" ||
		!strings.Contains(got.Get("Access-Control-Allow-Headers"), "If-Match") || strings.Contains(got.Get("Access-Control-Allow-Headers"), "Admin") {
		t.Error(got)
	}
}

// A page of an allowed origin reads with the session's cookie where the config has credentials, and never writes with it.
func TestCORSCookie(t *testing.T) {
	s := runOpen(t)
	_, ann := s.user("ann", nil)
	from := header("Origin", "https://app.example.com")
	read := s.do("GET", "/api/v1/_/open/logged", from, byCookie(ann))
	read.want(t, http.StatusOK)
	if read.header.Get("Access-Control-Allow-Credentials") != "true" {
		t.Error(read.header)
	}
	if got := s.do("POST", "/api/v1/_/open/logged", from, byCookie(ann), text(`{}`)); !strings.HasPrefix(got.String(), "403 cross_origin") {
		t.Error(got)
	}
	s.do("POST", "/api/v1/_/open/logged", from, session(ann), text(`{}`)).want(t, http.StatusCreated)
}
