package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

// TestImageFilters: filters are compiled with their collection, and what is wrong with one is said with its place.
func TestImageFilters(t *testing.T) {
	t.Parallel()
	for filters, want := range map[string]string{
		`{thumb: [{width: 320, outputType: webp}], plain: []}`: "",
		`{thumb: [{width: 320}, {fill: true, height: 10}]}`:    "project.yaml:1:152: collections[0].imageFilter.thumb[1].fill: fill needs width and height",
		`{thumb: [{width: 1, height: 1, fit: true, fill: true}], thumb2: [{fit: true}]}`: "project.yaml:1:158: collections[0].imageFilter.thumb[0].fit: a step either fits or fills; leave one of them out\n" +
			"project.yaml:1:193: collections[0].imageFilter.thumb2[0].fit: fit needs width or height, or both",
		`{thumb: [{resampling: best}]}`: "project.yaml:1:*",
		`{thumb: [{sise: 1}]}`:          "project.yaml:1:*",
		`{"a/b": []}`:                   "project.yaml:1:*",
		`{thumb: [{width: -1}]}`:        "project.yaml:1:*",
	} {
		dir := write(t, "-- project.yaml --\n"+`{namespace: blog, collections: [{name: pictures, permissions: {public: {methods: {}}, user: {methods: {}}}, imageFilter: `+filters+`}]}`)
		p, problems := project.Load(dir, "project.yaml", env)
		var got []string
		for _, x := range problems {
			got = append(got, fmt.Sprintf("%s:%d:%d: %s: %s", x.File, x.Line, x.Column, x.Path, x.Message))
		}
		text := strings.Join(got, "\n")
		if start, prefix := strings.CutSuffix(want, "*"); text != want && (!prefix || len(got) != 1 || !strings.HasPrefix(text, start)) {
			t.Errorf("%s: %s\nwant %s", filters, text, want)
		}
		if want == "" && (p == nil || p.Collections["pictures"].ImageFilters["thumb"] == nil || p.Collections["pictures"].ImageFilters["plain"] == nil) {
			t.Errorf("%s: %v", filters, p)
		}
	}
}

// Allowed types that no file is of are warned of, the project's once.
func TestMistakenTypes(t *testing.T) {
	t.Parallel()
	collection := `permissions: {public: {methods: {}}, user: {methods: {}}}`
	dir := write(t, "-- project.yaml --\nnamespace: blog\nupload: {allowedMimeTypes: [image/png, image/svg]}\ncollections:\n- {name: a, "+collection+"}\n"+
		"- {name: b, upload: {allowedMimeTypes: [image/JPG, image/jpeg]}, "+collection+"}\n")
	p, problems := project.Load(dir, "project.yaml", env)
	want := "project.yaml:2:40: warning: upload.allowedMimeTypes[1]: no file is of the type image/svg; did you mean image/svg+xml?\n" +
		"project.yaml:5:41: warning: collections[1].upload.allowedMimeTypes[0]: no file is of the type image/JPG; did you mean image/jpeg?"
	if got := strings.Join(lines(problems), "\n"); p == nil || got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
