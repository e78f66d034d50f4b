package docs_test

import (
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/schema"
)

// The lines of media.md run as they are.
func TestMedia(t *testing.T) {
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	printed := d.run(strings.Join(blocks(t, "media.md", "sh"), "\n"))
	d.prints(printed, `"name":"static"`, "X-Content-Type-Options: nosniff", "image/svg+xml", "<svg",
		"thumb: image/jpeg, ", "card-webp: image/webp, ", "proof: image/png, ", `"alt":"Ridges"`, `"path":"small.jpg"`, "created medialib/", "wrote mine.jpg", "\n404\n")
	for name, size := range map[string][2]int{"thumb.img": {240, 240}, "card.img": {640, 400}, "hero.img": {1200, 800}, "proof.img": {480, 320}, "mine.jpg": {240, 240}, "card.jpg": {640, 400}} {
		f, err := os.Open(filepath.Join(d.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := image.DecodeConfig(f)
		_ = f.Close()
		if err != nil || got.Width != size[0] || got.Height != size[1] {
			t.Errorf("%s is a picture of %d×%d: %v", name, got.Width, got.Height, err)
		}
	}
}

// Every member of a filter's step has a row.
func TestImageFilterMembers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("media.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Image filters")
	var first []string // the first columns of the table
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			first = append(first, strings.Split(line, "|")[1])
		}
	}
	for member := range reflect.TypeFor[schema.ImageStep]().Fields() {
		name := member.Tag.Get("cfg")
		if !strings.Contains(strings.Join(first, " "), "`"+name+"`") {
			t.Errorf("media.md has no row of %s", name)
		}
	}
}
