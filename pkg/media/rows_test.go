package media_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color/palette"
	gifs "image/gif"
	jpegs "image/jpeg"
	pngs "image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	bmps "golang.org/x/image/bmp"
	tiffs "golang.org/x/image/tiff"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

// TestS44Traversal: no path leads out of the folder, nor through a symbolic link within it.
func TestS44Traversal(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "uploads")
	s := open(t, dir, newClock())
	put(t, s, photo, "a.txt", "hello")
	folder := filepath.Join(dir, "medialib", record, "photo")
	if err := os.WriteFile(filepath.Join(parent, "secret.txt"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		filepath.Join(folder, "out.txt"):                           filepath.Join(parent, "secret.txt"),
		filepath.Join(folder, "relative.txt"):                      "../../../../secret.txt",
		filepath.Join(folder, "in.txt"):                            "a.txt",
		filepath.Join(dir, "medialib", record, "linked"):           "photo",
		filepath.Join(dir, "medialib", "ffffffffffffffffffffffff"): record,
		filepath.Join(dir, "away"):                                 parent,
		filepath.Join(dir, "near"):                                 "medialib",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		place media.Place
		name  string
	}{
		{photo, ".."},
		{photo, "."},
		{photo, ""},
		{photo, "../photo/a.txt"},
		{photo, "a.txt/"},
		{photo, "./a.txt"},
		{photo, "/a.txt"},
		{photo, `..\photo\a.txt`},
		{photo, "%2e%2e"},
		{photo, "..%5c..%5csecret.txt"},
		{photo, "a.txt\x00"},
		{photo, "a.txt\x00.png"},
		{photo, "a.txt/x"},
		{photo, "CON"},
		{photo, "nul.txt"},
		{photo, "a.txt:stream"},
		{photo, "/etc/passwd"},
		{photo, strings.Repeat("x", 300)},
		{photo, "out.txt"},
		{photo, "relative.txt"},
		{photo, "in.txt"},
		{photo, ".tmp"},
		{media.Place{Dir: "medialib", Record: record, Field: "linked"}, "a.txt"},
		{media.Place{Dir: "medialib", Record: record, Field: "."}, "a.txt"},
		{media.Place{Dir: "medialib", Record: record, Field: ".."}, "a.txt"},
		{media.Place{Dir: "medialib", Record: record, Field: "photo/../photo"}, "a.txt"},
		{media.Place{Dir: "medialib", Record: record, Field: ""}, "a.txt"},
		{media.Place{Dir: "medialib", Record: "ffffffffffffffffffffffff", Field: "photo"}, "a.txt"},
		{media.Place{Dir: "medialib", Record: "..", Field: "photo"}, "a.txt"},
		{media.Place{Dir: "medialib", Record: strings.ToUpper(record), Field: "photo"}, "a.txt"},
		{media.Place{Dir: "medialib/" + record, Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: "near", Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: "away/uploads/medialib", Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: "../uploads/medialib", Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: "/medialib", Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: `medialib\x`, Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: ".tmp", Record: record, Field: "photo"}, "a.txt"},
		{media.Place{Dir: "", Record: record, Field: "photo"}, "a.txt"},
	} {
		if got, err := read(t, s, c.place, c.name); errs.KindOf(err) != errs.NotFound || got != "" {
			t.Errorf("%+v %q: %q, %v", c.place, c.name, got, err)
		}
	}
	if got, err := read(t, s, photo, "a.txt"); got != "hello" || err != nil {
		t.Errorf("the file itself: %q, %v", got, err)
	}

	// Nor does a write go by a link, and what is removed is never behind one.
	for _, p := range []media.Place{{Dir: "away", Record: record, Field: "photo"}, {Dir: "near", Record: record, Field: "photo"}, {Dir: "medialib", Record: record, Field: "linked"}} {
		st := stage(t, s, "new.txt", "new")
		if info, err := st.Put(t.Context(), p); err == nil {
			t.Errorf("%+v: %+v is stored", p, info)
		}
	}
	if err := s.RemoveRecord(t.Context(), "near", record, names()); err != nil {
		t.Error(err)
	}
	if err := s.RemoveRecord(t.Context(), "medialib", record, names()); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(parent, "secret.txt")); string(data) != "secret" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "medialib", record)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("links keep the folder: %v", err)
	}
}

// TestS45Names: names are made good or refused, and an id is one before anything is removed by it.
func TestS45Names(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"photo.jpg": "photo.jpg", "Grüße aus Köln.jpeg": "Grüße aus Köln.jpeg", "Gru\u0308n.png": "Grün.png", "写真.png": "写真.png",
		"photos/2026/a.png": "a.png", `C:\fakepath\a.png`: "a.png", "/etc/passwd": "passwd", "a.png/": "file",
		".htaccess": "htaccess", "...": "file", "": "file", " . a.png . ": "a.png", "a.png.": "a.png", "/": "file",
		"CON": "_CON", "con.png": "_con.png", "Lpt1.tar.gz": "_Lpt1.tar.gz", "COM¹.txt": "_COM¹.txt", "console.png": "console.png", "nul .txt": "_nul .txt",
		`a<b>c:d"e|f?g*.png`: "a_b_c_d_e_f_g_.png", "a.png:stream": "a.png_stream", "100%.png": "100%.png", "50%20off.png": "50%20off.png",
		"photo\u202egpj.exe": "photogpj.exe", "a\u200bb.png": "ab.png", "👩\u200d🚀.png": "👩\u200d🚀.png", "\ufeffa.png": "a.png", "a\u2028b.png": "ab.png",
		strings.Repeat("x", 300) + ".jpeg":   strings.Repeat("x", 250) + ".jpeg",
		strings.Repeat("ü", 300) + ".png":    strings.Repeat("ü", 125) + ".png",
		strings.Repeat("x", 300):             strings.Repeat("x", 255),
		"a." + strings.Repeat("x", 300):      "a." + strings.Repeat("x", 253),
		strings.Repeat("a.", 200) + "tar.gz": strings.Repeat("a.", 126) + ".gz",
	} {
		got, err := media.CleanName(name)
		if got != want || err != nil {
			t.Errorf("%q became %q, not %q: %v", name, got, want, err)
		}
	}
	for _, name := range []string{
		"..", "../a.png", `..\a.png`, "a/../../b.png", `x\..\y`, " .. /a.png", "a\x00.png", "\x00", "a\nb.png", "a\x7f.png", "a\u0085.png", "\xff\xfe.png",
		"%2e%2e%2fa.png", "%2E%2E/a.png", "..%2fa.png", "%5c..%5ca.png", "a%00.png", "%252e%252e%252fa.png", "%2\u200be%2\u200be", ".\u200b./a.png",
	} {
		if got, err := media.CleanName(name); errs.KindOf(err) != errs.Invalid || errs.From(err).Code != "bad_file_name" {
			t.Errorf("%q became %q: %v", name, got, err)
		}
	}

	dir := t.TempDir()
	s := open(t, dir, newClock())
	put(t, s, photo, "a.txt", "hello")
	before := tree(t, dir)
	for _, c := range [][2]string{
		{"medialib", ""},
		{"medialib", "."},
		{"medialib", ".."},
		{"medialib", "x"},
		{"medialib", record + "/photo"},
		{"medialib", record + "/"},
		{"medialib", "*"},
		{"medialib", "../medialib/" + record},
		{"", "medialib"},
		{"medialib/..", "medialib"},
		{"medialib", record[:23]},
		{"medialib", record + "0"},
		{"..", record},
	} {
		if err := s.RemoveRecord(t.Context(), c[0], c[1], names()); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q of %q: %v", c[1], c[0], err)
		}
		if err := s.Remove(t.Context(), c[0], c[1], []string{"photo/a.txt"}, names()); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q of %q: %v", c[1], c[0], err)
		}
		st := stage(t, s, "b.txt", "b")
		if _, err := st.Put(t.Context(), media.Place{Dir: c[0], Record: c[1], Field: "photo"}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q of %q: %v", c[1], c[0], err)
		}
		st.Discard()
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("%v", after)
	}
}

func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"a.png", "..", "a/b", `a\b`, "%2e", "con", ".a. ", "a\u202eb", "Gru\u0308n", strings.Repeat("é.", 200), "%<2e", "..<", "COM1 .x", "a.\u0308"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := media.CleanName(name)
		if err != nil {
			return
		}
		switch {
		case clean == "", len(clean) > 255, !utf8.ValidString(clean), strings.ContainsAny(clean, "/\\\x00"), clean[0] == '.', strings.HasSuffix(clean, "."):
			t.Fatalf("%q became %q", name, clean)
		case !filepath.IsLocal(clean), !fs.ValidPath(clean):
			t.Fatalf("%q became %q, which is no name", name, clean)
		}
		if again, err := media.CleanName(clean); again != clean || err != nil {
			t.Fatalf("%q became %q, which becomes %q: %v", name, clean, again, err)
		}
	})
}

const (
	pdf  = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
	html = "<!DOCTYPE html><html><script>alert(1)</script></html>"
	svg  = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	xml  = `<?xml version="1.0"?><a/>`
	exe  = "MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00"
	elf  = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"
	mp4  = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
	ole  = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "\x00\x00\x00\x00\x00\x00\x00\x00"
	php  = "<?php system($_GET['c']); ?>"
	gz   = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
	mp3  = "ID3\x03\x00\x00\x00\x00\x00\x21"
)

// picture is one of a few pixels in a format.
func picture(t testing.TB, encode func(w io.Writer, img image.Image) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewPaletted(image.Rect(0, 0, 3, 2), palette.WebSafe)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func toJPEG(w io.Writer, img image.Image) error { return jpegs.Encode(w, img, nil) }
func toGIF(w io.Writer, img image.Image) error  { return gifs.Encode(w, img, nil) }
func toTIFF(w io.Writer, img image.Image) error { return tiffs.Encode(w, img, nil) }

func archive(t *testing.T, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestS48Types: the type is that of the bytes, whatever a name says; what is allowed is held against it, and the name has to fit.
func TestS48Types(t *testing.T) {
	t.Parallel()
	const refused, mismatch, damaged = "file_type_refused", "file_type_mismatch", "image_damaged"
	images, texts, zips := []string{"image/*"}, []string{"text/plain", "text/markdown", "text/csv"}, archive(t, "a.txt")
	png, jpeg, gif, bmp, tiff := picture(t, pngs.Encode), picture(t, toJPEG), picture(t, toGIF), picture(t, bmps.Encode), picture(t, toTIFF)
	webp, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	webpLie := "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00"
	docx := archive(t, "[Content_Types].xml", "_rels/.rels", "word/document.xml")
	dir := t.TempDir()
	s := open(t, dir, newClock())
	for _, c := range []struct {
		name, content string
		types         []string
		want          string // the type, or the code of the error
	}{
		// What it says it is.
		{"a.png", png, images, "image/png"},
		{"a.PNG", png, images, "image/png"},
		{"a.jpg", jpeg, images, "image/jpeg"},
		{"a.jpeg", jpeg, []string{"image/jpeg"}, "image/jpeg"},
		{"a.gif", gif, images, "image/gif"},
		{"a.webp", string(webp), images, "image/webp"},
		{"a.tif", tiff, images, "image/tiff"},
		{"a.bmp", bmp, []string{"image/x-ms-bmp"}, "image/bmp"},
		{"a.svg", svg, images, "image/svg+xml"},
		{"a.svg", xml + svg, []string{"image/svg+xml"}, "image/svg+xml"},
		{"a.svg", "\ufeff<?xml version='1.0'?>" + svg, []string{"image/svg+xml"}, "image/svg+xml"},
		{"a.svg", "<!-- " + strings.Repeat("made by an editor ", 100) + " -->\n" + svg, images, "image/svg+xml"},
		{"a.svg", "<!-- made by an editor -->\n" + svg, images, "image/svg+xml"},
		{"a.svg", `<?xml version="1.0" encoding="iso-8859-1"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd" [<!ENTITY a "b">]>` + svg, images, "image/svg+xml"},
		{"a.pdf", pdf, []string{"application/pdf"}, "application/pdf"},
		{"a.mp4", mp4, []string{"video/*"}, "video/mp4"},
		{"a.doc", ole, nil, "application/x-ole-storage"},
		{"a.docx", docx, nil, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.docx", zips, nil, "application/zip"},
		{"a.zip", docx, nil, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.mp3", mp3, []string{"audio/mp3"}, "audio/mpeg"},
		{"a.txt", "hello", texts, "text/plain"},
		{"a.md", "# hello", texts, "text/markdown"},
		{"a.csv", "a,b\n1,2\n", texts, "text/csv"},
		{"a.csv", "just a line", texts, "text/csv"},
		{"a.json", `{"a":1}`, []string{"application/json"}, "application/json"},
		{"a.css", "a{}", nil, "text/css"},
		{"a.js", "alert(1)", nil, "text/javascript"},
		{"a.html", html, []string{"text/html"}, "text/html"},
		{"a.html", "a fragment", nil, "text/html"},
		{"a.xml", xml, nil, "text/xml"},
		{"a.txt", "", texts, "text/plain"},
		{"README.md", "<h1 align=center>Hello</h1>", nil, "text/html"},
		{"a.txt", "import os\n\ndef f():\n  pass\n", texts, "text/plain"},
		{"a", png, images, "image/png"},
		{"a.unknown", png, images, "image/png"},
		{"a.bin", "\x00\x01\x02\x03", nil, "application/octet-stream"},
		{"a", "\x00\x01\x02\x03", nil, "application/octet-stream"},
		{"a.png", png, []string{"IMAGE/PNG; q=1"}, "image/png"},
		{"a.png", png, []string{"*/*"}, "image/png"},

		// A name that is not what it is.
		{"a.png", jpeg, nil, mismatch},
		{"a.jpg", png, nil, mismatch},
		{"a.gif", html, nil, mismatch},
		{"a.png", svg, nil, mismatch},
		{"a.jpg", html, nil, mismatch},
		{"a.jpg", php, nil, mismatch},
		{"a.jpg", exe, nil, mismatch},
		{"a.png", elf, nil, mismatch},
		{"a.png", "\x00\x01\x02\x03", nil, mismatch},
		{"a.png", "", nil, mismatch},
		{"a.png", "hello", nil, mismatch},
		{"a.svg", "hello", nil, mismatch},
		{"a.svg", html, nil, mismatch},
		{"a.svg", png, nil, mismatch},
		{"a.svg", "<!-- <svg> -->" + html, nil, mismatch},
		{"a.svg", "text " + svg, nil, mismatch},
		{"a.svg", "<!-- " + strings.Repeat("-", 5000) + " -->" + svg, nil, mismatch},
		{"a.pdf", html, nil, mismatch},
		{"a.pdf", zips, nil, mismatch},
		{"a.txt", png, nil, mismatch},
		{"a.txt", svg, nil, mismatch},
		{"a.md", exe, nil, mismatch},
		{"a.csv", html, nil, mismatch},
		{"a.json", html, nil, mismatch},
		{"a.js", html, nil, mismatch},
		{"a.css", svg, nil, mismatch},
		{"a.mp4", html, nil, mismatch},
		{"a.mp3", exe, nil, mismatch},
		{"a.zip", exe, nil, mismatch},
		{"a.docx", html, nil, mismatch},
		{"a.html", png, nil, mismatch},
		{"a.exe", png, nil, mismatch},
		{"a.jpg.html", jpeg, nil, mismatch},
		{"a.html.jpg", html, nil, mismatch},
		{"a.csv", xml, nil, mismatch},
		{"a.wasm", html, nil, mismatch},

		// Two in one: the first bytes decide, as they do in browsers.
		{"a.gif", gif + "/*" + html + "*/=1;", images, "image/gif"},
		{"a.js", "GIF89a/*\x00\x01*/=1;alert(1)", nil, mismatch},
		{"a.html", gif + html, nil, mismatch},
		{"a.jpg", jpeg + zips, images, "image/jpeg"},
		{"a.zip", jpeg + zips, nil, mismatch},
		{"a.jpg", jpeg + php, images, "image/jpeg"},
		{"a.php", jpeg + php, images, "image/jpeg"},
		{"a.png", png + html, images, "image/png"},
		{"a.html", png + html, nil, mismatch},
		{"a.pdf", pdf + html, images, refused},
		{"a.html", pdf + html, nil, mismatch},
		{"a.jar", gif + zips, nil, mismatch},
		{"a.pdf", html + pdf, []string{"application/pdf"}, mismatch},
		{"a", html + pdf, []string{"application/pdf"}, refused},
		{"a.html", html + pdf, nil, "text/html"},
		{"a.gif", gif + pdf, images, "image/gif"},
		{"a.pdf", svg + pdf, nil, mismatch},
		{"a.pdf", zips + pdf, nil, mismatch},
		{"a.pdf", "\n\n" + pdf, []string{"application/pdf"}, "application/pdf"},
		{"a.pdf", "\x1b%-12345X@PJL\n" + pdf, []string{"application/pdf"}, "application/pdf"},
		{"a.gif", gif + zips, images, "image/gif"},
		{"a.bmp", bmp + html, images, "image/bmp"},
		{"a.webp", string(webp) + svg, images, "image/webp"},
		{"a.png", " \n" + html, images, mismatch},
		{"a.jpg", "\n\n<!-- " + strings.Repeat("x", 600) + " -->" + html, images, mismatch},
		{"a.gif", "\ufeff" + html, images, mismatch},

		// A beginning that lies about the rest. Of TIFF there are more kinds than we read.
		{"a.jpg", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", images, damaged},
		{"a.jpg", "\xff\xd8\xff" + html, images, damaged},
		{"a.gif", "GIF89a/*" + html, images, "image/gif"},
		{"a.gif", "GIF89a", images, damaged},
		{"a.png", "\x89PNG\r\n\x1a\n" + html, images, damaged},
		{"a.png", png[:20], images, damaged},
		{"a.webp", webpLie + svg, images, damaged},
		{"a.bmp", "BM" + html, images, mismatch},
		{"a.tiff", "II*\x00\x08\x00\x00\x00" + html, images, "image/tiff"},

		// What is allowed is held against the bytes.
		{"a", html, images, refused},
		{"a.unknown", html, images, refused},
		{"a.txt", html, texts, refused},
		{"a.md", html, texts, refused},
		{"a", svg, []string{"image/png", "image/jpeg"}, refused},
		{"a.unknown", exe, images, refused},
		{"a", php, images, refused},
		{"a.jpg", jpeg, []string{"image/png"}, refused},
		{"a.html", "a fragment", texts, refused},
		{"a.js", "alert(1)", texts, refused},
		{"a", "\x00\x01\x02\x03", images, refused},
		{"a", zips, images, refused},
		{"a", mp4, images, refused},
		{"a.xml", xml, images, refused},
		{"a.xml", svg, texts, refused},
		{"a.png", png, []string{"*"}, refused},
		{"a", gz, []string{"application/zip"}, refused},
		{"a.docx", docx, []string{"application/zip"}, refused},
	} {
		st, err := s.Stage(t.Context(), c.name, strings.NewReader(c.content), media.Limits{Types: c.types})
		got := ""
		if err == nil {
			got = st.Info().Type
			st.Discard()
		} else if e := errs.From(err); e.Kind == errs.Invalid {
			got = e.Code
		}
		if got != c.want {
			t.Errorf("%s, %.20q, %v: %s, not %s: %v", c.name, c.content, c.types, got, c.want, err)
		}
	}
	if left := tree(t, dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	_, err = s.Stage(t.Context(), "a.png", strings.NewReader(jpeg), media.Limits{})
	if text := errs.From(err).Message; !strings.Contains(text, "image/png") || !strings.Contains(text, "image/jpeg") {
		t.Errorf("it does not name both: %s", text)
	}
}
