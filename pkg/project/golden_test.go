package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

const goldenConfig = `namespace: a
collections:
  - name: notes
    fields: [{name: slug, type: string}, {name: n, type: number}, {name: tags, type: "string[]"}]
    search: [{name: main, mode: text, fields: [slug]}, {name: like, mode: regex, fields: [slug]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: plain
    fields: [{name: slug, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// goldenProject writes a project with files of golden queries, and loads it.
func goldenProject(t *testing.T, files map[string]string) *project.Project {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(goldenConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", nil)
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

// Golden queries are held against their project, which is served whatever is wrong with them.
func TestGoldens(t *testing.T) {
	t.Parallel()
	const head, rest = "gates: {ndcg10: 1}\n", "queries: [{q: a, relevant: [a]}]\n"
	given := func(records string) string { return "given: {records: {notes: [" + records + "]}}\n" }
	for text, want := range map[string]string{
		"collection: notes\nby: slug\n" + given("{slug: a}") + rest:                       "",
		"collection: notes\nsearch: main\nby: slug\n" + given("{slug: a}, {n: 1}") + rest: "",
		"collection: notes\nby: id\n" + given("{id: a}") + rest:                           "",
		"collection: note\nby: slug\n" + given("{slug: a}") + rest:                        `2:13: collection: there is no collection "note"; did you mean "notes"?`,
		"collection: plain\n" + given("{slug: a}") + rest:                                 "plain has no search",
		"collection: notes\nsearch: mian\nby: slug\n" + given("{slug: a}") + rest:         `3:9: search: there is no search "mian" of notes; did you mean "main"?`,
		"collection: notes\nsearch: like\nby: slug\n" + given("{slug: a}") + rest:         "a search of mode regex has no order",
		"collection: notes\nby: slog\n" + given("{slug: a}") + rest:                       `by: there is no field "slog"; did you mean "slug"?`,
		"collection: notes\nby: n\n" + given("{slug: a}") + rest:                          "by: must be a field of type string",
		"collection: notes\nby: tags\n" + given("{slug: a}") + rest:                       "by: must be a field of type string",
		"collection: notes\nby: slug\n" + given("{slug: b}") + rest:                       `5:28: queries[0].relevant: "a" is not among the given records of notes`,
		"collection: notes\nby: slug\n" + given("{slug: a}, {slug: a}") + rest:            `given.records.notes[1].slug: there is another record with slug "a"`,
		"collection: notes\nby: slug\n" + given("") + rest:                                "given.records must have the records of notes",
		"collection: notes\n" + rest:                                                      "given.records must have the records of notes",
		"collection: notes\ngiven: {records: {nets: []}}\n" + rest:                        `given.records.nets: there is no collection "nets"`,
		"collection: notes\ngiven: {records: {notes: {}}}\n" + rest:                       "given.records.notes: must be a list of records",
		"collection: notes\nby: slug\n" + given(strings.Repeat("{n: 1}, ", 2001)) + rest:  "2000 records at most",
		"collection: notes\nby: slug\ngiven: {records: {notes: [&long {slug: " + strings.Repeat("x", 500_000) + "}, {slug: a, tags: [*long, *long, *long, *long, *long, *long, *long, *long, *long]}]}}\n" + rest: "given.records: is too much: a file of golden queries gives texts of 4 MiB",
		"collection: notes\nby: slug\n" + given("{slug: a}") + `queries: [{q: "-x", relevant: [a]}]`:                                                                                                              "queries[0].q: q has no word to look for",
		"collection: notes\nby: slug\n" + given("{slug: a}") + "queries: []":                                                                                                                                      "must have at least 1 elements",
	} {
		p := goldenProject(t, map[string]string{"search/x.golden.yaml": head + text})
		for kind, read := range map[string]func() ([]*project.Golden, schema.Problems){
			"directory": func() ([]*project.Golden, schema.Problems) { return project.Goldens(p) },
			"bundle": func() ([]*project.Golden, schema.Problems) {
				return project.Bundle{Files: map[string][]byte{"search/x.golden.yaml": []byte(head + text), "tests/y.golden.yaml": []byte("no")}}.Goldens(p)
			},
		} {
			got, problems := read()
			if want == "" {
				if len(problems) > 0 || len(got) != 1 || got[0].Path() != "notes/main" {
					t.Errorf("%s of %s: %v, %v", kind, text, got, problems)
				}
				continue
			}
			if len(problems) != 1 || len(got) != 0 || !strings.Contains(problems[0].String(), "search/x.golden.yaml:") || !strings.Contains(problems[0].String(), want) {
				t.Errorf("%s of %.200s: %v, want %s", kind, text, problems, want)
			}
		}
	}
}

// What is no file of golden queries is not read, what can't be read is told, and there are not too many of them.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	p := goldenProject(t, map[string]string{"search/a.yaml": "no", "search/deep/a.golden.yaml": "no", "search/.a.golden.yaml": "no", "a.golden.yaml": "no"})
	if got, problems := project.Goldens(p); len(got)+len(problems) > 0 {
		t.Error(got, problems)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(p.Dir, "search", "out.golden.yaml")); err != nil {
		t.Fatal(err)
	}
	if got, problems := project.Goldens(p); len(got) > 0 || len(problems) != 1 || !strings.Contains(problems[0].String(), "outside the project's directory") {
		t.Error(got, problems)
	}
	files := map[string]string{}
	for i := range schema.MaxGoldenFiles + 1 {
		files["search/"+strings.Repeat("x", i+1)+".golden.yaml"] = "no"
	}
	if got, problems := project.Goldens(goldenProject(t, files)); len(got) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Message, "at most 50 files") {
		t.Error(got, problems)
	}
}
