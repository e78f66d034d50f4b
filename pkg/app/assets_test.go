package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

const assetsConfig = `
namespace: site
cors: {origins: ["https://www.example.com"]}
assets:
  - {name: static, path: public}
  - {name: img, path: public/img}
collections:
  - name: items
    permissions:
      public: {methods: {}}
      user: {methods: {}}
      "token:` + readToken + `": {methods: {get: true}}
`

const assetsPath = "/api/v1/_/site/_/assets/"

func runSite(t *testing.T) *service {
	t.Helper()
	s := run(t, func(c *app.Config) { c.Fronts = map[string]string{"www.example.com": "site"} })
	for name, text := range map[string]string{
		"public/style.css": "p{}", "public/img/a.svg": "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
		"public/img/a.png": "\x89PNG\r\n\x1a\n", "public/.hidden": "h", "public/page.html": "<script>alert(1)</script>", "public/grüße.txt": "hallo",
		"public/nul.txt": "n", "secret.txt": "s",
	} {
		s.file("site", name, text)
	}
	s.register("site", assetsConfig)
	return s
}

// TestAssets reads assets as everybody may, in whole and in parts, with the headers that every file has.
func TestAssets(t *testing.T) {
	s := runSite(t)
	_, ann := s.user("ann", nil)
	got := s.do("GET", "/api/v1/_/site/_/assets", admin)
	if want := `{"items":[{"name":"static","path":"public","src":"/api/v1/_/site/_/assets/static/"},` +
		`{"name":"img","path":"public/img","src":"/api/v1/_/site/_/assets/img/"}],"limit":2,"offset":0,"hasMore":false}`; got.body != want {
		t.Errorf("%s, want %s", got.body, want)
	}
	got = s.do("GET", assetsPath+"static/style.css")
	for name, want := range map[string]string{
		"Content-Type": "text/css; charset=utf-8", "Content-Disposition": `attachment; filename="style.css"`, "X-Content-Type-Options": "nosniff",
		"Cache-Control": "public, max-age=60", "Accept-Ranges": "bytes", "Content-Length": "3", "X-Svc-Generation": "1",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if !strings.Contains(got.header.Get("Content-Security-Policy"), "sandbox") || got.header.Get("Last-Modified") == "" {
		t.Error(got.header)
	}
	tag, at := got.header.Get("ETag"), assetsPath+"static/style.css"
	for _, tt := range []struct {
		name, method, path string
		options            []option
		want               string
	}{
		{"whole", "GET", at, nil, "200 p{}"},
		{"head", "HEAD", at, nil, "200 "},
		{"a version for caches", "GET", at + "?v=1.2.3", nil, "200 p{}"},
		{"a part", "GET", at, []option{header("Range", "bytes=1-1")}, "206 {"},
		{"no part of it", "GET", at, []option{header("Range", "bytes=9-")}, "416 bad_range: *"},
		{"known", "GET", at, []option{header("If-None-Match", tag)}, "304 "},
		{"known and in parts", "GET", at, []option{header("If-Range", tag), header("Range", "bytes=2-")}, "206 }"},
		{"by a name of its own", "GET", assetsPath + "img/a.png", nil, "200 \x89PNG\r\n\x1a\n"},
		{"below another", "GET", assetsPath + "static/img/a.png", nil, "200 \x89PNG\r\n\x1a\n"},
		{"beyond ASCII", "GET", assetsPath + "static/gr%C3%BC%C3%9Fe.txt", nil, "200 hallo"},
		{"by a user", "GET", at, []option{session(ann)}, "200 p{}"},
		{"by a token of the project", "GET", at, []option{token(readToken)}, "200 p{}"},
		{"by one of none", "GET", at, []option{token("made up")}, denied},
		{"on the front", "GET", "/api/_/assets/static/style.css", []option{host("www.example.com")}, "200 p{}"},
		{"list on the front", "GET", "/api/_/assets", []option{host("www.example.com")}, denied},
	} {
		res := s.do(tt.method, tt.path, tt.options...)
		got := res.String()
		if got != "403 permission_denied: permission denied" && res.header.Get("Content-Type") != "application/problem+json" {
			got += " " + res.body
		}
		if want, start := strings.CutSuffix(tt.want, "*"); got != tt.want && (!start || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for path, want := range map[string]string{
		"img/a.svg": "attachment;", "static/page.html": "attachment;", "img/a.png": "inline;", "img/a.png?download=true": "attachment;",
	} {
		res := s.do("GET", assetsPath+path)
		if got := res.header.Get("Content-Disposition"); !strings.HasPrefix(got, want) || !strings.Contains(res.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %s %q", path, res, got)
		}
	}
	if got := s.do("GET", at, session(ann)).header.Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("with a credential: %s", got)
	}
	if got := s.do("GET", at, header("Origin", "https://www.example.com")).header.Get("Access-Control-Allow-Origin"); got != "https://www.example.com" {
		t.Errorf("for a page that may: %q", got)
	}
}

// TestS44Assets: whatever a path says, nothing is read but files below the asset's folder, and all else is not found.
func TestS44Assets(t *testing.T) {
	s := runSite(t)
	public := filepath.Join(s.dir, "site", "public")
	for name, target := range map[string]string{"out": "../secret.txt", "etc": "/etc", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(public, name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for _, path := range []string{
		"none", "", ".", "..", "%2e", "%2e%2e", "%2E%2E%2fsecret.txt", "../secret.txt", "..%2fsecret.txt", "..%5csecret.txt", "%2e%2e/secret.txt",
		"img/../../secret.txt", "img/%2e%2e/%2e%2e/secret.txt", "img/../style.css", "./style.css", "%2e/style.css", "img%2fa.svg", "img%5ca.svg",
		"..%252fsecret.txt", "%252e%252e/secret.txt", "/style.css", "//style.css", "%2fetc%2fpasswd", "/etc/passwd", "style.css/", "style.css%2f", "img", "img/",
		"img//a.svg", "style.css%00", "style.css%00.png", "%00", "style.css%0a", "style.css%20", "style.css.", "style.css::$DATA", "%ff", "%c0%ae%c0%ae/secret.txt",
		"out", "etc/passwd", "up/secret.txt", ".hidden", "nul.txt", "NUL", "con", "aux.css", "COM1", "lpt9.txt", "CONIN$",
		strings.Repeat("n", 300), strings.Repeat("%6e", 300), strings.Repeat("a/", 500), `\\host\share`, "C:/secret.txt", "c:secret.txt",
	} {
		for _, asset := range []string{"static/", "img/"} {
			for _, method := range []string{"GET", "HEAD"} {
				res := s.do(method, assetsPath+asset+path)
				if res.status != http.StatusNotFound || method == "GET" && res.String() != notFound && res.String() != noRoute {
					t.Errorf("%s %s: %s %q", method, asset+path, res, res.body)
				}
				for _, text := range []string{"svcd", public, "symlink", "no such file", "invalid"} {
					if strings.Contains(res.body, text) {
						t.Errorf("%s tells of the machine: %s", path, res.body)
					}
				}
			}
		}
	}
	for _, asset := range []string{"none", "..", "%2e%2e", "static%2f..", "Static", "static%00"} {
		if got := s.do("GET", assetsPath+asset+"/style.css"); got.status != http.StatusNotFound {
			t.Errorf("%s: %s", asset, got)
		}
	}
	if raw := s.raw("GET " + assetsPath + "static/../../../../../../secret.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(raw, "HTTP/1.1 404 ") {
		t.Error(raw)
	}
}

// TestAssetsChange: a file that changes is served as it is, without a reload; a folder that is gone has none; and a project
// that no more declares an asset has none either.
func TestAssetsChange(t *testing.T) {
	s := runSite(t)
	at := assetsPath + "static/style.css"
	first := s.do("GET", at)
	s.file("site", "public/style.css", "b{}")
	second := s.do("GET", at, header("If-None-Match", first.header.Get("ETag")))
	if second.String() != "200" || second.body != "b{}" || second.header.Get("X-Svc-Generation") != "1" {
		t.Errorf("%s %s", second, second.body)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(s.dir, "site", "public", "style.css"), old, old); err != nil {
		t.Fatal(err)
	}
	if got := s.do("GET", at, header("If-None-Match", second.header.Get("ETag"))); got.status != http.StatusNotModified {
		t.Errorf("a file that only has another time: %s", got)
	}
	s.configure("site", strings.Replace(assetsConfig, "{name: static, path: public}", "{name: files, path: public}", 1))
	s.do("POST", "/api/v1/_/site/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	if got := s.do("GET", at).String(); got != notFound {
		t.Errorf("an asset of before: %s", got)
	}
	if got := s.do("GET", assetsPath+"files/style.css"); got.body != "b{}" {
		t.Errorf("%s", got)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "site", "public")); err != nil {
		t.Fatal(err)
	}
	if got := s.do("GET", assetsPath+"files/style.css").String(); got != notFound {
		t.Errorf("a folder that is gone: %s", got)
	}
}
