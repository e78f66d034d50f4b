package app_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

const mediaConfig = `
namespace: media
upload: {maxBodySize: 200000}
collections:
  - name: library
    strictFields: true
    uploadPath: up/library
    upload: {allowedMimeTypes: ["image/*", text/plain]}
    fields:
      - {name: title, type: string, validator: {max: 20}}
      - {name: slug, type: string, index: [unique, sparse]}
      - {name: file, type: file}
      - {name: files, type: "file[]"}
      - {name: seo, type: object, subFields: [{name: cover, type: file}]}
      - {name: blocks, type: "object[]", subFields: [{name: text, type: string}, {name: picture, type: file}]}
      - {name: secret, type: file, hidden: true}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true}}
      "token:` + collectionToken + `": {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
  - name: small
    upload: {maxBodySize: 500}
    fields: [{name: file, type: file}]
    permissions: {public: {methods: {post: true, get: true}}, user: {methods: {}}}
  - name: open
    fields: [{name: file, type: file}]
    permissions: {public: {methods: {post: true, get: true, put: true}}, user: {methods: {}}}
  - name: many
    upload: {maxBodySize: 100MB}
    fields: [{name: files, type: "file[]"}]
    permissions: {public: {methods: {post: {bulk: true}}}, user: {methods: {}}}
  - name: wide
    upload: {maxBodySize: 100MB}
    fields: [{name: file, type: file}]
    permissions: {public: {methods: {post: true, get: true}}, user: {methods: {}}}
  - name: front
    meta: {singleton: true}
    fields: [{name: logo, type: file}, {name: title, type: string}]
    permissions: {public: {methods: {post: true, get: true, put: true, delete: true}}, user: {methods: {}}}
`

const library = "/api/v1/_/media/library"

// mediaService is a service with the project above.
type mediaService struct {
	*service

	data string
}

func onMedia(t *testing.T, test func(t *testing.T, s mediaService)) {
	t.Helper()
	onMediaWith(t, mediaConfig, test)
}

// onMediaWith is onMedia for a project with that configuration; "": the test registers it.
func onMediaWith(t *testing.T, config string, test func(t *testing.T, s mediaService)) {
	t.Helper()
	for _, name := range []string{"embedded", "mongodb"} {
		t.Run(name, func(t *testing.T) {
			uri := ""
			if name == "mongodb" {
				uri = emptyMongo(t, "svc_media", "svc_copy", "svc_one", "svc_two")
			}
			s := mediaService{data: t.TempDir()}
			s.service = run(t, func(c *app.Config) { c.StoreURI, c.DataDir = uri, s.data })
			if config != "" {
				s.register("media", config)
			}
			test(t, s)
		})
	}
}

// onDisk lists the files that are kept for a project, by their place below its folder.
func (s mediaService) onDisk() []string {
	s.t.Helper()
	root := filepath.Join(s.data, "uploads", "media")
	found := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".claims" {
			return err
		}
		name, err := filepath.Rel(root, path)
		found = append(found, filepath.ToSlash(name))
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return found
}

// disk checks what is kept.
func (s mediaService) disk(step string, want ...string) {
	s.t.Helper()
	slices.Sort(want)
	if d := cmp.Diff(append([]string{}, want...), s.onDisk()); d != "" {
		s.t.Errorf("%s: on the disk (-want +got):\n%s", step, d)
	}
}

func dataURL(content string) string {
	return "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString([]byte(content))
}

// fileJSON is a file as a body brings it.
func fileJSON(name, content string) string {
	return fmt.Sprintf(`{"src":%q,"path":%q}`, dataURL(content), name)
}

func pngOf(width, height int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.String()
}

// part is one of a form; those without a file name are texts.
type part struct{ name, file, content string }

func form(parts ...part) option {
	return func(r *http.Request) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, p := range parts {
			disposition := fmt.Sprintf("form-data; name=%q", p.name)
			if p.file != "" {
				disposition += fmt.Sprintf("; filename=%q", p.file)
			}
			to, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
			if err == nil {
				_, err = io.WriteString(to, p.content)
			}
			if err != nil {
				panic(err)
			}
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", w.FormDataContentType())
		r.Body, r.ContentLength = io.NopCloser(&b), int64(b.Len())
	}
}

// at gives the JSON of a member of an answer, by a path with dots.
func (a answer) at(path string) string {
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		return err.Error()
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(in) {
				return "there is no " + name
			}
			v = in[i]
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

var writer = token(collectionToken)

func TestUploads(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		picture := pngOf(3, 2)
		res := s.do("POST", library, writer, text(`{"title":"a","file":{"alt":"An A","size":7,"src":"`+dataURL(picture)+`","path":"../x/Größe 1.png"}}`))
		if got := res.String(); !strings.HasPrefix(got, `400 `) || !strings.Contains(got, `has a part ".."`) {
			t.Errorf("a name that leads out: %s", got)
		}
		s.disk("nothing")
		res = s.do("POST", library, writer, text(`{"title":"a","file":{"alt":"An A","size":7,"src":"`+dataURL(picture)+`","path":"Größe 1.png"}}`))
		res.want(t, 201)
		id := res.field("id")
		src := "/api/v1/_/media/library/" + id + "/file/Gr%C3%B6%C3%9Fe%201.png"
		want := fmt.Sprintf(`{"src":%q,"path":"Größe 1.png","size":%d,"type":"image/png","width":3,"height":2,"hash":%q,"alt":"An A"}`, src, len(picture), contentHash(picture))
		if !strings.Contains(res.body, `"file":`+want) {
			t.Errorf("%s\nwant %s", res.body, want)
		}
		own := "up/library/" + id + "/"
		if got := s.do("GET", src); got.status != 200 || got.body != picture {
			t.Errorf("what was stored is read as %s", got)
		}
		s.disk("a data URL", own+"file/Größe 1.png")

		// What was sent back stays, and the client's own members can change.
		one := library + "/" + id
		for _, body := range []string{`{"title":"b"}`, `{"file":{"alt":"B"}}`, `{"file":{"src":"` + src + `","alt":"B","hash":"made up"}}`} {
			s.do("PUT", one, writer, text(body)).want(t, 200)
		}
		res = s.do("PUT", one+"?replace=true", writer, text(`{"title":"c","file":{"src":"`+src+`","alt":"C"}}`))
		if got := res.at("file.hash") + res.at("file.alt") + res.at("file.path"); res.status != 200 || got != `"`+contentHash(picture)+`""C""Größe 1.png"` {
			t.Errorf("sent back: %s %s", res, res.body)
		}
		s.disk("sent back", own+"file/Größe 1.png")

		// Another takes its place, and the first goes.
		res = s.do("PATCH", one, writer, header("Content-Type", "application/merge-patch+json"), text(`{"file":`+fileJSON("n.txt", "new")+`}`))
		if res.status != 200 || res.at("file.alt") != `"C"` || res.at("file.width") != "null" || res.at("file.type") != `"text/plain"` {
			t.Errorf("replaced: %s %s", res, res.body)
		}
		s.disk("replaced", own+"file/n.txt")
		res = s.do("PATCH", one, writer, header("Content-Type", "application/json-patch+json"),
			text(`[{"op":"add","path":"/files","value":[`+fileJSON("n.txt", "1")+`,`+fileJSON("n.txt", "2")+`]},{"op":"add","path":"/seo","value":{"cover":`+fileJSON("c.txt", "c")+`}}]`))
		res.want(t, 200)
		second := "n-" + contentHash("2")[:8] + ".txt"
		s.disk("a JSON patch", own+"file/n.txt", own+"files/n.txt", own+"files/"+second, own+"seo.cover/c.txt")
		if res.at("files.1.path") != `"`+second+`"` || res.at("seo.cover.src") != `"`+one+`/seo.cover/c.txt"` {
			t.Error(res.body)
		}

		// A form: lists grow from what the part data has, in the order of the parts.
		res = s.do("PUT", one, writer, form(part{"files", "p.txt", "p"}, part{"data", "", `{"title":"f","files":[` + res.at("files.1") + `,{"alt":"P"}],"blocks":[{"text":"x"}]}`},
			part{"files", "q.txt", "q"}, part{"blocks.0.picture", "b.txt", "b"}, part{"seo.cover", "d.txt", "d"}))
		res.want(t, 200)
		if got := res.at("files.0.path") + res.at("files.1.path") + res.at("files.1.alt") + res.at("files.2.path") + res.at("blocks.0.text") + res.at("title"); got != `"`+second+`""p.txt""P""q.txt""x""f"` {
			t.Errorf("a form: %s", res.body)
		}
		s.disk("a form", own+"file/n.txt", own+"files/"+second, own+"files/p.txt", own+"files/q.txt", own+"blocks.picture/b.txt", own+"seo.cover/d.txt")

		// A dry run leaves nothing, nor does what is refused.
		s.do("PUT", one+"?dryRun=true", writer, text(`{"file":`+fileJSON("dry.txt", "dry")+`}`)).want(t, 200)
		s.do("POST", library+"?dryRun=true", writer, form(part{"file", "dry.txt", "dry"})).want(t, 200)
		s.do("POST", library, writer, text(`{"slug":"taken"}`)).want(t, 201)
		for giveUp := time.Now().Add(time.Minute); s.do("POST", library+"?dryRun=true", writer, text(`{"slug":"taken"}`)).status != 409; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(giveUp) {
				t.Fatal("the unique index is not made")
			}
		}
		s.do("POST", library, writer, text(`{"slug":"taken","file":`+fileJSON("x.txt", "x")+`}`)).want(t, 409)
		s.do("PUT", one, writer, text(`{"title":"`+strings.Repeat("x", 21)+`","file":`+fileJSON("x.txt", "x")+`}`)).want(t, 400)
		s.disk("refused", own+"file/n.txt", own+"files/"+second, own+"files/p.txt", own+"files/q.txt", own+"blocks.picture/b.txt", own+"seo.cover/d.txt")

		res = s.do("PUT", one, writer, text(`{"file":null,"files":[],"seo":null,"blocks":null}`))
		res.want(t, 200)
		s.disk("taken away")
		s.do("PUT", one, writer, text(`{"file":`+fileJSON("x.txt", "x")+`}`)).want(t, 200)
		if got := s.do("DELETE", one, writer); got.status != 200 || got.body != `{"id":"`+id+`"}` {
			t.Errorf("deleted: %s", got.body)
		}
		s.disk("deleted")
	})
}

func TestUploadsInBulk(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		res := s.do("POST", library, writer, text(`{"items":[{"title":"a","file":`+fileJSON("a.txt", "a")+`},{"title":"`+strings.Repeat("x", 21)+`","file":`+fileJSON("b.txt", "b")+`}]}`))
		res.want(t, 207)
		a := strings.Trim(res.at("items.0.id"), `"`)
		s.disk("a bulk create", "up/library/"+a+"/file/a.txt")
		res = s.do("POST", library, writer, form(part{"data", "", `{"items":[{"title":"c"},{"title":"d"}]}`}, part{"items.1.file", "d.txt", "d"}))
		res.want(t, 201)
		d := strings.Trim(res.at("items.1.id"), `"`)
		s.disk("a form", "up/library/"+a+"/file/a.txt", "up/library/"+d+"/file/d.txt")
		s.do("PUT", library+"?filter[title]=a", writer, text(`{"seo":{"cover":`+fileJSON("s.txt", "s")+`}}`)).want(t, 200)
		s.disk("a bulk update", "up/library/"+a+"/file/a.txt", "up/library/"+a+"/seo.cover/s.txt", "up/library/"+d+"/file/d.txt")
		if got := s.do("PUT", library+"?filter[title]=a", writer, form(part{"file", "x.txt", "x"})).String(); !strings.HasPrefix(got, "400 bad_form: a form is for the record of one id") {
			t.Errorf("a form for many: %s", got)
		}
		s.do("DELETE", library+"?filter[title][in]=[\"a\",\"d\"]", writer)
		s.do("DELETE", library+`?filter={"title":{"$in":["a","d"]}}`, writer).want(t, 200)
		s.disk("a bulk delete")

		// A request that is sent again is carried out once.
		for range 2 {
			s.do("POST", library, writer, header("Idempotency-Key", "k"), text(`{"file":`+fileJSON("k.txt", "k")+`}`)).want(t, 201)
		}
		if got := s.onDisk(); len(got) != 1 {
			t.Errorf("sent again: %v", got)
		}

		for _, step := range []struct {
			method, body, want string
		}{
			{"PUT", `{"logo":` + fileJSON("l.txt", "l") + `}`, "201"},
			{"PUT", `{"logo":` + fileJSON("m.txt", "m") + `}`, "200"},
		} {
			if got := s.do(step.method, "/api/v1/_/media/front", text(step.body)).String(); got != step.want {
				t.Errorf("a singleton: %s", got)
			}
		}
		if got := s.onDisk(); len(got) != 2 || !strings.HasSuffix(got[0], "/logo/m.txt") {
			t.Errorf("a singleton: %v", got)
		}
	})
}

// S45: a src keeps a file only in the record and field that has it.
func TestS45SentBackSrc(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		res := s.do("POST", library, writer, text(`{"file":`+fileJSON("a.txt", "a")+`,"files":[`+fileJSON("b.txt", "b")+`]}`))
		res.want(t, 201)
		a, file, list := res.field("id"), res.at("file.src"), res.at("files.0.src")
		other := s.do("POST", library, writer, text(`{"title":"other"}`)).field("id")
		before := s.onDisk()
		for name, try := range map[string][3]string{
			"another record's":            {"PUT", "/" + other, `{"file":{"src":` + file + `,"path":"a.txt"}}`},
			"another field's":             {"PUT", "/" + a, `{"file":{"src":` + list + `,"path":"b.txt"}}`},
			"in a create":                 {"POST", "", `{"file":{"src":` + file + `,"path":"a.txt"}}`},
			"one that is not there":       {"PUT", "/" + a, `{"file":{"src":"` + library + "/" + a + `/file/zzz.txt","path":"zzz.txt"}}`},
			"a path of the disk":          {"PUT", "/" + a, `{"file":{"src":"/etc/passwd","path":"passwd"}}`},
			"an address elsewhere":        {"PUT", "/" + a, `{"file":{"src":"http://127.0.0.1/x.png","path":"x.png"}}`},
			"what stands for an upload":   {"PUT", "/" + a, `{"file":{"src":"upload:ABCDEFGHIJKLMNOPQRSTUVWXYZ","path":"x.png"}}`},
			"with another name":           {"PUT", "/" + a, `{"file":{"src":` + file + `,"path":"renamed.txt"}}`},
			"in a list, another record's": {"PUT", "/" + other, `{"files":[{"src":` + list + `,"path":"b.txt"}]}`},
			"by a filter":                 {"PUT", "?filter[title]=other&x=", `{"file":{"src":` + file + `,"path":"a.txt"}}`},
		} {
			path := strings.TrimSuffix(try[1], "&x=")
			res := s.do(try[0], library+path, writer, text(try[2]))
			if (res.status != 400 && res.status != 207) || !strings.Contains(res.body, "file.src") && !strings.Contains(res.body, "files.0.src") && !strings.Contains(res.body, "under its new name") {
				t.Errorf("%s: %d %s", name, res.status, res.body)
			}
		}
		for _, try := range []option{text(`{"file":{"src":"` + dataURL("x") + `","type":"text/html","hash":"00"}}`), text(`{"file":{"src":"` + dataURL("x") + `"}}`)} {
			res := s.do("PATCH", library+"/"+a, writer, try, header("Content-Type", "application/merge-patch+json"))
			if res.status != 400 || !strings.Contains(res.body, "needs the name of its file") {
				t.Errorf("without a name, which the file before had: %d %s", res.status, res.body)
			}
		}
		s.disk("refused", before...)
		for name, want := range map[string]int{
			"CON.txt": 201, ".htaccess": 201, strings.Repeat("ä", 200) + ".txt": 201, "a:b|c.txt": 201, "x/y/z.txt": 201, `x\y.txt`: 201,
			"..": 400, "../a.txt": 400, `..\\a.txt`: 400, "a%2e%2e%2fb.txt": 400, "a%5cb.txt": 400, "a\x00b.txt": 400, "a\nb.txt": 400, "%252e%252e/x.txt": 400,
		} {
			body, err := json.Marshal(map[string]any{"file": map[string]any{"src": dataURL("x"), "path": name}})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.do("POST", library, writer, text(string(body))); got.status != want {
				t.Errorf("%q: %s", name, got)
			}
		}
		for _, place := range s.onDisk() {
			name := filepath.Base(place)
			if len(name) > 255 || !strings.HasPrefix(place, "up/library/") || strings.Count(place, "/") != 4 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "CON") {
				t.Errorf("kept as %q", place)
			}
		}
		for _, id := range []string{"..", "%2e%2e", "file", "*", "000"} {
			if got := s.do("DELETE", library+"/"+id, writer); got.status < 400 {
				t.Errorf("DELETE %s: %s", id, got)
			}
		}
	})
}

// S48: what can be stored is decided by the content, whatever it is called and said to be.
func TestS48ContentDecides(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		html, pdf := "<!DOCTYPE html><script>alert(1)</script>", "%PDF-1.7\n1 0 obj"
		for _, tt := range []struct{ name, head, content, want string }{
			{"a.png", "image/png", pngOf(1, 1), "201"},
			{"a", "text/html", "plain", "201"},
			{"a.png", "image/png", html, "the name ends in .png, which is image/png, but the content is text/html"},
			{"a.bin", "image/png", html, "the content of the file is text/html, and only image/*, text/plain can be stored here"},
			{"a", "image/png;charset=text", pdf, "the content of the file is application/pdf"},
			{"a.txt", "text/plain", html, "text/html"},
			{"a.gif", "image/gif", "GIF89a<script>", "201"},
			{"a.png", "image/jpeg", pngOf(1, 1)[:20], "damaged"},
			{"a.svg", "image/png", "<svg xmlns='http://www.w3.org/2000/svg'/>", "201"},
		} {
			src := "data:" + tt.head + ";base64," + base64.StdEncoding.EncodeToString([]byte(tt.content))
			for door, got := range map[string]answer{
				"create": s.do("POST", library, writer, text(fmt.Sprintf(`{"file":{"src":%q,"path":%q}}`, src, tt.name))),
				"bulk":   s.do("POST", library, writer, text(fmt.Sprintf(`{"items":[{"file":{"src":%q,"path":%q}}]}`, src, tt.name))),
				"form":   s.do("POST", library, writer, form(part{"file", tt.name, tt.content})),
			} {
				good := tt.want == "201" && got.status == 201
				bad := tt.want != "201" && (got.status == 400 || got.status == 207) && strings.Contains(got.body, tt.want)
				if !good && !bad {
					t.Errorf("%s as %s by %s: %d %s", tt.name, tt.head, door, got.status, got.body)
				}
			}
		}
		for _, place := range s.onDisk() {
			if strings.HasSuffix(place, ".bin") || strings.HasSuffix(place, ".txt") {
				t.Errorf("%s is kept", place)
			}
		}
	})
}

// S56: no data URL or form, however wrong, is more than a clear refusal, and leaves anything.
func TestS56BadUploads(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		for _, src := range []string{
			"data:", "data:,", "data:;base64", "data:;base64,%%%", "data:image/png;base64,iVBORw0", "data:image/png;base64,i VBO", "data:image/png;base64,iVBO\\nRw0K",
			"data:image/png,abc", "data:text/plain,hello", "data:/;base64,YQ==", "data:a;b;c;base64,YQ==", "data:image/png;base64,YQ=", "data:image/png;base64,YQ===", "data:image/png;base64,YR==",
			"data:" + strings.Repeat("x", 300) + ";base64,YQ==", "DATA:image/png;BASE64,*", "data:image/png;base64,", "data:image/png;base64,iVBORw0KGgo=",
		} {
			got := s.do("POST", library, writer, text(`{"file":{"src":"`+src+`","path":"a.png"}}`))
			if got.status != 400 || got.field("code") != "validation_failed" && got.field("code") != "validation" || !strings.Contains(got.body, `"path":"file"`) {
				t.Errorf("%.60s: %d %s", src, got.status, got.body)
			}
		}
		for _, v := range []string{`5`, `"x"`, `[]`, `{}`, `{"src":5,"path":"a"}`, `{"path":"a.png"}`, `{"src":"` + dataURL("x") + `"}`, `{"src":"` + dataURL("x") + `","path":7}`} {
			if got := s.do("POST", library, writer, text(`{"file":`+v+`}`)); got.status != 400 || !strings.Contains(got.body, `"path":"file`) {
				t.Errorf("%.60s: %d %s", v, got.status, got.body)
			}
		}
		type bad struct {
			name  string
			parts []part
			want  string
		}
		for _, tt := range []bad{
			{"no such field", []part{{"nothing", "a.txt", "a"}}, `nothing: unknown file field; library has file, files, seo.cover, blocks.picture"`},
			{"a hidden field", []part{{"secret", "a.txt", "a"}}, "secret: unknown file field"},
			{"a field of another type", []part{{"title", "a.txt", "a"}}, "title: unknown file field"},
			{"a text", []part{{"title", "", "a"}}, "has no file name"},
			{"twice the record", []part{{"data", "", "{}"}, {"data", "", "{}"}}, "more than one part"},
			{"no JSON", []part{{"data", "", "title=1"}}, ""},
			{"no object for it", []part{{"blocks.0.picture", "a.txt", "a"}}, "no place for this file"},
			{"a position in what is no list", []part{{"file.0", "a.txt", "a"}}, ""},
			{"the field is something else", []part{{"data", "", `{"files":5}`}, {"files", "a.txt", "a"}}, "no place for this file"},
			{"two for one that are good", []part{{"file", "a.txt", "a"}, {"file", "b.txt", "b"}}, "more than one file for this place"},
			{"two for one in a list", []part{{"files.0", "a.txt", "a"}, {"files.0", "b.txt", "b"}}, "more than one file for this place"},
			{"two for one", []part{{"file", "a.txt", "a"}, {"file", "../b.txt", "b"}}, `has a part \"..\"`},
		} {
			if got := s.do("POST", library, writer, form(tt.parts...)); got.status != 400 || !strings.Contains(got.body, tt.want) {
				t.Errorf("%s: %d %s", tt.name, got.status, got.body)
			}
		}
		whole := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nabc\r\n--b--\r\n"
		form := header("Content-Type", "multipart/form-data; boundary=b")
		s.do("POST", library, writer, form, text(whole)).want(t, 201)
		for cut := range len(whole) - 5 {
			if got := s.do("POST", library, writer, form, text(whole[:cut])); got.status != 400 {
				t.Errorf("cut at %d: %d %s", cut, got.status, got.body)
			}
		}
		for _, kind := range []string{"multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=b", "text/plain"} {
			if got := s.do("POST", library, writer, header("Content-Type", kind), text(whole)); got.status != 400 && got.status != 415 {
				t.Errorf("%s: %d %s", kind, got.status, got.body)
			}
		}
		if got := s.onDisk(); len(got) != 1 {
			t.Errorf("on the disk: %v", got)
		}
	})
}

// A form that is cut off writes nothing, whatever its content looks like, with a key and without.
func TestCutOffForms(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		const head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n"
		// What stands in the middle of a line, or behind a bare line feed, is content and no end.
		whole := head + "a --b-- b\n--b--\nc\r\n --b--\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{}\r\n--b--"
		form := header("Content-Type", "multipart/form-data; boundary=b")
		n := 0
		for cut := range whole {
			for _, o := range []option{func(*http.Request) {}, key(fmt.Sprintf("cut-%d", cut))} {
				if got := s.do("POST", library, writer, o, text(whole[:cut]), form); got.status != 400 {
					t.Errorf("cut at %d of %d: %d %s", cut, len(whole), got.status, got.body)
				}
			}
		}
		// A form that is whole, in a body that is not: the length that was said did not come.
		for _, more := range []string{"", "\r\n", "\r\nand more"} {
			for _, field := range []string{"", "Idempotency-Key: short-" + strconv.Itoa(n) + "\r\n"} {
				n++
				if got := s.short(form, field, whole+more, 500); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
					t.Errorf("a body that is cut off behind the form (%q): %.200s", more, got)
				}
			}
		}
		s.disk("cut off")
		if got := s.do("GET", library+"/_count", writer); got.body != `{"count":0}` {
			t.Errorf("records: %s", got.body)
		}
		for _, more := range []string{"", "\r\n", " \r\nand more"} {
			s.do("POST", library, writer, text(whole+more), form).want(t, 201)
		}
	})
}

// short sends a body that ends before the length which it is said to have.
func (s mediaService) short(media option, fields, body string, missing int) string {
	s.t.Helper()
	var given http.Request
	given.Header = http.Header{}
	media(&given)
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nToken: %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		library, collectionToken, given.Header.Get("Content-Type"), fields, len(body)+missing, body)
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(answer)
}

// A form with an Idempotency-Key is carried out once, as JSON is, and its body waits on the disk.
func TestFormsWithKeys(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		bounded := func(content, boundary string) []option {
			return []option{
				text("--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n" + content + "\r\n--" + boundary +
					"\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{\"title\":\"a\"}\r\n--" + boundary + "--\r\n"),
				header("Content-Type", "multipart/form-data; boundary="+boundary), writer, key("form"),
			}
		}
		first := s.do("POST", library, bounded("abc", "b")...)
		first.want(t, 201)
		again := s.do("POST", library, bounded("abc", "b")...)
		if again.status != 201 || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the same again: %d %s, was %s", again.status, again.body, first.body)
		}
		const reused = "422 idempotency_key_reused: this Idempotency-Key was used for another request: use a new key for each"
		for name, other := range map[string][]option{
			"other content":  bounded("abd", "b"),
			"other boundary": bounded("abc", "c"),
			"JSON":           {text(`{"title":"a"}`), writer, key("form")},
		} {
			if got := s.do("POST", library, other...).String(); got != reused {
				t.Errorf("%s: %s", name, got)
			}
		}
		// What was refused is so again.
		for range 2 {
			if got := s.do("POST", library, bounded("abc", "b")[0], bounded("abc", "c")[1], writer, key("bad")); got.status != 400 || got.field("code") != "bad_form" {
				t.Errorf("another boundary than the head says: %d %s", got.status, got.body)
			}
		}
		big := bounded(strings.Repeat("x", 210_000), "b")
		if got := s.do("POST", library, append(big, key("big"))...); got.status != 413 {
			t.Errorf("too large: %d %s", got.status, got.body)
		}
		unsaid := func(r *http.Request) { r.ContentLength = -1 }
		if got := s.do("POST", library, append(big, key("big"), unsaid)...); got.status != 413 {
			t.Errorf("too large, as it turns out: %d %s", got.status, got.body)
		}
		s.disk("one form", "up/library/"+first.field("id")+"/file/a.txt")
	})
}

// What is above the limit of its place is refused before it has come, and as soon as it is too much.
func TestUploadLimits(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		big := strings.Repeat("x", 600)
		unsaid := func(r *http.Request) { r.ContentLength = -1 }
		for _, tt := range []struct {
			path string
			by   []option
			want int
			says string
		}{
			{"small", []option{form(part{"file", "a.txt", big})}, 413, "limit of 500 bytes of the collection small (upload.maxBodySize): send less"},
			{"small", []option{form(part{"file", "a.txt", big}), unsaid}, 413, "limit of 500 bytes of the collection small (upload.maxBodySize): send less"},
			{"small", []option{text(`{"file":` + fileJSON("a.txt", big) + `}`)}, 413, "limit of 500 bytes of the collection small"},
			{"small", []option{form(part{"file", "a.txt", "a"})}, 201, ""},
			{"open", []option{form(part{"file", "a.txt", big})}, 201, ""},
			{"open", []option{form(part{"file", "a.txt", strings.Repeat("x", 200_000)})}, 413, "limit of 200000 bytes of the project (upload.maxBodySize)"},
			{"open", []option{form(part{"file", "a.txt", strings.Repeat("x", 200_000)}), unsaid}, 413, "limit of 200000 bytes of the project (upload.maxBodySize)"},
			{"wide", []option{form(part{"file", "a.txt", strings.Repeat("x", 1<<20)})}, 413, "limit of 1048576 bytes of the server (setting api.upload.maxBodySize)"},
		} {
			if got := s.do("POST", "/api/v1/_/media/"+tt.path, tt.by...); got.status != tt.want || !strings.Contains(got.body, tt.says) {
				t.Errorf("%s: %d %s, want %d", tt.path, got.status, got.body, tt.want)
			}
		}
		if got := s.onDisk(); len(got) != 2 {
			t.Errorf("on the disk: %v", got)
		}
	})
}

// A bulk update stores its files with each record: all together keep to the limit of the request, and none is stored where
// they don't.
func TestBulkUpdateLimits(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		s.do("POST", library+"?bulk=true", writer, text(`{"items":[`+strings.Repeat(`{"title":"a"},`, 9)+`{"title":"a"}]}`)).want(t, 201)
		update := func(size int, more ...option) answer {
			return s.do("PUT", library+"?filter[title]=a", append([]option{writer, text(`{"file":` + fileJSON("a.txt", strings.Repeat("x", size)) + `}`)}, more...)...)
		}
		const want = "413 files_too_large: the files would be stored with each of 10 records, which is 200010 bytes together, and the limit is 200000 bytes " +
			"of the project (upload.maxBodySize): narrow the filter, and write the records in several requests"
		if got := update(20_001).String(); got != want {
			t.Errorf("%s", got)
		}
		s.disk("too much")
		if got := s.do("GET", library, writer); got.status != 200 || strings.Contains(got.body, `"src"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		update(20_000).want(t, 200)
		if n := len(s.onDisk()); n != 10 {
			t.Errorf("%d files", n)
		}
		var items []string
		for range 11 {
			items = append(items, `{"files":[`+strings.Repeat(`{"src":"data:;base64,","path":"a"},`, 999)+`{"src":"data:;base64,","path":"a"}]}`)
		}
		if got := s.do("POST", "/api/v1/_/media/many", text(`{"items":[`+strings.Join(items, ",")+`]}`)).String(); got != "422 too_many_files: the request brings 11000 files, the limit is 10000: write fewer records at once" {
			t.Errorf("%s", got)
		}
	})
}

// A browser sends a field of a form that no file was chosen for as a file without name and content.
func TestFormsOfBrowsers(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		form := func(name, content string) answer {
			return s.do("POST", library, writer, header("Content-Type", "multipart/form-data; boundary=b"), text(
				"--b\r\nContent-Disposition: form-data; name=\""+name+"\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n"+content+
					"\r\n--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{\"title\":\"a\"}\r\n--b--\r\n"))
		}
		for _, field := range []string{"file", "files", "seo.cover"} {
			if got := form(field, ""); got.status != 201 || strings.Contains(got.body, `"src"`) {
				t.Errorf("%s: %d %s", field, got.status, got.body)
			}
		}
		for _, tt := range [][3]string{
			{"file", "abc", `the file in the part \"file\" of the form has no name`},
			{"nothing", "", "nothing: unknown file field; library has file, files, seo.cover, blocks.picture"},
			{"secret", "", "secret: unknown file field; library has file, files, seo.cover, blocks.picture"},
			{"title", "", "title: unknown file field"},
		} {
			if got := form(tt[0], tt[1]); got.status != 400 || !strings.Contains(got.body, tt[2]) {
				t.Errorf("%s: %d %s", tt[0], got.status, got.body)
			}
		}
		s.disk("nothing")
		if got := s.do("POST", library, writer, header("Content-Type", "multipart/form-data; boundary=b"), text("--b--\r\n")); got.status != 400 || !strings.Contains(got.body, "the form has no parts") {
			t.Errorf("no parts: %d %s", got.status, got.body)
		}
		res := s.do("POST", library, writer, text(`{"file":`+fileJSON("a.txt", "a")+`}`))
		res.want(t, 201)
		src := strings.Trim(res.at("file.src"), `"`)
		if got := s.do("GET", src+"?width=100").String(); got != "400 unknown_parameter: unknown query parameter: width; "+
			"a picture of another size or type is asked for by filter=<name>, with a name from the collection's imageFilter" {
			t.Errorf("%s", got)
		}
	})
}

// What the clean-up can't do is said, in the words of the contract; no record goes on without its files.
func TestUploadCleanUp(t *testing.T) {
	onMedia(t, func(t *testing.T, s mediaService) {
		make1 := func(title string) (id, stuck string) {
			res := s.do("POST", library, writer, text(`{"title":"`+title+`","file":`+fileJSON("a.txt", "a")+`,"seo":{"cover":`+fileJSON("c.txt", "c")+`}}`))
			res.want(t, 201)
			id = res.field("id")
			stuck = filepath.Join(s.data, "uploads", "media", "up", "library", id, "file", "a.txt")
			if err := os.Remove(stuck); err != nil { // nothing else keeps root from removing a file everywhere
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(stuck, "full"), 0o700); err != nil {
				t.Fatal(err)
			}
			return id, stuck
		}
		const warning = `"warning":"the document was deleted but file cleanup partially failed"`
		id, stuck := make1("one")
		before := s.do("GET", library+"/"+id, writer).body
		got := s.do("PUT", library+"/"+id, writer, text(`{"file":null,"seo":null}`))
		if got.status != 400 || got.field("detail") != "a.txt can't be removed: is a directory" {
			t.Errorf("a PUT that takes all away: %s", got.body)
		}
		if now := s.do("GET", library+"/"+id, writer).body; now != before {
			t.Errorf("%s, was %s", now, before)
		}
		s.do("PUT", library+"/"+id, writer, text(`{"file":null}`)).want(t, 200)
		if got := s.do("DELETE", library+"/"+id, writer); got.status != 200 || got.body != `{"id":"`+id+`",`+warning+`}` {
			t.Errorf("a DELETE: %d %s", got.status, got.body)
		}
		if got := s.do("GET", library+"/"+id, writer); got.status != 404 {
			t.Errorf("the record: %s", got)
		}
		if err := os.RemoveAll(stuck); err != nil {
			t.Fatal(err)
		}
		two, _ := make1("two")
		three := s.do("POST", library, writer, text(`{"title":"two","file":`+fileJSON("a.txt", "a")+`}`)).field("id")
		got = s.do("DELETE", library+"?filter[title]=two", writer)
		if got.status != 200 || !strings.Contains(got.body, `{"id":"`+two+`","status":200,`+warning+`}`) || !strings.Contains(got.body, `{"id":"`+three+`","status":200}`) {
			t.Errorf("a bulk DELETE: %d %s", got.status, got.body)
		}
	})
}

func contentHash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// Files that hooks add to the records of a bulk write count with those of its body.
func TestBulkFilesOfHooks(t *testing.T) {
	onMediaWith(t, "", func(t *testing.T, s mediaService) {
		s.file("media", "bind.js", `module.exports = (ctx) => {
  if (ctx.data.title === 'add') ctx.data.file = {path: 'a.txt', src: 'data:;base64,' + 'eHh4'.repeat(50)}
}`)
		s.register("media", `
namespace: media
upload: {maxBodySize: 400}
collections:
  - name: library
    bulk: {hooks: each}
    hooks: {post: {bind: {type: javascript, file: bind.js}}, put: {bind: {type: javascript, file: bind.js}}}
    fields: [{name: title, type: string}, {name: file, type: file}]
    permissions: {public: {methods: {get: true, post: {bulk: true}, put: {bulk: true}}}, user: {methods: {}}}
  - name: together
    bulk: {mode: atomic, hooks: each}
    hooks: {post: {bind: {type: javascript, file: bind.js}}, put: {bind: {type: javascript, file: bind.js}}}
    fields: [{name: title, type: string}, {name: file, type: file}]
    permissions: {public: {methods: {get: true, post: {bulk: true}, put: {bulk: true}}}, user: {methods: {}}}
`)
		const says = "the files that the request and its hooks bring have more than 400 bytes together, the limit of the project (upload.maxBodySize)"
		const plain, add = `{"items":[{"title":"a"},{"title":"a"},{"title":"a"}]}`, `{"items":[{"title":"add"},{"title":"add"},{"title":"add"}]}`
		for _, tt := range []struct {
			collection string
			made       int // files of each write: of 150 bytes, two are within the limit
		}{{"library", 2}, {"together", 0}} {
			path, before := "/api/v1/_/media/"+tt.collection, len(s.onDisk())
			bulk := func(what string, got answer, files int) {
				t.Helper()
				if strings.Count(got.body, says) != 1 {
					t.Errorf("%s, %s: %d %s", tt.collection, what, got.status, got.body)
				}
				if n := len(s.onDisk()) - before; n != files {
					t.Errorf("%s, %s: %d files on the disk, want %d", tt.collection, what, n, files)
				}
			}
			bulk("create", s.do("POST", path+"?bulk=true", text(add)), tt.made)
			s.do("POST", path+"?bulk=true", text(plain)).want(t, 201)
			bulk("update", s.do("PUT", path+"?filter[title]=a", text(`{"title":"add"}`)), 2*tt.made)
		}
	})
}
