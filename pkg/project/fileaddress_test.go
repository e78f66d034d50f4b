package project_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
)

func loaded(t *testing.T, collections string) *project.Project {
	t.Helper()
	p, problems := project.Load(write(t, "-- project.yaml --\nnamespace: blog\ncollections:\n"+collections), "project.yaml", env)
	if p == nil {
		t.Fatal(strings.Join(lines(problems), "\n"))
	}
	return p
}

// TestFileAddresses: files are known by their addresses also where collection and field had other names.
func TestFileAddresses(t *testing.T) {
	t.Parallel()
	old := loaded(t, `
  - name: news
    fields: [{name: photo, type: file}, {name: box, type: object, subFields: [{name: a b, type: file}]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	now := loaded(t, `
  - name: posts
    renamedFrom: news
    fields: [{name: cover, type: file, renamedFrom: photo}, {name: box, type: object, subFields: [{name: a b, type: file}]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	there := func(string, string) (bool, error) { return false, nil }
	names, err := project.Names(nil).Resolve(old, nil, there)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := names.Resolve(now, old, there); err != nil {
		t.Fatal(err)
	}
	id := bson.ObjectID{1}
	a := now.Collections["posts"].FileAddresses("ns", id)
	for _, c := range []struct{ src, key, current string }{
		{"news/" + id.Hex() + "/photo/a.png", "photo/a.png", "posts/" + id.Hex() + "/cover/a.png"},
		{"posts/" + id.Hex() + "/photo/%C3%BC.png", "photo/ü.png", "posts/" + id.Hex() + "/cover/%C3%BC.png"},
		{"posts/" + id.Hex() + "/cover/a%20b.png", "photo/a b.png", "posts/" + id.Hex() + "/cover/a%20b.png"},
		{"posts/" + id.Hex() + "/cover/a b.png", "photo/a b.png", "posts/" + id.Hex() + "/cover/a b.png"},
		{"news/" + id.Hex() + "/box.a%20b/c", "box.a b/c", "posts/" + id.Hex() + "/box.a%20b/c"},
		{"posts/" + id.Hex() + "/gone/a.png", "gone/a.png", "posts/" + id.Hex() + "/gone/a.png"},
		{"posts/" + id.Hex() + "/cover", "", ""},
		{"posts/" + id.Hex() + "/%zz/a.png", "", ""},
		{"posts/" + bson.ObjectID{2}.Hex() + "/cover/a.png", "", ""},
		{"other/" + id.Hex() + "/cover/a.png", "", ""},
		{strings.Repeat("x", 5), "", ""},
	} {
		src := project.FilesRoot("ns") + c.src
		current := project.FilesRoot("ns") + c.current
		if c.key == "" {
			current = src
		}
		if key, ok := a.Key(src); key != c.key || ok != (c.key != "") {
			t.Errorf("%s has the key %q, %v, want %q", c.src, key, ok, c.key)
		}
		if got := a.Current(src); got != current {
			t.Errorf("%s is now %s, want %s", c.src, got, current)
		}
	}

	file := func(src string) bson.D {
		return bson.D{{Key: "alt", Value: "x"}, {Key: "src", Value: project.FileRoot("ns", "posts", id) + src}}
	}
	raw, err := bson.Marshal(bson.D{
		{Key: "src", Value: project.FileRoot("ns", "posts", id) + "cover/top.png"},
		{Key: "cover", Value: file("cover/a.png")},
		{Key: "list", Value: bson.A{file("cover/b.png"), bson.D{{Key: "deep", Value: file("cover/c.png")}}, project.FileRoot("ns", "posts", id) + "cover/no.png"}},
		{Key: "other", Value: bson.D{{Key: "src", Value: "https://example.com/a.png"}, {Key: "alt", Value: file("cover/d.png")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	a.Each(raw, func(key string, file bson.Raw) {
		alt, _ := file.Lookup("alt").StringValueOK()
		got = append(got, key+" "+alt)
	})
	if diff := cmp.Diff([]string{"photo/top.png ", "photo/a.png x", "photo/b.png x", "photo/c.png x", "photo/d.png x"}, got); diff != "" {
		t.Error(diff)
	}
}
