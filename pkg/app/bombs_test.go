package app_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFilesOfActions brings files to an action that are too many, or whose names lead elsewhere: what is wrong is said, in
// an answer of bounded size, and nothing runs.
func TestFilesOfActions(t *testing.T) {
	t.Parallel()
	s := run(t, nil)
	s.file("drop", "drop.js", `module.exports = (ctx) => ctx.data.files.map((f) => f.path + ' ' + f.size)`)
	s.register("drop", `
namespace: drop
actions:
  - name: drop
    hooks: {handle: {type: javascript, file: drop.js}}
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
    meta: {methods: {post: {data: [{name: files, type: "file[]"}]}}}
collections:
  - {name: items, permissions: {public: {methods: {}}, user: {methods: {}}}}
`)
	drop := func(files ...string) answer {
		return s.do("POST", "/api/v1/_/drop/_/actions/drop", text(`{"files": [`+strings.Join(files, ",")+`]}`))
	}
	file := func(name, src string) string {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return `{"path": ` + string(quoted) + `, "src": "` + src + `"}`
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = file("a", "data:,")
	}
	if got := drop(many[:1000]...); got.status != http.StatusOK || strings.Count(got.body, "a 0") != 1000 {
		t.Errorf("1000 files: %s %.200s", got, got.body)
	}
	if got := drop(many...); got.status != http.StatusBadRequest || !strings.Contains(got.body, "is one too many: a call may have 1000 files") {
		t.Errorf("1001 files: %s %.200s", got, got.body)
	}
	for i := range many {
		many[i] = file("..", "data:,")
	}
	if got := drop(slices.Concat(many, many)...); got.status != http.StatusBadRequest || len(got.body) > 64<<10 {
		t.Errorf("many bad files: %s, %d bytes", got, len(got.body))
	}
	for _, name := range []string{"", ".", "..", "../a", "a/b", "/etc/passwd", `a\b`, `..\a`, "a\x00b", "a\nb", "a\u0085", strings.Repeat("x", 256), strings.Repeat("\u00e4", 128)} {
		if got := drop(file(name, "data:,x")); got.status != http.StatusBadRequest || !strings.Contains(got.body, `"path":"data.files.0"`) {
			t.Errorf("%q: %s %.200s", name, got, got.body)
		}
	}
	for _, name := range []string{"__proto__", "constructor", "%2e%2e%2fa", "a..b", ".a", strings.Repeat("x", 255)} { // names like others
		if got := drop(file(name, "data:,x")); got.status != http.StatusOK || !strings.Contains(got.body, name+" 1") {
			t.Errorf("%q: %s %.200s", name, got, got.body)
		}
	}
	for _, src := range []string{
		"", "data:", "data:;base64", "data:a;base64,", "data:text/plain;base64,x", "data:text/plain;base64," + strings.Repeat("=", 100_000),
		"data:text/" + strings.Repeat("x;", 100_000) + ",", "data:text/plain,%zz", "file:///etc/passwd", "data:/,",
	} {
		if got := drop(file("a", src)); got.status != http.StatusBadRequest || len(got.body) > 4<<10 {
			t.Errorf("%.60s: %s, %d bytes", src, got, len(got.body))
		}
	}
	large := "data:application/zip;base64," + base64.StdEncoding.EncodeToString(append([]byte("PK\x03\x04"), make([]byte, 700<<10)...))
	if got := drop(file("a.zip", large)); got.status != http.StatusOK || !strings.Contains(got.body, "a.zip "+strconv.Itoa(700<<10+4)) {
		t.Errorf("a large file: %s %.200s", got, got.body)
	}
	if got := drop(file("a", large), file("b", large)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than a body may have: %s", got)
	}
}
