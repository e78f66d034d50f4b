package app_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/svcctl/svc/pkg/app"
)

const polyglotConfig = `
namespace: media
collections:
  - name: any
    fields: [{name: file, type: file}]
    permissions: &all {public: {methods: {get: true, post: {bulk: true}}}, user: {methods: {}}}
  - name: pictures
    upload: {allowedMimeTypes: [image/png, image/jpeg, image/gif, image/webp, image/bmp]}
    fields: [{name: file, type: file}]
    permissions: *all
`

// polyglot is a file that is, or may be taken for, more than one thing.
type polyglot struct {
	name, content string
	any           string // how it goes out of a collection that takes all types; "": it is refused
	picture       bool   // a collection that takes pictures has it, too
}

func utf16Of(text string, mark bool, bigEndian bool) string {
	var b []byte
	units := utf16.Encode([]rune(text))
	if mark {
		units = slices.Insert(units, 0, 0xFEFF)
	}
	for _, u := range units {
		if bigEndian {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func polyglots(t *testing.T) []polyglot {
	t.Helper()
	const (
		script = "<script>alert(document.domain)</script>"
		html   = "<!doctype html><html><body>" + script + "</body></html>"
		svg    = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">` + script + "</svg>"
		pdf    = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n"
		mp4    = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
		ico    = "\x00\x00\x01\x00\x01\x00\x01\x01\x00\x00\x01\x00\x18\x00\x30\x00\x00\x00\x16\x00\x00\x00"
		pk     = "PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	)
	img := image.NewPaletted(image.Rect(0, 0, 3, 2), palette.WebSafe)
	encoded := func(encode func(b *bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	png := pngOf(3, 2)
	jpg := encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) })
	gif89 := encoded(func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) })
	bitmap := encoded(func(b *bytes.Buffer) error { return bmp.Encode(b, img) })
	tif := encoded(func(b *bytes.Buffer) error { return tiff.Encode(b, img, nil) })
	webp, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	comment := "\xff\xfe" + string([]byte{0, byte(len(html) + 2)}) + html // of a JPEG
	const save = "attachment "
	return []polyglot{
		{"a.gif", gif89 + html, "inline image/gif", true},
		{"a.gif", "GIF89a/*\x01\x00\x00\x00\x00*/=1;" + html, "inline image/gif", true},
		{"a", gif89 + html, "inline image/gif", true},
		{"a.html", gif89 + html, "", false},
		{"a.js", "GIF89a/*" + gif89[8:] + "*/=1;alert(1)", "", false},
		{"a.jpg", jpg + html, "inline image/jpeg", true},
		{"a.jpg", jpg[:2] + comment + jpg[2:], "inline image/jpeg", true},
		{"a.js", jpg[:2] + comment + jpg[2:], "", false},
		{"a.html", jpg[:2] + comment + jpg[2:], "", false},
		{"a.php", jpg + "<?php system($_GET[0]); ?>", "inline image/jpeg", true},
		{"a.jpg.php", "<?php system($_GET[0]); ?>", save, false},
		{"a.png", png + html, "inline image/png", true},
		{"a.png", png + pk, "inline image/png", true},
		{"a.zip", png + pk, "", false},
		{"a.zip", pk + png, save + "application/zip", false},
		{"a.png", pk + png, "", false},
		{"a.jar", gif89 + pk, "", false},
		{"a.webp", string(webp) + html, "inline image/webp", true},
		{"a.webp", string(webp) + svg, "inline image/webp", true},
		{"a.html", string(webp) + html, "", false},
		{"a.bmp", bitmap + html, "inline image/bmp", true},
		{"a.bmp", "BM" + html, "", false},
		{"a.tif", tif + html, "inline image/tiff", false},
		{"a.ico", ico + html, "inline image/x-icon", false},
		{"a.html", ico + html, "", false},
		{"a.mp4", mp4 + html, "inline video/mp4", false},
		{"a.html", mp4 + html, "", false},
		{"a.pdf", pdf + html, "inline application/pdf", false},
		{"a.html", pdf + html, "", false},
		{"a.pdf", html + pdf, "", false},
		{"a.html", html + pdf, save + "text/html", false},
		{"a", html, save + "text/html", false},
		{"a.svg", svg, save + "image/svg+xml", false},
		{"a.svg", `<?xml version="1.0"?>` + svg, save + "image/svg+xml", false},
		{"a.svg", "\ufeff" + svg, save + "image/svg+xml", false},
		{"a.svg", "<!-- " + strings.Repeat("x", 5000) + " -->" + svg, "", false},
		{"a.svg", `<!DOCTYPE svg [<!ENTITY x "` + script + `">]>` + svg, save + "image/svg+xml", false},
		{"a.svg", `<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:script>alert(1)</s:script></s:svg>`, save + "image/svg+xml", false},
		{"a.svg", utf16Of(svg, true, false), "", false},
		{"a.png", svg, "", false},
		{"a", svg, save + "image/svg+xml", false},
		{"a.xml", "\ufeff" + `<?xml version="1.0"?><h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>`, save, false},
		{"a.xml", `<?xml version="1.0"?><?xml-stylesheet href="data:text/xsl,x" type="text/xsl"?><a/>`, save + "text/xml", false},
		{"a.xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">` + script + "</html>", save, false},
		{"a", utf16Of(html, true, false), save, false},
		{"a", utf16Of(html, true, true), save, false},
		{"a", utf16Of(html, false, false), save, false},
		{"a.png", utf16Of(html, true, true), "", false},
		{"a.txt", "+ADw-script+AD4-alert(1)+ADw-/script+AD4-", save + "text/plain", false},
		{"a.txt", strings.Repeat(" ", 4096) + html, save + "text/plain", false},
		{"a.txt", strings.Repeat("text ", 1000) + html, save + "text/plain", false},
		{"a.md", "[x](javascript:alert(1))" + script, save, false},
		{"a.css", "*{}</style>" + script, save + "text/css", false},
		{"a.csv", "=cmd|' /C calc'!A0," + script, save + "text/csv", false},
		{"a.json", `{"a":"` + script + `"}`, save + "application/json", false},
		{"a.mhtml", "MIME-Version: 1.0\nContent-Type: multipart/related\n\n" + html, save, false},
		{"a.hta", html, save + "text/html", false},
		{"a.bin", "\x00" + html, save + "application/octet-stream", false},
		{"a.swf", "CWS\x09\x10\x00\x00\x00" + html, save, false},
		{"a.wasm", "\x00asm\x01\x00\x00\x00" + html, save + "application/wasm", false},
		{"a.eml", "From: a\nContent-Type: text/html\n\n" + html, save, false},
	}
}

// TestS48Polyglots: whatever way a file comes and whatever it is called, its bytes say what it is; and S47: nothing that a
// browser would run is shown.
func TestS48Polyglots(t *testing.T) {
	for _, name := range []string{"embedded", "mongodb"} {
		t.Run(name, func(t *testing.T) {
			uri := ""
			if name == "mongodb" {
				uri = emptyMongo(t, "svc_media")
			}
			data := t.TempDir()
			s := run(t, func(c *app.Config) { c.StoreURI, c.DataDir = uri, data })
			s.register("media", polyglotConfig)
			testPolyglots(t, s)
		})
	}
}

func testPolyglots(t *testing.T, s *service) {
	t.Helper()
	files := polyglots(t)
	if len(files) < 40 {
		t.Fatalf("%d files are no corpus", len(files))
	}
	for i, f := range files {
		for _, collection := range []string{"any", "pictures"} {
			encoded := base64.StdEncoding.EncodeToString([]byte(f.content))
			item := `{"file":{"path":"` + f.name + `","src":"data:image/png;name=a.png;charset=utf-8;base64,` + encoded + `"}}`
			taken := collection == "any" && f.any != "" || collection == "pictures" && f.picture
			for way, res := range map[string]answer{
				"data URL": s.do("POST", mediaPath+collection, text(item)),
				"form":     s.do("POST", mediaPath+collection, form(part{"file", f.name, f.content})),
			} {
				if taken != (res.status == http.StatusCreated) || !taken && res.status != http.StatusBadRequest {
					t.Errorf("%d, %s %.20q as %s for %s: %d %s", i, f.name, f.content, way, collection, res.status, res.body)
					continue
				}
				if taken {
					goesOut(t, i, f, s.do("GET", strings.Trim(res.at("file.src"), `"`)))
				}
			}
			if res := s.do("POST", mediaPath+collection, text(`{"items":[`+item+`]}`)); taken != strings.Contains(res.body, `"status":201`) && taken != (res.status == http.StatusCreated) {
				t.Errorf("%d, %s %.20q in bulk for %s: %d %s", i, f.name, f.content, collection, res.status, res.body)
			}
		}
	}
}

// goesOut checks what a browser is told of a file.
func goesOut(t *testing.T, i int, f polyglot, res answer) {
	t.Helper()
	kind, _, _ := strings.Cut(res.header.Get("Content-Disposition"), ";")
	got := kind + " " + res.header.Get("Content-Type")
	exact := !strings.HasSuffix(f.any, " ")
	if exact && got != f.any || !exact && !strings.HasPrefix(got, f.any) || res.body != f.content {
		t.Errorf("%d, %s %.20q goes out as %s", i, f.name, f.content, got)
	}
	policy := res.header.Get("Content-Security-Policy")
	if res.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(policy, "default-src 'none'") ||
		strings.HasSuffix(policy, "; sandbox") == strings.HasSuffix(got, "/pdf") {
		t.Errorf("%d, %s: %v", i, f.name, res.header)
	}
}
