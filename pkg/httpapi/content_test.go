package httpapi_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/httpapi"
)

// answer is a response with its body read.
type answer struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
	Body          string
}

func getFile(t *testing.T, f httpapi.File, method string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if f.By == "" {
		f.By = access.KindAnonymous
	}
	w := httptest.NewRecorder()
	httpapi.ServeFile(f).ServeHTTP(w, r)
	res := w.Result()
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, res.ContentLength, string(data)}
}

// TestS47StoredXSS checks what a browser is told of a file of each kind: nothing that could run is shown.
func TestS47StoredXSS(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]struct {
		kind, media string
	}{
		"image/png":                      {"inline", "image/png"},
		"image/webp":                     {"inline", "image/webp"},
		"video/mp4":                      {"inline", "video/mp4"},
		"application/pdf":                {"inline", "application/pdf"},
		"image/svg+xml":                  {"attachment", "image/svg+xml"},
		"text/html; charset=utf-8":       {"attachment", "text/html; charset=utf-8"},
		"text/xml; charset=utf-8":        {"attachment", "text/xml; charset=utf-8"},
		"text/plain; charset=utf-8":      {"attachment", "text/plain; charset=utf-8"},
		"application/xhtml+xml":          {"attachment", "application/xhtml+xml"},
		"text/javascript":                {"attachment", "text/javascript"},
		"image/png; x=<script>":          {"attachment", "application/octet-stream"},
		"image/png\r\nSet-Cookie: a=b":   {"attachment", "application/octet-stream"},
		"":                               {"attachment", "application/octet-stream"},
		"image":                          {"attachment", "application/octet-stream"},
		"IMAGE/PNG; name=\"a.svg\"":      {"inline", "image/png"},
		"multipart/x-mixed-replace; b=c": {"attachment", "multipart/x-mixed-replace"},
	} {
		res := getFile(t, httpapi.File{Name: "a.bin", Media: media, Tag: "h", Body: []byte("<script>alert(1)</script>")}, http.MethodGet)
		h := res.Header
		kind, _, err := mime.ParseMediaType(h.Get("Content-Disposition"))
		if err != nil || kind != want.kind || h.Get("Content-Type") != want.media {
			t.Errorf("%q goes out as %q, %q (%v), want %+v", media, h.Get("Content-Type"), h.Get("Content-Disposition"), err, want)
		}
		policy := h.Get("Content-Security-Policy")
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%q: %v", media, h)
		}
		if sandbox := strings.Contains(policy, "sandbox"); sandbox == (want.media == "application/pdf") {
			t.Errorf("%q has the policy %q", media, policy)
		}
		if h.Get("Set-Cookie") != "" {
			t.Errorf("%q puts a header of its own in", media)
		}
	}
}

func TestDisposition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.png":         `attachment; filename="a.png"`,
		"two words.png": `attachment; filename="two words.png"`,
		"":              `attachment`,
		`a"b\c%41.png`:  `attachment; filename="a_b_c_41.png"; filename*=UTF-8''a%22b%5Cc%2541.png`,
		"größe.png":     `attachment; filename="gr__e.png"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png`,
		"a\r\nX: y.png": `attachment; filename="a__X: y.png"; filename*=UTF-8''a%0D%0AX%3A%20y.png`,
		"a;b'c.png":     `attachment; filename="a;b'c.png"`,
	} {
		res := getFile(t, httpapi.File{Name: name, Media: "image/png", Download: true}, http.MethodGet)
		got := res.Header.Get("Content-Disposition")
		if got != want {
			t.Errorf("%q goes out as %s\nwant %s", name, got, want)
		}
		if _, _, err := mime.ParseMediaType(got); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
}

// TestS51FileCaching checks that no cache shares what a credential opened, or what is not the same for all.
func TestS51FileCaching(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by     access.Kind
		shared bool
		want   string
	}{
		{access.KindAnonymous, true, "public, max-age=60"},
		{access.KindAnonymous, false, "private, no-cache"},
		{access.KindUser, true, "private, no-cache"},
		{access.KindToken, true, "private, no-cache"},
		{access.KindPAT, true, "private, no-cache"},
	} {
		f := httpapi.File{Name: "a.png", Media: "image/png", Tag: "h", Body: []byte("abc"), Shared: c.shared, By: c.by}
		for _, header := range [][]string{nil, {"If-None-Match", `"h"`}, {"Range", "bytes=0-0"}} {
			res := getFile(t, f, http.MethodGet, header...)
			if got := res.Header.Get("Cache-Control"); got != c.want {
				t.Errorf("%s, shared %v, %v: %q, want %q", c.by, c.shared, header, got, c.want)
			}
		}
		res := getFile(t, f, http.MethodGet, "Range", "bytes=9-")
		if got := res.Header.Get("Cache-Control"); res.StatusCode != http.StatusRequestedRangeNotSatisfiable || got != "no-store" {
			t.Errorf("a refusal: %d %q", res.StatusCode, got)
		}
	}
}

func TestFileConditionsAndRanges(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789"), 100)
	f := httpapi.File{Name: "a.txt", Media: "text/plain; charset=utf-8", Tag: "hash", Body: body}
	for _, c := range []struct {
		name   string
		header []string
		status int
		body   string
	}{
		{"whole", nil, 200, string(body)},
		{"whole, to who takes gzip", []string{"Accept-Encoding", "gzip"}, 200, string(body)},
		{"known", []string{"If-None-Match", `"other", "hash"`}, 304, ""},
		{"known, weakly", []string{"If-None-Match", `W/"hash"`}, 304, ""},
		{"since", []string{"If-Modified-Since", "Wed, 15 Nov 2023 00:00:00 GMT"}, 304, ""},
		{"changed", []string{"If-None-Match", `"other"`}, 200, string(body)},
		{"part", []string{"Range", "bytes=1-3"}, 206, "123"},
		{"part, to who takes gzip", []string{"Range", "bytes=0-499", "Accept-Encoding", "gzip"}, 206, string(body[:500])},
		{"end", []string{"Range", "bytes=-2"}, 206, "89"},
		{"part of the same", []string{"Range", "bytes=0-0", "If-Range", `"hash"`}, 206, "0"},
		{"part of another", []string{"Range", "bytes=0-0", "If-Range", `"other"`}, 200, string(body)},
		{"too many parts", []string{"Range", "bytes=0-0" + strings.Repeat(",2-2", 16)}, 200, string(body)},
		{"not the one", []string{"If-Match", `"other"`}, 412, ""},
		{"beyond", []string{"Range", "bytes=1000-"}, 416, ""},
		{"no range", []string{"Range", "bytes=b-a"}, 416, ""},
		{"no unit", []string{"Range", "1-3"}, 416, ""},
		{"another unit", []string{"Range", "items=0-1"}, 200, string(body)},
		{"a unit in capitals", []string{"Range", "Bytes=1-3"}, 206, "123"},
	} {
		res := getFile(t, f, http.MethodGet, c.header...)
		got := res.Body
		if res.StatusCode != c.status || res.Header.Get("Content-Encoding") != "" && c.status < 400 {
			t.Errorf("%s: %d %v", c.name, res.StatusCode, res.Header)
		}
		if c.status < 400 && got != c.body {
			t.Errorf("%s: %d bytes, want %d", c.name, len(got), len(c.body))
		}
		if c.status < 400 && (res.Header.Get("ETag") != `"hash"` || res.Header.Get("No-Gzip-Compression") != "") {
			t.Errorf("%s: %v", c.name, res.Header)
		}
		if c.status >= 400 && (res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("ETag") != "") {
			t.Errorf("%s: %v %s", c.name, res.Header, got)
		}
	}
	head := getFile(t, f, http.MethodHead)
	if got := head.Body; got != "" || head.ContentLength != int64(len(body)) || head.Header.Get("No-Gzip-Compression") != "" {
		t.Errorf("HEAD: %q, %d bytes, %v", got, head.ContentLength, head.Header)
	}
	parts := getFile(t, f, http.MethodGet, "Range", "bytes=0-1,4-5")
	_, params, err := mime.ParseMediaType(parts.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form := multipart.NewReader(strings.NewReader(parts.Body), params["boundary"])
	for _, want := range []string{"01", "45"} {
		p, err := form.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(p); err != nil || string(got) != want {
			t.Errorf("a part is %q (%v), want %q", got, err, want)
		}
	}
}

// TestS56Ranges sends a thousand ranges that are none: no 5xx, no panic.
func TestS56Ranges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{
		"bytes", "=", "-", ",", "0", "1", "9", "10", "99999999999999999999", "-1", "0x1", "\x00", "items", " ", "\t", "0-", "-0",
		"5-2", "0-9", "bytes=", ";", "\"", "\xff", "1-1,", "9223372036854775807", "--", "é",
	}
	f := httpapi.File{Name: "a.png", Media: "image/png", Tag: "h", Body: []byte("0123456789")}
	for range 1000 {
		var b strings.Builder
		if random.IntN(3) > 0 {
			b.WriteString("bytes=")
		}
		for range 1 + random.IntN(8) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		given := b.String()
		res := getFile(t, f, http.MethodGet, "Range", given)
		got := res.Body
		switch res.StatusCode {
		case http.StatusOK:
			if got != "0123456789" {
				t.Errorf("%q gives %q", given, got)
			}
		case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		default:
			t.Errorf("%q gives %d %s", given, res.StatusCode, got)
		}
	}
}

// The last 0 bytes are a range that nothing satisfies, whatever stands beside it. net/http gives a part without bytes for it.
func TestEmptySuffixRange(t *testing.T) {
	t.Parallel()
	f := httpapi.File{Name: "a.png", Media: "image/png", Tag: "h", Body: []byte("0123456789")}
	for _, tt := range []struct {
		given  []string
		status int
		body   string // "": whatever it is
	}{
		{[]string{"Range", "bytes=-0"}, 416, ""},
		{[]string{"Range", "bytes=-00"}, 416, ""},
		{[]string{"Range", "bytes= -0 "}, 416, ""},
		{[]string{"Range", "bytes=-0,-0, -0"}, 416, ""},
		{[]string{"Range", "bytes=-0,10-"}, 416, ""},
		{[]string{"Range", "bytes=-0,2-3"}, 206, "23"},
		{[]string{"Range", "bytes=2-3,-0"}, 206, "23"},
		{[]string{"Range", "bytes=-01"}, 206, "9"},
		{[]string{"Range", "bytes=0-0"}, 206, "0"},
		{[]string{"Range", "bytes=-0", "If-Range", `"other"`}, 200, "0123456789"},
		{[]string{"Range", "bytes=-0", "If-None-Match", `"h"`}, 304, ""},
	} {
		res := getFile(t, f, http.MethodGet, tt.given...)
		got := res.Body
		if res.StatusCode != tt.status || tt.body != "" && got != tt.body {
			t.Errorf("%q: %d %q, want %d %q", tt.given, res.StatusCode, got, tt.status, tt.body)
		}
		if at := res.Header.Get("Content-Range"); res.StatusCode == http.StatusRequestedRangeNotSatisfiable && at != "bytes */10" {
			t.Errorf("%q: Content-Range is %q", tt.given, at)
		}
	}
}
