package project_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func env(name string) (string, bool) {
	value, ok := map[string]string{"TOKEN": "a-token-from-the-environment"}[name]
	return value, ok
}

// write puts the files of an archive into a new directory.
func write(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lines(problems schema.Problems) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

const blog = `
-- project.yaml --
namespace: blog
strictFields: true
upload: {maxBodySize: 2MB}
admin:
  tokens: [{name: deploy, value: "${env:TOKEN}", rights: [reload]}]
legacy: {looseQuery: true}
collections:
  - articles.json
  - name: authors
    upload: {maxBodySize: 1MB}
    strictFields: false
    permissions: &perms
      public: {methods: {}}
      user: {methods: {get: true}}
    bulk: {mode: atomic, maxItems: 5}
    meta: {query: {preview: {type: boolean}}}
-- articles.json --
{
  "name": "articles",
  "permissions": {
    "public": {"methods": {"get": true}, "filter": {"active": true}, "hiddenFields": ["author"]},
    "user": {"methods": {"get": true}},
  },
  "fields": [
    {"name": "title", "type": "string", "index": ["single"], "validator": "required,max=200"},
    {"name": "slug", "type": "string", "validator": {"unique": true, "slug": true}},
    {"name": "code", "type": "string", "validator": {"unique": false}},
    {"name": "email", "type": "string", "index": ["unique", "sparse"], "hidden": true},
    {"name": "active", "type": "boolean", "meta": {"defaultValue": true}},
    {"name": "views", "type": "number", "readonly": true},
    {"name": "status", "type": "string", "meta": {"choices": ["draft", {"value": "live", "label": "Live"}]}},
    {"name": "author", "type": "string", "meta": {"foreign": {"collection": "authors", "label": "name"}}},
    {"name": "seo", "type": "object", "strictFields": false, "subFields": [
      {"name": "title", "type": "string", "index": ["single"]},
      {"name": "secret", "type": "string", "hidden": true}]},
    {"name": "tags", "type": "string[]"}
  ],
  "indexes": [
    {"key": ["-createdAt", "title"]},
    {"name": "titles", "key": ["title"], "sparse": true},
    {"name": "by_tag", "key": ["tags", "id"], "renamedFrom": "tags_old"}
  ],
  "hiddenFields": ["seo.secret"],
  "readonlyFields": ["seo.title"],
  "projections": {
    "short": {"select": {"title": 1, "seo": {"title": true}, "id": 1}},
    "long": {"select": {"seo": 0}},
    "whole": {"select": null}
  },
  "queryLimits": {"maxLimit": 50, "defaultLimit": 10, "maxTime": "2s"},
  "meta": {"defaultSort": "-createdAt,title"}
}
`

func TestLoad(t *testing.T) {
	t.Parallel()
	p, problems := project.Load(write(t, blog), "project.yaml", env)
	if p == nil {
		t.Fatalf("%s", strings.Join(lines(problems), "\n"))
	}
	if p.Namespace != "blog" || !p.LooseQuery || len(p.Revision) != 64 || len(p.Files) != 2 {
		t.Errorf("project = %+v", p)
	}
	c := p.Collections["articles"]
	wantIndexes := []project.Index{
		{Name: "createdAt_-1_title_1", Keys: []project.IndexKey{{Path: "createdAt", Desc: true}, {Path: "title"}}, Path: "collections[0].indexes[0]"},
		{Name: "titles", Keys: []project.IndexKey{{Path: "title"}}, Sparse: true, Path: "collections[0].indexes[1]"},
		{Name: "by_tag", Keys: []project.IndexKey{{Path: "tags"}}, RenamedFrom: "tags_old", Path: "collections[0].indexes[2]"},
		{Name: "slug_1", Keys: []project.IndexKey{{Path: "slug"}}, Unique: true, Sparse: true, Path: "collections[0].fields[1].validator"},
		{Name: "email_1", Keys: []project.IndexKey{{Path: "email"}}, Unique: true, Sparse: true, Path: "collections[0].fields[3].index"},
		{Name: "seo.title_1", Keys: []project.IndexKey{{Path: "seo.title"}}, Path: "collections[0].fields[8].subFields[0].index"},
	}
	if diff := cmp.Diff(wantIndexes, c.Indexes); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
	wantProjections := map[string]project.Projection{
		"short": {Include: []string{"title", "seo.title", "_id"}}, "long": {Exclude: []string{"seo"}}, "whole": {},
	}
	if diff := cmp.Diff(wantProjections, c.Projections); diff != "" {
		t.Errorf("projections (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mql.Sort{{Path: "createdAt", Desc: true}, {Path: "title"}}, c.DefaultSort); diff != "" {
		t.Error(diff)
	}
	if c.Limits.List.MaxLimit != 50 || c.Limits.List.MaxOffset != 10000 || c.Limits.MaxTime.Seconds() != 2 || c.Limits.MaxBodySize != 2_000_000 {
		t.Errorf("limits = %+v", c.Limits)
	}
	for _, path := range []string{"email", "seo.secret"} {
		if !c.Hidden.Covers(path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	if c.Hidden.Covers("title") || !c.Readonly.Covers("views") || !c.Readonly.Covers("seo.title") || c.Readonly.Covers("title") {
		t.Error("hidden or readonly fields are not what was declared")
	}
	if f, ok := c.Tree.Resolve("author"); !ok || f.Foreign == nil || f.Foreign.Collection != "authors" || f.Foreign.Label != "name" {
		t.Errorf("author = %+v", f)
	}
	if c.Tree.Open() {
		t.Error("strictFields of the project has no effect")
	}
	if f, ok := c.Tree.Resolve("seo"); !ok || f.Strict {
		t.Error("strictFields of the field has no effect")
	}
	if f, _ := c.Tree.Resolve("status"); len(f.Choices) != 2 || f.Choices[1] != "live" {
		t.Errorf("choices = %v", f.Choices)
	}
	grant, err := c.Permissions.Decide(access.Anonymous(), access.Get, access.Env{})
	if err != nil || grant.Filter == nil || !grant.Hidden.Covers("author") || !grant.Hidden.Covers("email") {
		t.Errorf("grant = %+v, %v", grant, err)
	}
	authors := p.Collections["authors"]
	if authors.Singleton || authors.QueryParams["preview"].Type != "boolean" || !authors.Tree.Open() || authors.Limits.MaxBodySize != 1_000_000 {
		t.Errorf("authors = %+v", authors)
	}
	if want := (project.Bulk{MaxItems: 5, MaxAffected: 10000, Atomic: true}); authors.Bulk != want {
		t.Errorf("bulk = %+v", authors.Bulk)
	}
}

const broken = `
-- project.yaml --
namespace: blog
admin: {tokens: [same, same]}
collections:
  - name: articles
    permissions:
      public: {methods: {get: true}, filter: {activ: true}}
      user: {methods: {get: true}, filter: {title: {$where: 1}}, hiddenFields: [titel, id]}
      token:${env:TOKEN}: {methods: {}, filter: {owner: {$var: user.id}}, readonlyFields: [nothing]}
    fields:
      - {name: title, type: string, validator: {min: 3, max: 1, emial: true}}
      - {name: size, type: number, validator: "required,pattern=x"}
      - {name: seo, type: string, subFields: [{name: a, type: string}]}
      - {name: tags, type: "string[]"}
      - {name: other, type: "number[]"}
      - {name: author, type: boolean, meta: {foreign: {collection: authors, key: emial}, choices: [3], defaultValue: x}}
    indexes:
      - {key: [titel]}
      - {key: [tags, other]}
      - {key: [title]}
      - {key: [title], unique: true}
    projections:
      a: {select: {title: 1, size: 0}}
      b: {select: {titel: 1, id: 0, size: 2}}
    meta: {defaultSort: {title: up, nothing: 1}}
    hiddenFields: [titel]
  - name: authors
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: email, type: string}]
    meta: {defaultSort: [-nam, 1]}
    bulk: {maxItems: many}
  - name: half
    permissions: {public: {methods: {}, filter: {x: 1}}, user: {methods: {}}}
    fields: [{name: email, type: strin}]
`

// TestEveryProblem shows that one broken config gives all of its problems at once: of the loader and of the compiler.
func TestEveryProblem(t *testing.T) {
	t.Parallel()
	dir := write(t, broken)
	p, problems := project.Load(dir, "project.yaml", env)
	if p != nil {
		t.Error("a broken config gives a project")
	}
	got := strings.Join(lines(problems), "\n") + "\n"
	if strings.Contains(got, "a-token-from") {
		t.Error("a problem shows a token")
	}
	want, err := os.ReadFile("testdata/every_problem.golden")
	if *update {
		want, err = []byte(got), os.WriteFile("testdata/every_problem.golden", []byte(got), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnsupported has one config for every row of the table, and sees that each place is refused with its own name.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	dir := write(t, `
-- project.yaml --
namespace: blog
collections:
  - name: a
    permissions:
      public: {methods: {}}
      user: {methods: {}}
    search: [{name: s, mode: vector, vector: {group: g}}]
    fields:
      - {name: t, type: string, index: [single, text], renamedFrom: u}
      - {name: r, type: string, meta: {foreign: {collection: x, namespace: shop}}}
      - {name: o, type: object}
`)
	p, problems := project.Load(dir, "project.yaml", env)
	if p != nil {
		t.Error("what is not supported is ignored")
	}
	var got []string
	for _, x := range problems {
		thing, rest, ok := strings.Cut(x.Message, " is not supported by this version of svcd; remove it")
		if !ok || rest != "" || x.Code != schema.CodeUnsupported {
			t.Errorf("unexpected problem: %v", x)
		}
		got = append(got, x.Path+" "+thing)
	}
	want := []string{
		"collections[0].fields[1].meta.foreign.namespace a relation to another project",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSettings: what is well formed, and can't do what it says.
func TestSettings(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{meta: {defaultSort: "-n,title"}}`:                                                     "",
		`{meta: {defaultSort: "n,-n"}}`:                                                         "meta.defaultSort: sort names n twice",
		`{meta: {defaultSort: [tags, more]}}`:                                                   "meta.defaultSort: a sort can go through one list only",
		`{meta: {defaultSort: "n,title"}, queryLimits: {maxSortFields: 1}}`:                     "meta.defaultSort: sort names 2 fields, the limit is 1",
		`{fields: [{name: a, type: string, meta: {foreign: {collection: c}}}]}`:                 "",
		`{fields: [{name: a, type: "string[]", meta: {foreign: {collection: c, key: name}}}]}`:  "",
		`{fields: [{name: a, type: any, meta: {foreign: {collection: c, key: n}}}]}`:            "",
		`{fields: [{name: a, type: number, meta: {foreign: {collection: c, key: name}}}]}`:      "fields[0].meta.foreign.key: a number is never equal to name of c, a string",
		`{fields: [{name: a, type: "string[]", meta: {foreign: {collection: c, key: n}}}]}`:     "fields[0].meta.foreign.key: a string is never equal to n of c, a number",
		`{fields: [{name: a, type: string, meta: {foreign: {collection: c, key: createdAt}}}]}`: "fields[0].meta.foreign.key: a string is never equal to createdAt of c, a date",
	} {
		item := "{name: items, permissions: {public: {methods: {}}, user: {methods: {}}}, " + strings.TrimPrefix(config, "{")
		if !strings.Contains(config, "fields:") {
			item = strings.TrimSuffix(item, "}") + `, fields: [{name: title, type: string}, {name: n, type: number}, {name: tags, type: "string[]"}, {name: more, type: "string[]"}]}`
		}
		dir := write(t, "-- project.yaml --\nnamespace: blog\ncollections:\n  - "+item+`
  - {name: c, permissions: {public: {methods: {}}, user: {methods: {}}}, fields: [{name: name, type: string}, {name: n, type: number}]}
`)
		_, problems := project.Load(dir, "project.yaml", env)
		var got []string
		for _, p := range problems {
			got = append(got, strings.TrimPrefix(p.Path, "collections[0].")+": "+p.Message)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// TestS46Confinement: nothing outside the project's directory is read, whatever the links say.
func TestS46Confinement(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	outside := write(t, "-- secret.yaml --\nagent: {purpose: stolen}\n-- dir/secret.yaml --\nagent: {purpose: stolen}\n")
	link := func(dir, name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		meta string
		want string
	}{
		"a link to a file outside":      {"link.yaml", "it lies outside the project's directory"},
		"a link to a directory outside": {"dir/secret.yaml", "it lies outside the project's directory"},
		"a path outside":                {"../secret.yaml", "it lies outside the project's directory"},
		"an absolute path":              {"/etc/hosts.yaml", "it lies outside the project's directory"},
		"a directory":                   {"folder.yaml", "it is not a file"},
		"a link inside":                 {"inside.yaml", ""},
		"a secret outside":              {"label: ${file:../secret.yaml}", "it lies outside the project's directory"},
		"a secret behind a link":        {"label: ${file:link.yaml}", "it lies outside the project's directory"},
		"a secret of the machine":       {"label: ${file:/etc/hostname}", "it lies outside the project's directory"},
		"a secret in a mount with dots": {"label: ${file:/run/secrets/../../etc/hostname}", "it lies outside the project's directory"},
		"a secret inside":               {"label: ${file:real.yaml}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := tt.meta
			if strings.Contains(meta, ":") {
				meta = "{" + strings.Replace(meta, ": ", `: "`, 1) + `"}`
			}
			dir := write(t, "-- project.yaml --\nnamespace: blog\nmeta: "+meta+"\n-- real.yaml --\nlabel: fine\n-- folder.yaml/x --\n")
			link(dir, "link.yaml", filepath.Join(outside, "secret.yaml"))
			link(dir, "dir", filepath.Join(outside, "dir"))
			link(dir, "inside.yaml", "real.yaml")
			p, problems := project.Load(dir, "project.yaml", env)
			if tt.want == "" {
				if p == nil {
					t.Fatal(problems)
				}
				return
			}
			if p != nil || len(problems) != 1 || !strings.HasSuffix(problems[0].Message, tt.want) {
				t.Errorf("problems = %v, want %q", lines(problems), tt.want)
			}
			if strings.Contains(fmt.Sprint(problems), outside) {
				t.Errorf("a problem shows a path of the machine: %v", problems)
			}
		})
	}
	t.Run("the directory itself is a link", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "current")
		if err := os.Symlink(write(t, blog), dir); err != nil {
			t.Fatal(err)
		}
		if p, problems := project.Load(dir, "project.yaml", env); p == nil {
			t.Error(problems)
		}
	})
}

func TestBounds(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString("-- project.yaml --\nnamespace: blog\ncollections:\n")
	for i := range 1001 {
		fmt.Fprintf(&many, "  - c/%d.yaml\n", i)
	}
	for i := range 1001 {
		fmt.Fprintf(&many, "-- c/%d.yaml --\nname: c%d\npermissions: {public: {methods: {}}, user: {methods: {}}}\n", i, i)
	}
	for name, tt := range map[string]struct{ archive, want string }{
		"no such directory": {"", "the config file can't be read: there is no such file"},
		"a huge file":       {"-- project.yaml --\nnamespace: blog\n#" + strings.Repeat("x", 1<<20), "the config file can't be read: it is too large"},
		"many files":        {many.String(), `"c/999.yaml" can't be read: the config has too many files`},
		"a missing value":   {"-- project.yaml --\nnamespace: blog\nsnapshotPath: ${env:NOPE}\n", "the environment variable NOPE is not set"},
		"a circle":          {"-- project.yaml --\nnamespace: blog\nmeta: project.yaml\n", `"project.yaml" is part of a circle of references`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, problems := project.Load(write(t, tt.archive), "project.yaml", env)
			if p != nil || len(problems) == 0 || problems[0].Message != tt.want {
				t.Errorf("problems = %v, want %q", lines(problems), tt.want)
			}
		})
	}
	if _, problems := project.Load(filepath.Join(t.TempDir(), "nowhere"), "project.yaml", env); !problems.Err() {
		t.Error("a directory that does not exist loads")
	}
	if _, problems := project.Load(t.TempDir(), "../project.yaml", env); !problems.Err() {
		t.Error("an entry outside the directory loads")
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := project.NewRegistry()
	if _, err := r.Get("blog"); !errors.Is(err, errs.ErrProjectNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	first := &project.Project{Namespace: "blog", Generation: 1}
	r.Set(first)
	r.Set(&project.Project{ID: "1", Namespace: "a"})
	var wg sync.WaitGroup
	for range 4 { // readers go on while generations are swapped in
		wg.Go(func() {
			last := int64(0)
			for range 1000 {
				p, err := r.Get("blog")
				if err != nil || p.Generation < last {
					t.Errorf("Get = %v, %v after generation %d", p, err, last)
					return
				}
				last = p.Generation
			}
		})
	}
	for i := range int64(100) {
		r.Set(&project.Project{ID: "2", Namespace: "blog", Generation: i + 2})
	}
	wg.Wait()
	if p, _ := r.Get("blog"); p.Generation != 101 || first.Generation != 1 {
		t.Errorf("generation = %d", p.Generation)
	}
	var names []string
	for _, p := range r.List() {
		names = append(names, p.Namespace)
	}
	if diff := cmp.Diff([]string{"a", "blog"}, names); diff != "" {
		t.Error(diff)
	}
	if p := r.ByID("2"); p == nil || p.Namespace != "blog" {
		t.Errorf("ByID = %v", p)
	}
	r.Set(&project.Project{ID: "3", Namespace: "blog"})
	r.Remove("2") // another registration has taken the namespace
	if p, err := r.Get("blog"); err != nil || p.ID != "3" {
		t.Errorf("after Remove of the project before: %v, %v", p, err)
	}
	r.Remove("3")
	if _, err := r.Get("blog"); err == nil || len(r.List()) != 1 || r.ByID("3") != nil {
		t.Error("Remove does not remove")
	}
	if got := project.DatabaseName("blog"); got != "svc_blog" {
		t.Errorf("DatabaseName = %s", got)
	}
}

// FuzzLoad holds that no config takes the compiler down, however much of it is wrong.
func FuzzLoad(f *testing.F) {
	for _, archive := range []string{blog, broken} {
		for _, file := range txtar.Parse([]byte(archive)).Files {
			f.Add(string(file.Data))
		}
	}
	f.Add("name: items\nmeta: {i18n: {languages: [en, de]}}\n" + searched + searchable)
	f.Add("namespace: blog\ncollections: [{name: items, " + strings.ReplaceAll(strings.TrimSpace(searched), "\n", ", ") + ", fields: [{name: title, type: string}]}]\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"project.yaml", "part.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, problems := project.Load(dir, "project.yaml", env)
			if (p == nil) != problems.Err() {
				t.Fatalf("project %v with problems %v", p, problems)
			}
			whole := "namespace: blog\ncollections: [part.yaml]\n"
			if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		project.Load(dir, "project.yaml", env)
	})
}
