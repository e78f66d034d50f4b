package app_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

const picturesConfig = `
namespace: media
collections:
  - name: pictures
    fields:
      - {name: title, type: string}
      - {name: open, type: boolean}
      - {name: file, type: file}
      - {name: secret, type: file, hidden: true}
      - {name: more, type: "file[]"}
    imageFilter:
      thumb: [{width: 8, outputType: jpg}]
      icon: [{width: 4, height: 4, fill: true, outputType: png}]
      web: [{width: 8, outputType: webp}]
      gray: [{grayscale: true}]
    meta: {query: {preview: {type: boolean}}}
    permissions:
      public: {methods: {get: true}, filter: {open: true}}
      user: {methods: {get: true}}
      "token:` + readToken + `": {methods: {get: true}, filter: {title: token}}
  - name: closed
    fields: [{name: file, type: file}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}}}
  - name: posts
    fields: [{name: picture, type: string, meta: {foreign: {collection: pictures}}}]
    permissions: {public: {methods: {get: {allow: true, lookup: true}}}, user: {methods: {}}}
`

const picturesPath = "/api/v1/_/media/pictures"

// pictureService is a service with the project media.
type pictureService struct {
	*service

	data string // its data.dir
}

func runPictures(t *testing.T, change func(c *app.Config)) *pictureService {
	t.Helper()
	m := &pictureService{data: t.TempDir()}
	m.service = run(t, func(c *app.Config) {
		c.DataDir = m.data
		c.Fronts = map[string]string{"www.example.com": "media"}
		if change != nil {
			change(c)
		}
	})
	m.register("media", picturesConfig)
	return m
}

// onPictureStores runs a test on the embedded store and on a MongoDB.
func onPictureStores(t *testing.T, test func(t *testing.T, m *pictureService)) {
	t.Run("embedded", func(t *testing.T) { test(t, runPictures(t, nil)) })
	t.Run("mongo", func(t *testing.T) {
		uri := emptyMongo(t, "svc_media")
		test(t, runPictures(t, func(c *app.Config) { c.StoreURI = uri }))
	})
}

// upload makes a record with a file and gives the record's id and the file's address.
func (m *pictureService) upload(collection, field, name string, data []byte, more string) (id, src string) {
	m.t.Helper()
	value := fmt.Sprintf(`{"src": "data:;base64,%s", "path": %q}`, base64.StdEncoding.EncodeToString(data), name)
	res := m.do("POST", "/api/v1/_/media/"+collection, admin, text(`{"`+field+`": `+value+more+`}`))
	res.want(m.t, http.StatusCreated)
	var file struct{ Src string }
	m.member(res, field, &file)
	if id = res.field("id"); !strings.HasPrefix(file.Src, "/api/v1/_/media/"+collection+"/"+id+"/"+field+"/") {
		m.t.Fatalf("src of %s: %q", name, file.Src)
	}
	return id, file.Src
}

const openRecord = `, "open": true`

// drawn is a picture with something in it.
func drawn(width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetNRGBA(x, y, color.NRGBA{R: byte(x * 255 / width), G: byte(y * 255 / height), B: 90, A: 255})
		}
	}
	return img
}

func encodedPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodedJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFileDoor reads a file in whole and in parts, with the headers that every file has, by those who may.
func TestFileDoor(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, ann := m.user("ann", nil)
		_, at := m.upload("pictures", "file", "my notes.txt", []byte("hello"), openRecord)
		_, closed := m.upload("pictures", "file", "closed.txt", []byte("closed"), "")
		_, tokens := m.upload("pictures", "file", "tokens.txt", []byte("tokens"), `, "title": "token"`)
		_, secret := m.upload("pictures", "secret", "secret.txt", []byte("secret"), openRecord)
		_, users := m.upload("closed", "file", "users.txt", []byte("users"), "")
		got := m.do("GET", at)
		for name, want := range map[string]string{
			"Content-Type": "text/plain", "Content-Disposition": `attachment; filename="my notes.txt"`, "X-Content-Type-Options": "nosniff",
			"Cache-Control": "public, max-age=60", "Accept-Ranges": "bytes", "Content-Length": "5", "X-Svc-Generation": "1",
			"ETag": `"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`,
		} {
			if value := got.header.Get(name); value != want {
				t.Errorf("%s: %q, want %q", name, value, want)
			}
		}
		if !strings.Contains(got.header.Get("Content-Security-Policy"), "sandbox") || got.header.Get("Last-Modified") == "" || !strings.Contains(strings.Join(got.header.Values("Vary"), ","), "X-Auth-Token") {
			t.Error(got.header)
		}
		tag, modified := got.header.Get("ETag"), got.header.Get("Last-Modified")
		front := strings.Replace(at, "/api/v1/_/media/", "/api/", 1)
		for _, tt := range []struct {
			name, method, path string
			options            []option
			want               string
		}{
			{"whole", "GET", at, nil, "200 hello"},
			{"head", "HEAD", at, nil, "200 "},
			{"a part", "GET", at, []option{header("Range", "bytes=1-2")}, "206 el"},
			{"its end", "GET", at, []option{header("Range", "bytes=-2")}, "206 lo"},
			{"no part of it", "GET", at, []option{header("Range", "bytes=9-")}, "416 bad_range: *"},
			{"known", "GET", at, []option{header("If-None-Match", tag)}, "304 "},
			{"known by its time", "GET", at, []option{header("If-Modified-Since", modified)}, "304 "},
			{"another one", "GET", at, []option{header("If-Match", `"other"`)}, "412 stale: *"},
			{"known and in parts", "GET", at, []option{header("If-Range", tag), header("Range", "bytes=4-")}, "206 o"},
			{"another in parts", "GET", at, []option{header("If-Range", `"other"`), header("Range", "bytes=4-")}, "200 hello"},
			{"by a parameter that hooks may read", "GET", at + "?preview=true", nil, "200 hello"},
			{"by one that there is not", "GET", at + "?width=8", nil, "400 unknown_parameter: unknown query parameter: width; a picture of another size or type is asked for by filter=<name>, with a name from the collection's imageFilter"},
			{"by one of lists", "GET", at + "?filter[open]=true", nil, "400 unknown_parameter: *"},
			{"by one of records", "GET", at + "?select=file", nil, "400 unknown_parameter: *"},
			{"to save, perhaps", "GET", at + "?download=maybe", nil, "400 bad_parameter: download must be true or false"},
			{"by a user", "GET", at, []option{session(ann)}, "200 hello"},
			{"by a token that has other records", "GET", at, []option{token(readToken)}, "200 hello"},
			{"by a token of none", "GET", at, []option{token("made up")}, denied},
			{"on the front", "GET", front, []option{host("www.example.com")}, "200 hello"},
			{"not public", "GET", closed, nil, notFound},
			{"not public, by a user", "GET", closed, []option{session(ann)}, "200 closed"},
			{"not public, by the admin", "GET", closed, []option{admin}, "200 closed"},
			{"not the token's", "GET", closed, []option{token(readToken)}, notFound},
			{"the token's", "GET", tokens, []option{token(readToken)}, "200 tokens"},
			{"the token's, without", "GET", tokens, nil, notFound},
			{"hidden", "GET", secret, nil, notFound},
			{"hidden, by a user", "GET", secret, []option{session(ann)}, notFound},
			{"hidden, by the admin", "GET", secret, []option{admin}, "200 secret"},
			{"a closed collection", "GET", users, nil, notFound},
			{"a closed collection, by a user", "GET", users, []option{session(ann)}, "200 users"},
			{"no collection", "GET", strings.Replace(at, "/pictures/", "/none/", 1), nil, "404 collection_not_found: collection not found"},
			{"of another collection", "GET", strings.Replace(at, "/pictures/", "/closed/", 1), []option{admin}, notFound},
			{"by another field", "GET", strings.Replace(at, "/file/", "/more/", 1), []option{admin}, notFound},
			{"no project", "GET", strings.Replace(at, "/media/", "/none/", 1), nil, noProject},
			{"to write", "PUT", at, []option{admin, text("{}")}, "405 *"},
		} {
			res := m.do(tt.method, tt.path, tt.options...)
			got := res.String()
			if res.header.Get("Content-Type") != "application/problem+json" {
				got += " " + res.body
			}
			if want, prefix := strings.CutSuffix(tt.want, "*"); got != tt.want && (!prefix || !strings.HasPrefix(got, want)) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		if got := m.do("HEAD", at).header.Get("Content-Length"); got != "5" {
			t.Errorf("head: %s bytes", got)
		}
	})
}

// TestFilesByOtherWays: lookups and credentials with scopes get at no file that their caller may not read, and what is refused
// looks like what is not there; a file goes with its record.
func TestFilesByOtherWays(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, ann := m.user("ann", map[string]any{"scopes": []string{"namespace.media.pictures.read", "namespace.media.closed.read", "project.read"}})
		_, wide := m.pat(ann, "namespace.media.pictures.read", "namespace.media.closed.read")
		_, other := m.pat(ann, "namespace.media.closed.read")
		_, system := m.pat(ann, "project.read")
		openID, open := m.upload("pictures", "file", "open.txt", []byte("open"), openRecord+`, "secret": {"src": "data:;base64,cw==", "path": "s.txt"}`)
		hiddenID, hidden := m.upload("pictures", "file", "hidden.txt", []byte("hidden"), "")
		missing := strings.Replace(hidden, hiddenID, "65f0c2a1b3d4e5f60718293a", 1)

		for _, tt := range []struct {
			name, path string
			as         option
			want       string
		}{
			{"a token with the collection", hidden, session(wide), "200 hidden"},
			{"a token with another collection", hidden, session(other), notFound},
			{"a token without records", hidden, session(system), notFound},
			{"a hidden field", strings.Replace(open, "/file/open.txt", "/secret/s.txt", 1), session(wide), notFound},
		} {
			got := m.do("GET", tt.path, tt.as)
			if text := got.String() + " " + got.body; text != tt.want && got.String() != tt.want {
				t.Errorf("%s: %s", tt.name, text)
			}
		}

		for name, id := range map[string]string{"open": openID, "hidden": hiddenID} {
			post := m.do("POST", "/api/v1/_/media/posts", admin, text(`{"picture": "`+id+`"}`))
			post.want(t, http.StatusCreated)
			got := m.do("GET", "/api/v1/_/media/posts/"+post.field("id")+"?lookup=picture")
			got.want(t, http.StatusOK)
			if strings.Contains(got.body, "hidden.txt") || strings.Contains(got.body, "s.txt") || strings.Contains(got.body, "open.txt") != (name == "open") {
				t.Errorf("a post with the %s picture: %s", name, got.body)
			}
		}

		plain := func(a answer) string {
			for _, name := range []string{"Date", "X-Request-Id"} {
				a.header.Del(name)
			}
			return fmt.Sprint(a.header, a.String())
		}
		for _, as := range []option{header("Accept", "*/*"), session(other), token(readToken)} {
			if refused, none := plain(m.do("GET", hidden, as)), plain(m.do("GET", missing, as)); refused != none {
				t.Errorf("refused: %s\nnot there: %s", refused, none)
			}
		}

		m.do("DELETE", picturesPath+"/"+openID, admin).want(t, http.StatusOK)
		for _, as := range []option{header("Accept", "*/*"), admin} {
			if got := m.do("GET", open, as).String(); got != notFound {
				t.Errorf("a file whose record was deleted: %s", got)
			}
		}
	})
}

// TestFileOfAnotherOrg: to who has to do with other orgs, there is no such project.
func TestFileOfAnotherOrg(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, at := m.upload("pictures", "file", "a.txt", []byte("a"), openRecord)
		org := m.do("POST", "/api/v1/org", admin, text(`{"name": "Other", "slug": "other"}`)).field("id")
		_, eve := m.user("eve", map[string]any{"orgIds": []string{org}})
		if got := m.do("GET", at, session(eve)).String(); got != noProject {
			t.Errorf("%s", got)
		}
	})
}

// TestS44Files: whatever stands in the path, nothing is read but the files that records name, and all else is not found.
func TestS44Files(t *testing.T) {
	m := runPictures(t, nil)
	id, at := m.upload("pictures", "file", "a.txt", []byte("a"), openRecord)
	folder := filepath.Join(m.data, "uploads", "media", "pictures", id, "file")
	for name, target := range map[string]string{"out": "/etc/passwd", "up": "../../.."} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "stray.txt"), []byte("stray"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(at, "a.txt")
	for _, name := range []string{
		"", ".", "..", "%2e", "%2e%2e", "%2E%2E%2fa.txt", "../a.txt", "../file/a.txt", "..%2ffile%2fa.txt", "..%5cfile%5ca.txt", "%2e%2e/file/a.txt", "./a.txt", "%2e/a.txt",
		"%252e%252e/a.txt", "/a.txt", "//a.txt", "%2fetc%2fpasswd", "/etc/passwd", "a.txt/", "a.txt%2f", "a.txt/x", "a.txt%00", "a.txt%00.png", "%00", "a.txt%0a", "a.txt%20",
		"a.txt.", "a.txt::$DATA", "%ff", "%c0%ae%c0%ae/a.txt", "out", "up", "up/a.txt", "stray.txt", "A.TXT", "NUL", "con", "aux.css", "COM1", "lpt9.txt", "CONIN$",
		strings.Repeat("n", 300), strings.Repeat("%6e", 300), strings.Repeat("a/", 500), `\\host\share`, "C:/a.txt", "c:a.txt",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, query := range []string{"", "?filter=thumb"} {
				res := m.do(method, base+name+query, admin)
				if res.status != http.StatusNotFound || method == "GET" && res.String() != notFound && res.String() != noRoute {
					t.Errorf("%s %s%s: %s %q", method, name, query, res, res.body)
				}
				for _, text := range []string{"svcd", m.data, "symlink", "no such file"} {
					if strings.Contains(res.body, text) {
						t.Errorf("%s tells of the machine: %s", name, res.body)
					}
				}
			}
		}
	}
	for _, path := range []string{
		picturesPath + "/" + id + "/%2e%2e/" + id + "/file/a.txt", picturesPath + "/" + id + "/file%2fa.txt", picturesPath + "/" + id + "/fil%65%00/a.txt",
		picturesPath + "/" + id + "/" + strings.Repeat("f", 300) + "/a.txt", picturesPath + "/..%2f" + id + "/file/a.txt", picturesPath + "/" + strings.ToUpper(id) + "x/file/a.txt",
		picturesPath + "/" + unknownID + "/file/a.txt", picturesPath + "/_count/file/a.txt", picturesPath + "/x/file/a.txt", picturesPath + "/.tmp/file/a.txt",
	} {
		if got := m.do("GET", path, admin); got.status != http.StatusNotFound {
			t.Errorf("%s: %s", path, got)
		}
	}
	if raw := m.raw("GET " + base + "../../../../../../../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(raw, "HTTP/1.1 404 ") {
		t.Error(raw)
	}
	if got := m.do("GET", at); got.body != "a" {
		t.Errorf("the file itself: %s", got)
	}
}

// TestS47Files: a browser runs nothing that is in a file, whatever its name says.
func TestS47Files(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		const script = "<script>alert(document.domain)</script>"
		for name, data := range map[string]string{
			"a.svg":   `<svg xmlns="http://www.w3.org/2000/svg">` + script + "</svg>",
			"a.html":  "<!doctype html><html>" + script + "</html>",
			"a.xml":   `<?xml version="1.0"?><x xmlns:h="http://www.w3.org/1999/xhtml"><h:script>alert(1)</h:script></x>`,
			"a.xhtml": `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">` + script + "</html>",
			"a.txt":   script, "a.md": script, "a": script, "a.js": "alert(1)", "a.bin": "\x00\x01" + script,
		} {
			_, at := m.upload("pictures", "file", name, []byte(data), openRecord)
			res := m.do("GET", at)
			res.want(t, http.StatusOK)
			policy := res.header.Get("Content-Security-Policy")
			if !strings.HasPrefix(res.header.Get("Content-Disposition"), "attachment;") || res.header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(policy, "default-src 'none'") || !strings.HasSuffix(policy, "; sandbox") || res.body != data {
				t.Errorf("%s: %v", name, res.header)
			}
		}
		polyglot := append(encodedPNG(t, drawn(4, 4)), script...)
		_, at := m.upload("pictures", "file", "a.png", polyglot, openRecord)
		res := m.do("GET", at)
		if res.header.Get("Content-Type") != "image/png" || res.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(res.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("a picture with more in it: %v", res.header)
		}
		if res = m.do("GET", at+"?filter=icon"); strings.Contains(res.body, "script") {
			t.Error("a filter gives what is behind a picture")
		}
		if got := m.do("GET", at+"?download=1").header.Get("Content-Disposition"); got != `attachment; filename="a.png"` {
			t.Errorf("to save: %s", got)
		}
	})
}

// TestPictures asks for what filters make of a file.
func TestPictures(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, at := m.upload("pictures", "file", "sun.set.png", encodedPNG(t, drawn(64, 32)), openRecord)
		_, plain := m.upload("pictures", "file", "a.txt", []byte("no picture"), openRecord)
		_, closed := m.upload("pictures", "file", "closed.png", encodedPNG(t, drawn(64, 32)), "")
		original := m.do("GET", at)
		if got := original.header.Get("Content-Disposition"); got != `inline; filename="sun.set.png"` {
			t.Errorf("the file itself: %s", got)
		}
		tags := map[string]bool{original.header.Get("ETag"): true}
		for filter, want := range map[string]string{
			"thumb": `image/jpeg 8x4 inline; filename="sun.set.jpg"`, "icon": `image/png 4x4 inline; filename="sun.set.png"`,
			"web": `image/webp 8x4 inline; filename="sun.set.webp"`, "gray": `image/png 64x32 inline; filename="sun.set.png"`,
		} {
			res := m.do("GET", at+"?filter="+filter)
			res.want(t, http.StatusOK)
			size := "no picture"
			if config, _, err := image.DecodeConfig(strings.NewReader(res.body)); err == nil {
				size = fmt.Sprintf("%dx%d", config.Width, config.Height)
			}
			if got := fmt.Sprint(res.header.Get("Content-Type"), " ", size, " ", res.header.Get("Content-Disposition")); got != want {
				t.Errorf("%s: %s, want %s", filter, got, want)
			}
			tag := res.header.Get("ETag")
			if tags[tag] || res.header.Get("Cache-Control") != "public, max-age=60" || res.header.Get("Last-Modified") != original.header.Get("Last-Modified") {
				t.Errorf("%s: %v", filter, res.header)
			}
			tags[tag] = true
			lossless := strings.HasPrefix(res.body, "RIFF") && res.body[12:16] == "VP8L"
			if warning := res.header.Get("Warning"); strings.HasPrefix(warning, `299 - "lossy WebP needs`) != lossless {
				t.Errorf("%s: lossless %v, warning %q", filter, lossless, warning)
			}
			for name, tt := range map[string]struct {
				o    option
				want string
			}{
				"known":                 {header("If-None-Match", tag), "304 "},
				"weakly":                {header("If-None-Match", `"x", W/`+tag), "304 "},
				"behind what is no tag": {header("If-None-Match", "x, "+tag), "304 "},
				"in a second header":    {func(r *http.Request) { r.Header["If-None-Match"] = []string{`"x"`, tag} }, "304 "},
				"a part":                {header("Range", "bytes=0-3"), "206 " + res.body[:4]},
				"no part":               {header("Range", "bytes=999999-"), "416 bad_range: "},
				"if there":              {header("If-None-Match", "*"), "304 "},
				"again":                 {func(*http.Request) {}, "200 " + res.body},
			} {
				got := m.do("GET", at+"?filter="+filter, tt.o)
				if text := got.String() + " " + got.body; !strings.HasPrefix(text, tt.want) {
					t.Errorf("%s, %s: %.60q", filter, name, text)
				}
			}
			if got := m.do("HEAD", at+"?filter="+filter); got.header.Get("Content-Length") != strconv.Itoa(len(res.body)) || got.header.Get("ETag") != tag {
				t.Errorf("%s: head %v", filter, got.header)
			}
		}
		for path, want := range map[string]string{
			at + "?filter=none": "400 unknown_image_filter: unknown filter: none; the imageFilter of pictures has gray, icon, thumb, web",
			at + "?filter=" + url.QueryEscape(`{"width":8}`): "400 unknown_image_filter: filter takes the name of an image filter, not its steps; the imageFilter of pictures has gray, icon, thumb, web",
			at + "?filter=":                        "400 unknown_image_filter: unknown filter: ; *",
			at + "?filter=thumb&filter=icon":       "400 bad_parameter: filter is given 2 times",
			plain + "?filter=thumb":                "415 image_format: *",
			closed + "?filter=thumb":               notFound,
			closed + "?filter=none":                notFound, // nor is the filter told of
			at[:len(at)-1] + "?filter=thumb":       notFound,
			at + "?filter=thumb&download=1&v=1":    "400 unknown_parameter: *",
			at + "?filter=" + url.QueryEscape(`"`): "400 unknown_image_filter: *",
		} {
			got := m.do("GET", path).String()
			if want, prefix := strings.CutSuffix(want, "*"); got != want && (!prefix || !strings.HasPrefix(got, want)) {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		front := strings.Replace(at, "/api/v1/_/media/", "/api/", 1) + "?filter=thumb"
		if got := m.do("GET", front, host("www.example.com")); got.header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("on the front: %s", got)
		}
		if got := m.do("GET", closed+"?filter=thumb", admin).header.Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("with a credential: %s", got)
		}
	})
}

// bigPNG is a valid PNG of that many black or white pixels.
func bigPNG(t testing.TB, width, height uint32) []byte {
	t.Helper()
	var b, data bytes.Buffer
	chunk := func(name string, body []byte) {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body))))
		b.WriteString(name)
		b.Write(body)
		b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(append([]byte(name), body...))))
	}
	z := zlib.NewWriter(&data)
	row := make([]byte, 1+(width+7)/8)
	for range height {
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\x89PNG\r\n\x1a\n")
	chunk("IHDR", append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height), 1, 0, 0, 0, 0))
	chunk("IDAT", data.Bytes())
	chunk("IEND", nil)
	return b.Bytes()
}

// TestS49Pictures: what is no picture, or too large a one, is refused before it takes memory, and nothing of it is kept.
func TestS49Pictures(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		good := encodedPNG(t, drawn(64, 64))
		bomb := bigPNG(t, 10_000, 10_000)
		if len(bomb) > 16_000 {
			t.Fatalf("the bomb has %d bytes", len(bomb))
		}
		for name, tt := range map[string]struct {
			data []byte
			want string
		}{
			"bomb.png":  {bomb, "422 image_too_large: the picture is 10000×10000 pixels; together these may be 64000000"},
			"cut.png":   {good[:len(good)/2], "400 image_damaged: *"},
			"cut.jpg":   {encodedJPEG(t, drawn(64, 64))[:700], "400 image_damaged: *"},
			"liar.gif":  {[]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,"), "4*"},
			"plain.txt": {[]byte("GIF"), "415 image_format: *"},
			"a.svg":     {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "415 image_format: *"},
		} {
			_, at := m.upload("pictures", "file", name, tt.data, openRecord)
			for range 2 { // the second time it is known
				got := m.do("GET", at+"?filter=thumb").String()
				if want, prefix := strings.CutSuffix(tt.want, "*"); got != tt.want && (!prefix || !strings.HasPrefix(got, want)) {
					t.Errorf("%s: %s, want %s", name, got, tt.want)
				}
			}
			if got := m.do("GET", at); got.body != string(tt.data) {
				t.Errorf("%s itself: %s", name, got)
			}
		}
		kept, err := filepath.Glob(filepath.Join(m.data, "pictures", "*", "*"))
		if err != nil || len(kept) > 0 {
			t.Errorf("%v is kept: %v", kept, err)
		}
		if got := m.made(); got != "" {
			t.Errorf("%s were made", got)
		}
	})
}

// made gives how many pictures were made, "" for none.
func (m *pictureService) made() string {
	m.t.Helper()
	found := regexp.MustCompile(`svc_pictures_total\{outcome="made"\} (\S+)`).FindStringSubmatch(m.do("GET", "/metrics").body)
	if found == nil || found[1] == "0" {
		return ""
	}
	return found[1]
}

// TestS50Pictures: a picture that many ask for at once is made once, only by filters that the config names.
func TestS50Pictures(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, at := m.upload("pictures", "file", "a.jpg", encodedJPEG(t, drawn(1500, 1000)), openRecord)
		const askers = 200
		answers := make(chan answer, askers)
		begin := make(chan struct{})
		var wait sync.WaitGroup
		for range askers {
			wait.Go(func() {
				<-begin
				answers <- m.do("GET", at+"?filter=thumb")
			})
		}
		close(begin)
		wait.Wait()
		close(answers)
		first := ""
		for a := range answers {
			if first == "" {
				first = a.body
			}
			if a.status != http.StatusOK || a.body != first {
				t.Fatalf("%s, %d bytes", a, len(a.body))
			}
		}
		if got := m.made(); got != "1" {
			t.Errorf("it was made %q times", got)
		}
		_, copied := m.upload("pictures", "file", "b.jpg", encodedJPEG(t, drawn(1500, 1000)), openRecord)
		if got := m.do("GET", copied+"?filter=thumb"); got.body != first || got.header.Get("Content-Disposition") != `inline; filename="b.jpg"` || m.made() != "1" {
			t.Errorf("the same content again: %s, made %q times", got, m.made())
		}
	})
}

// TestS51Files: what a credential has opened is for nobody else, and what is not found is not kept.
func TestS51Files(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, ann := m.user("ann", nil)
		data := encodedPNG(t, drawn(16, 16))
		_, open := m.upload("pictures", "file", "open.png", data, openRecord)
		_, closed := m.upload("pictures", "file", "closed.png", data, "")
		for _, query := range []string{"", "?filter=thumb"} {
			for _, tt := range []struct {
				at   string
				by   option
				want string
			}{
				{closed, session(ann), "200 private, no-cache"},
				{closed, admin, "200 private, no-cache"},
				{open, session(ann), "200 private, no-cache"},
				{open, token(readToken), "200 private, no-cache"},
				{open, func(*http.Request) {}, "200 public, max-age=60"},
				{closed, func(*http.Request) {}, "404 no-store"},
				{closed, token(readToken), "404 no-store"},
				{open, token("made up"), "403 no-store"},
			} {
				res := m.do("GET", tt.at+query, tt.by)
				if got := fmt.Sprint(res.status, " ", res.header.Get("Cache-Control")); got != tt.want {
					t.Errorf("%s: %s, want %s", tt.at+query, got, tt.want)
				}
				vary := strings.Join(res.header.Values("Vary"), ",")
				for _, name := range []string{"Token", "X-Auth-Token", "X-Admin-Token", "Authorization", "Cookie"} {
					if res.status == http.StatusOK && !strings.Contains(vary, name) {
						t.Errorf("%s: Vary is %s", tt.at+query, vary)
					}
				}
			}
		}
		// The same content is one picture, and still not for those who may not read the record.
		if got := m.do("GET", closed+"?filter=thumb", header("If-None-Match", m.do("GET", open+"?filter=thumb").header.Get("ETag"))).String(); got != notFound {
			t.Errorf("by the tag of another: %s", got)
		}
	})
}

// TestS56FileRanges: no range, condition or query breaks the service.
func TestS56FileRanges(t *testing.T) {
	onPictureStores(t, func(t *testing.T, m *pictureService) {
		_, at := m.upload("pictures", "file", "a.png", encodedPNG(t, drawn(16, 16)), openRecord)
		random := rand.New(rand.NewPCG(1, 56))
		parts := []string{"bytes=", "bytes", "=", "-", ",", "0", "1", "9", "99999999999999999999", "-1", " ", "items", "\t", "*", "W/", `"`, "x", "18446744073709551615", "0-0,", ";", "é"}
		for i := range 500 {
			var value strings.Builder
			value.WriteString("bytes=")
			for range random.IntN(12) {
				value.WriteString(parts[random.IntN(len(parts))])
			}
			name := []string{"Range", "If-Range", "If-None-Match", "If-Match", "If-Modified-Since"}[i%5]
			path := at
			if i%2 == 0 {
				path += "?filter=icon"
			}
			res := m.do("GET", path, header("Range", value.String()), header(name, value.String()))
			if res.status >= http.StatusInternalServerError {
				t.Errorf("%s: %q: %s", name, value.String(), res)
			}
		}
		if strings.Contains(m.logs.String(), "panic") {
			t.Error("a panic is in the log")
		}
	})
}

// member reads a member of an answer.
func (m *pictureService) member(res answer, name string, into any) {
	m.t.Helper()
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(res.body), &all); err != nil {
		m.t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], into); err != nil {
		m.t.Fatalf("%s: %v in %s", name, err, res.body)
	}
}
