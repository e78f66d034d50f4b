package app_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/app"
)

// more adds another line of a header.
func more(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func TestETags(t *testing.T) {
	const stale = "412 stale: the record has changed since you read it: read it again and repeat the change on its new revision"
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	path := "/api/v1/_/shop/items/" + id
	writer := token(collectionToken)
	for _, tt := range []struct {
		method  string
		options []option
		want    string
		etag    string
	}{
		{"GET", nil, "200", `"1"`},
		{"GET", []option{header("If-None-Match", `"1"`)}, "304", `"1"`},
		{"GET", []option{header("If-None-Match", `"7", W/"1"`)}, "304", `"1"`},
		{"GET", []option{header("If-None-Match", `*`)}, "304", `"1"`},
		{"GET", []option{header("If-None-Match", `"2"`)}, "200", `"1"`},
		{"HEAD", []option{header("If-None-Match", `"1"`)}, "304", `"1"`},
		{"PUT", []option{writer, header("If-Match", `"2"`), text(`{"n": 2}`)}, stale, ""},
		{"PUT", []option{writer, header("If-Match", `1`), text(`{"n": 2}`)}, `412 stale: If-Match must name an ETag that a read of the record gave, with its quotes, such as "3"`, ""},
		{"PUT", []option{writer, header("If-Match", `W/"1"`), text(`{"n": 2}`)}, `412 stale: If-Match must name an ETag that a read of the record gave, with its quotes, such as "3"`, ""},
		{"PUT", []option{writer, header("If-Match", `"1"`), text(`{"n": 2}`)}, "200", `"2"`},
		{"PUT", []option{writer, header("If-Match", `"1"`), text(`{"n": 3}`)}, stale, ""},
		{"PUT", []option{writer, header("If-Match", `*`), text(`{"n": 3}`)}, "200", `"3"`},
		{"PUT", []option{writer, header("If-Match", `"1", W/"3", "2"`), text(`{"n": 2}`)}, stale, ""},
		{"PUT", []option{writer, header("If-Match", `"1", "x,y" ,"3"`), text(`{"n": 2}`)}, "200", `"4"`},
		{"PUT", []option{writer, header("If-Match", `"1"`), more("If-Match", `"4"`), text(`{"n": 2}`)}, "200", `"5"`},
		{"GET", []option{header("If-None-Match", `"1"`), more("If-None-Match", `"5"`)}, "304", `"5"`},
		{"PATCH", []option{writer, header("If-Match", `"2"`), text(`{"n": 4}`)}, stale, ""},
		{"DELETE", []option{writer, header("If-Match", `"2"`)}, stale, ""},
		{"DELETE", []option{writer, header("If-Match", `"1", "5"`)}, "200", ""},
	} {
		got := s.do(tt.method, path, tt.options...)
		if got.String() != tt.want || got.header.Get("ETag") != tt.etag {
			t.Errorf("%s: got %s %s, want %s %s", tt.method, got, got.header.Get("ETag"), tt.want, tt.etag)
		}
		if got.status == http.StatusNotModified && got.body != "" {
			t.Error(got.body)
		}
	}
}

// HEAD is GET without the body, on every route that has GET.
func TestHEAD(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	eventually(t, func() string { // the state of an index is in the answer of _/collections
		if body := s.do("GET", "/api/v1/_/shop/_/collections", admin).body; !strings.Contains(body, `"state":"ready"`) {
			return body
		}
		return ""
	})
	for _, path := range []string{
		"/healthz", "/readyz", "/api/v1/version", "/api/v1/me", "/api/v1/user", "/api/v1/project", "/api/v1/_/shop/items",
		"/api/v1/_/shop/items/" + id, "/api/v1/_/shop/items/_count", "/api/v1/_/shop/_/collections", "/api/v1/_/shop/items/x", "/api/v1/nope",
	} {
		get, head := s.do("GET", path, admin), s.do("HEAD", path, admin)
		if head.status != get.status || head.body != "" {
			t.Errorf("%s: %d %q, GET has %d", path, head.status, head.body, get.status)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "Vary", "Cache-Control"} {
			if head.header.Get(name) != get.header.Get(name) {
				t.Errorf("%s: %s: %q, GET has %q", path, name, head.header.Get(name), get.header.Get(name))
			}
		}
	}
}

func TestCompression(t *testing.T) {
	s := runShop(t, nil)
	for i := range 40 {
		s.item(fmt.Sprintf(`{"title": "Title %d", "n": %d}`, i, i))
	}
	const path = "/api/v1/_/shop/items"
	plain := s.do("GET", path)
	for _, tt := range []struct{ accept, want string }{
		{"gzip", "gzip"}, {"zstd", "zstd"}, {"gzip, zstd", "zstd"}, {"identity", ""}, {"br", ""}, {"gzip;q=0", ""},
	} {
		got := s.do("GET", path, header("Accept-Encoding", tt.accept))
		if got.header.Get("Content-Encoding") != tt.want {
			t.Errorf("%s: %q", tt.accept, got.header.Get("Content-Encoding"))
			continue
		}
		if !strings.Contains(strings.Join(got.header.Values("Vary"), ", "), "Accept-Encoding") {
			t.Errorf("%s: Vary %q", tt.accept, got.header.Values("Vary"))
		}
		if body := decode(t, tt.want, got.body); body != plain.body {
			t.Errorf("%s: another body", tt.accept)
		}
	}
	if got := s.do("GET", "/api/v1/version", header("Accept-Encoding", "gzip")); got.header.Get("Content-Encoding") != "" {
		t.Error("a short answer is not worth compressing")
	}
}

func decode(t *testing.T, encoding, body string) string {
	t.Helper()
	var r io.Reader = strings.NewReader(body)
	var err error
	switch encoding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Answers that a credential opened are not for caches that others use.
func TestCaching(t *testing.T) {
	s := runShop(t, nil)
	for _, tt := range []struct {
		show option
		want string
	}{
		{noop, ""}, {admin, "private, no-cache"}, {token(readToken), "private, no-cache"}, {query("token=" + readToken), "private, no-cache"},
	} {
		got := s.do("GET", "/api/v1/_/shop/items", tt.show)
		vary := strings.Join(got.header.Values("Vary"), ", ")
		if got.header.Get("Cache-Control") != tt.want || !strings.Contains(vary, "Token, X-Auth-Token, X-Admin-Token, Authorization, Cookie") {
			t.Errorf("%q, %q", got.header.Get("Cache-Control"), vary)
		}
	}
	s.user("ann", nil)
	if got := s.do("POST", "/api/v1/login", json1(map[string]any{"username": "ann", "password": password})); got.header.Get("Cache-Control") != "no-store" {
		t.Error(got.header)
	}
}

func TestRequestIDs(t *testing.T) {
	s := runShop(t, nil)
	for given, kept := range map[string]bool{
		"abc-123_x.y:Z": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "": false, "a b": false,
		"\x1b[31m": false, "a\tb": false, `"><script>`: false, "ü": false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Request-Id"] = []string{given}
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil { // the client itself refuses control characters
			continue
		}
		_ = res.Body.Close()
		if got := res.Header.Get("X-Request-Id"); (got == given) != kept || got == "" {
			t.Errorf("%q: %q", given, got)
		}
	}
}

func TestWrongMethods(t *testing.T) {
	s := runShop(t, nil)
	for _, tt := range []struct{ method, path, allow string }{
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/api/v1/version", "GET, HEAD"},
		{"GET", "/api/v1/login", "POST"},
		{"PATCH", "/api/v1/user", "GET, HEAD, POST"},
		{"POST", "/api/v1/project/" + unknownID, "GET, HEAD, PUT, DELETE"},
		{"PATCH", "/api/v1/_/shop/items", "GET, HEAD, POST, PUT, DELETE"},
		{"POST", "/api/v1/_/shop/items/x%2Fy", "GET, HEAD, PUT, PATCH, DELETE"},
		{"OPTIONS", "/api/v1/_/shop/items", "GET, HEAD, POST, PUT, DELETE"},
		{"BREW", "/api/v1/_/shop/items", "GET, HEAD, POST, PUT, DELETE"},
		{"GET", "/api/v1/_/shop/_/admin/reload", "POST"},
		{"PUT", "/api/v1/_/shop/items/_count?filter={}", "GET, HEAD"}, // names with _ are no ids
		{"PATCH", "/api/v1/_/shop/items/_facet", "GET, HEAD"},
		{"DELETE", "/api/v1/_/shop/items/_changes", "GET, HEAD"},
		{"OPTIONS", "/api/v1/_/shop/items/_queue", "GET, HEAD"},
		{"TRACE", "/api/v1/_/shop/items?dryRun=true", "GET, HEAD, POST, PUT, DELETE"}, // which it does not take, whatever is asked of it
	} {
		got := s.do(tt.method, tt.path, admin)
		if got.String() != "405 method_not_allowed: this path does not take that method" {
			t.Errorf("%s %s: %s", tt.method, tt.path, got)
		}
		if diff := cmp.Diff(tt.allow, strings.Join(got.header.Values("Allow"), ", ")); diff != "" {
			t.Errorf("%s %s: %s", tt.method, tt.path, diff)
		}
	}
}

func TestEscapedPaths(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	for path, want := range map[string]string{
		"/api/v1/_/shop/%69tems": "200",
		"/api/v1/_/sh%6Fp/items/" + "%" + strconv.FormatUint(uint64(id[0]), 16) + id[1:]: "200",
		"/api/v1/_/shop%2Fitems/x":           noProject,
		"/api/v1/_/shop/items%2F" + id:       "404 collection_not_found: collection not found",
		"/api/v1/_/shop/items/..%2F" + id:    badID,
		"/api/v1/_/shop/items/%2E%2E":        badID,
		"/api/v1/_/shop/items/" + id + "%00": badID,
		"/api/v1/_/shop/../shop/items":       noRoute,
		"/api/v1/_/shop/./items":             "404 collection_not_found: collection not found",
		"/api/v1/_//items":                   noProject,
		"/api/v1/_/shop//":                   noRoute,
		"//api/v1/version":                   noRoute,
		"/api/v1/_/SHOP/items":               noProject,
		"/api/v1/_/svc_shop/items":           noProject,
		"/api/v1/_/%2E%2E/items":             noProject,
	} {
		if got := s.do("GET", path).String(); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", path, got, want)
		}
	}
}

// The metrics count every request, by labels that callers can't make up.
func TestMetrics(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	s.do("GET", "/api/v1/_/shop/items/"+id)
	s.do("GET", "/api/v1/_/shop/items/"+unknownID)
	s.do("GET", "/api/v1/_/made-up/things")
	s.do("GET", "/api/v1/_/shop/made-up")
	s.do("BREW", "/api/v1/_/shop/items")
	text := s.do("GET", "/metrics").body
	var got []string
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "svc_request_duration_seconds_count"); ok {
			got = append(got, rest)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		`{collection="",method="GET",namespace="",status="404"} 1`,
		`{collection="",method="GET",namespace="shop",status="404"} 1`,
		`{collection="",method="POST",namespace="",status="201"} 1`,
		`{collection="",method="other",namespace="",status="405"} 1`,
		`{collection="items",method="GET",namespace="shop",status="200"} 1`,
		`{collection="items",method="GET",namespace="shop",status="404"} 1`,
		`{collection="items",method="POST",namespace="shop",status="201"} 1`,
	}, got); diff != "" {
		t.Error(diff)
	}
}

// Metrics are for this machine and for the admin, not for what comes through a proxy.
func TestMetricsAreNotPublic(t *testing.T) {
	for _, tt := range []struct {
		name   string
		public bool
		show   []option
		want   string
	}{
		{"here", false, nil, "200"},
		{"proxied", false, []option{header("X-Forwarded-For", "203.0.113.9")}, denied},
		{"proxied, claiming to be here", false, []option{header("X-Forwarded-For", "127.0.0.1")}, denied},
		{"proxied otherwise", false, []option{header("Forwarded", "for=203.0.113.9")}, denied},
		{"proxied by name", false, []option{header("Via", "1.1 cache")}, denied},
		{"proxied with one address", false, []option{header("X-Real-IP", "127.0.0.1")}, denied},
		{"proxied over TLS", false, []option{header("X-Forwarded-Proto", "https")}, denied},
		{"proxied by host", false, []option{header("X-Forwarded-Host", "")}, denied},
		{"proxied admin", false, []option{header("X-Forwarded-For", "203.0.113.9"), admin}, "200"},
		{"public", true, []option{header("X-Forwarded-For", "203.0.113.9")}, "200"},
	} {
		s := run(t, func(c *app.Config) {
			c.MetricsPublic = tt.public
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		})
		if got := s.do("GET", "/metrics", tt.show...).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestNextLink(t *testing.T) {
	s := runShop(t, nil)
	for i := range 5 {
		s.item(fmt.Sprintf(`{"title": "T%d", "n": %d}`, i, i))
	}
	path := "/api/v1/_/shop/items?limit=2&sort=-n&filter[n][gte]=1&token=" + readToken
	var pages []int
	for path != "" {
		got := s.do("GET", path, token(readToken))
		got.want(t, http.StatusOK)
		pages = append(pages, strings.Count(got.body, `"title"`))
		link := got.header.Get("Link")
		if strings.Contains(link, readToken) {
			t.Fatal(link)
		}
		path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	}
	if d := cmp.Diff([]int{2, 2}, pages); d != "" {
		t.Error(d)
	}
}
