package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContent keeps the files in the repository what this program makes. Pictures are taken as they are there: how an encoder
// writes one may change with Go. TestPictures looks into them.
func TestContent(t *testing.T) {
	for name, records := range files(committed(t)) {
		want, err := encode(records)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "projects", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("projects/%s is not what go run ./scripts/samples projects writes (-want +got):\n%s", name, diff[:min(len(diff), 2000)])
		}
	}
}

// committed gives the files of pictures as they are in the repository.
func committed(t *testing.T) encoder {
	t.Helper()
	type file struct {
		ending, kind string
		data         []byte
	}
	all := map[string]file{}
	for _, project := range []string{"blog", "shop"} {
		lines, err := os.ReadFile(filepath.Join("..", "..", "projects", project, "content", "00-medialib.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(lines) {
			var m media
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			kind, text, _ := strings.Cut(strings.TrimPrefix(m.File.Src, "data:"), ";base64,")
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			all[m.Slug] = file{filepath.Ext(m.File.Path), kind, data}
		}
	}
	return func(p picture) (ending, kind string, data []byte) {
		f := all[p.slug]
		return f.ending, f.kind, f.data
	}
}

// TestPictures draws one picture of either kind anew, and looks at the size of all.
func TestPictures(t *testing.T) {
	kept := committed(t)
	for _, p := range append(blogPictures(), shopPictures()...) {
		_, _, data := kept(p)
		if len(data) == 0 || len(data) > 60<<10 {
			t.Errorf("%s has %d bytes", p.slug, len(data))
		}
		if p.draw == nil {
			if string(data) != p.vector {
				t.Errorf("%s is another drawing", p.slug)
			}
			continue
		}
		got, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", p.slug, err)
			continue
		}
		switch p.slug {
		case "kettle", "rye-loaf":
			if d := difference(got, p.draw()); d > 3 {
				t.Errorf("%s is another picture: a part of a pixel differs by %.1f of 255 on the average", p.slug, d)
			}
		}
	}
}

// difference is by how much the colors of two pictures of one size differ, of 255.
func difference(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 255
	}
	sum, n := 0.0, 0
	for y := 0; y < a.Bounds().Dy(); y += 7 {
		for x := 0; x < a.Bounds().Dx(); x += 7 {
			r, g, bl, _ := a.At(x, y).RGBA()
			r2, g2, bl2, _ := b.At(x, y).RGBA()
			for _, d := range []int{int(r) - int(r2), int(g) - int(g2), int(bl) - int(bl2)} {
				sum += float64(max(d, -d)) / 257
				n++
			}
		}
	}
	return sum / float64(n)
}
