package schema_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/svcctl/svc/pkg/schema"
)

const secretValue = "very-secret-token-8812"

func env(name string) (string, bool) {
	if name == "ADMIN_TOKEN" {
		return secretValue, true
	}
	return "", false
}

// load takes the files of an archive through the loader; the first one is the entry.
func load(a *txtar.Archive) (*schema.Loaded, schema.Problems) {
	f := files{}
	for _, file := range a.Files {
		if file.Name != "want" {
			f[file.Name] = string(file.Data)
		}
	}
	return schema.LoadProject(f, a.Files[0].Name, env, f)
}

func corpus(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatal("no test data", err)
	}
	return names
}

// TestLoad compares what the loader says about the archives of testdata with their file want.
func TestLoad(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"good", "bad"} {
		for _, name := range corpus(t, dir) {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				a, err := txtar.ParseFile(name)
				if err != nil {
					t.Fatal(err)
				}
				_, problems := load(a)
				if problems.Err() != (dir == "bad") {
					t.Errorf("Err() = %v", problems.Err())
				}
				var got strings.Builder
				for _, p := range problems {
					got.WriteString(p.String() + "\n")
				}
				if strings.Contains(got.String(), secretValue) {
					t.Errorf("shows a secret:\n%s", got.String())
				}
				want := &a.Files[len(a.Files)-1]
				if want.Name != "want" {
					t.Fatal("the last file is not want")
				}
				if *update {
					want.Data = []byte(got.String())
					if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestLoadedValues(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/good/split.txtar")
	if err != nil {
		t.Fatal(err)
	}
	l, problems := load(a)
	if problems.Err() {
		t.Fatal(problems)
	}
	articles, authors := l.Project.Collections[0], l.Project.Collections[1]
	if got := len(articles.Fields); got != 3 || articles.Fields[1].Name != "subtitle" || articles.Fields[1].Type != "string" {
		t.Errorf("fields = %v", articles.Fields)
	}
	if authors.Fields != nil {
		t.Error("a collection without fields has some")
	}
	p := articles.Permissions
	wantTokens := []string{"from-a-file-5512", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
	var tokens []string
	for token := range p.Tokens {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	if diff := cmp.Diff(wantTokens, tokens); diff != "" {
		t.Error(diff)
	}
	all := schema.MethodRights{Allow: true, Count: true, Facet: true}
	bulk := all
	bulk.Bulk = true
	if diff := cmp.Diff(schema.Methods{Get: all, Post: all, Put: bulk, Delete: all}, p.Teams["editors"].Methods); diff != "" {
		t.Error(diff)
	}
	if p.User.Methods.Put.Aggregate || p.Public.Methods.Post.Count {
		t.Error("a right that nobody gave")
	}
	if got := l.Project.Admin.Tokens[0]; got.Value != secretValue || len(got.Rights) != 3 {
		t.Errorf("admin token = %v", got)
	}
	if got := articles.Meta.Label.In("de-AT"); got != "Artikel" {
		t.Errorf("label = %q", got)
	}
	if got := articles.Meta.Agent[0].Value; got != "write ${env:HOME} as it is" {
		t.Errorf("escaped text = %q", got)
	}
	if len(l.Files) != 7 || !slices.IsSortedFunc(l.Files, func(a, b schema.File) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("files = %v", l.Files)
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/good/split.txtar")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := load(a)
	for path, want := range map[string]string{
		"":                              "project.yaml:2:1",
		"namespace":                     "project.yaml:2:12",
		"collections[0]":                "collections/articles.yaml:1:1",
		"collections[0].fields[2].type": "shared/published.json:4:11",
		"collections[0].fields[2].meta": "shared/published.json:1:1",
		"collections[0].fields[9].type": "collections/fields.yaml:1:1",
		"collections[0].meta.label.de":  "collections/articles.yaml:11:29",
		"collections[1].permissions.user.methods.put.bulk":              "shared/permissions.yaml:5:48",
		"collections[1].permissions.token:from-a-file-5512.methods.get": "shared/permissions.yaml:5:18",
		"collections[1].permissions.token:***.methods.get":              "shared/permissions.yaml:5:18",
		"nothing.at.all": "project.yaml:2:1",
	} {
		if got := l.Position(path).String(); got != want {
			t.Errorf("Position(%q) = %s, want %s", path, got, want)
		}
	}
	p := l.Problem("collections[1].permissions.token:from-a-file-5512.filter", schema.CodeInvalid, "bad %s", "from-a-file-5512")
	if want := "collections[1].permissions.token:***.filter"; p.Path != want || p.Message != "bad ***" {
		t.Errorf("Problem shows a token: %v", p)
	}
}

// TestRevision changes with everything that the config is made of, and with nothing else.
func TestRevision(t *testing.T) {
	t.Parallel()
	revision := func(project, part, secret string) string {
		f := files{"project.yaml": project, "a.yaml": part}
		l, problems := schema.LoadProject(f, "project.yaml", func(string) (string, bool) { return secret, true }, nil)
		if problems.Err() {
			t.Fatal(problems)
		}
		return l.Revision
	}
	project := "namespace: blog\nmeta: a.yaml\nsnapshotPath: ${env:X}\n"
	same := revision(project, "label: a\n", "one")
	if same != revision(project, "label: a\n", "one") {
		t.Error("the same config has two revisions")
	}
	for name, other := range map[string]string{
		"entry": revision(project+"\n", "label: a\n", "one"),
		"part":  revision(project, "label: b\n", "one"),
		"value": revision(project, "label: a\n", "two"),
	} {
		if other == same {
			t.Errorf("a change of the %s goes unnoticed", name)
		}
	}
}

// TestBombs feeds what would take other loaders down.
func TestBombs(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder
	laughs.WriteString("namespace: blog\nmeta:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		prev := string(rune('a'+i-1)) + "0"
		name := string(rune('a'+i)) + "0"
		laughs.WriteString("  " + name + ": &" + name + " [" + strings.Repeat("*"+prev+", ", 9) + "*" + prev + "]\n")
	}
	for name, tt := range map[string]struct{ file, data string }{
		"brackets in JSON":    {"p.json", strings.Repeat("[", 1<<20)},
		"objects in JSON":     {"p.json", strings.Repeat(`{"a":`, 1<<17)},
		"nested in JSON":      {"p.json", `{"namespace": "a", "meta": ` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 71)},
		"brackets in YAML":    {"p.yaml", strings.Repeat("[", 1<<20)},
		"braces in YAML":      {"p.yaml", strings.Repeat("{a: ", 1<<18)},
		"dashes in YAML":      {"p.yaml", strings.Repeat("- ", 1<<19)},
		"questions in YAML":   {"p.yaml", strings.Repeat("? ", 1<<19)},
		"nested in YAML":      {"p.yaml", "namespace: a\nmeta: " + strings.Repeat("[", 70) + strings.Repeat("]", 70)},
		"billion laughs":      {"p.yaml", laughs.String()},
		"empty lines in YAML": {"p.yaml", "namespace: blog\nmeta:\n  label: |\n    a" + strings.Repeat("\n", 1<<19)},
		"blank lines in YAML": {"p.yaml", "namespace: blog\nmeta:\n  label: >\n    a" + strings.Repeat("\n ", 102)},
		"CRs in YAML":         {"p.yaml", "namespace: blog\nmeta:\n  label: |\n    a" + strings.Repeat("\r", 102)},
		"CRLFs in YAML":       {"p.yaml", "namespace: blog\nmeta:\n  label: |\n    a" + strings.Repeat("\r\n", 102)},
		"anchor in itself":    {"p.yaml", "namespace: blog\nmeta: &a {b: *a}\n"},
		"not UTF-8":           {"p.yaml", "namespace: \xff\n"},
		"another ending":      {"p.toml", "namespace = 1"},
		"nothing":             {"p.json", ""},
		"a list":              {"p.json", "[]"},
		"null":                {"p.yaml", "null"},
		"a file of a string":  {"p.yaml", "p.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := schema.LoadProject(files{tt.file: tt.data}, tt.file, nil, nil)
			if !problems.Err() {
				t.Error("loads without a problem")
			}
			for _, p := range problems {
				if len(p.Message) > 300 {
					t.Errorf("a message of %d bytes", len(p.Message))
				}
			}
		})
	}
}

// TestEmptyLines holds that as many empty lines as a file may have in a row are no problem, wherever they are and however
// they end.
func TestEmptyLines(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "  \n"} {
		empty := strings.Repeat(end, 100)
		data := "namespace: blog" + "\n" + empty + "meta:\n  label: |\n    a\n" + empty + "strictFields: true\n" + empty
		loaded, problems := schema.LoadProject(files{"p.yaml": data}, "p.yaml", nil, nil)
		if problems.Err() || loaded == nil {
			t.Errorf("%q: %v", end, problems)
		}
	}
}

// TestCoreParameters holds that no collection declares a query parameter that the service has itself.
func TestCoreParameters(t *testing.T) {
	t.Parallel()
	names, err := parser.ParseFile(token.NewFileSet(), "../api/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	ast.Inspect(names, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Param") {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a string", spec.Names[0])
		}
		config := fmt.Sprintf(`{"namespace": "a", "collections": [{"name": "c", "meta": {"query": {%s: {}}},
			"permissions": {"public": {"methods": {}}, "user": {"methods": {}}}}]}`, value.Value)
		_, problems := load(&txtar.Archive{Files: []txtar.File{{Name: "project.json", Data: []byte(config)}}})
		if len(problems) != 1 || problems[0].Code != schema.CodeReserved {
			t.Errorf("api.%s in meta.query: %v, want one problem, reserved", spec.Names[0], problems)
		}
		checked++
		return true
	})
	if checked < 10 {
		t.Errorf("found %d parameters in pkg/api", checked)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	q := schema.DefaultQueryLimits()
	if q.MaxLimit != 1000 || q.DefaultLimit != 100 || q.MaxTime.Std().Seconds() != 5 || q.Regex != "any" || q.AllowAggregate != nil {
		t.Errorf("query limits = %+v", q)
	}
	for limits, want := range map[string]int{"{maxLimit: 10}": 10, "{maxLimit: 500}": 100, "{defaultLimit: 0, maxLimit: 10}": 0, "{defaultLimit: 7}": 7, "{}": 100} {
		config := "namespace: a\ncollections: [{name: c, queryLimits: " + limits + ", permissions: {public: {methods: {}}, user: {methods: {}}}}]\n"
		got, problems := load(&txtar.Archive{Files: []txtar.File{{Name: "project.yaml", Data: []byte(config)}}})
		if len(problems) > 0 || got.Project.Collections[0].QueryLimits.DefaultLimit != want {
			t.Errorf("queryLimits %s: %v, want the default limit %d", limits, problems, want)
		}
	}
	if b := schema.DefaultBulk(); *b != (schema.Bulk{MaxItems: 1000, MaxAffected: 10000, Mode: "continue", Hooks: "bulk"}) {
		t.Errorf("bulk = %+v", b)
	}
}

func TestJSONSchemaKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range schema.Kinds() {
		if s := compileSchema(t, kind); s.Validate(7.0) == nil {
			t.Errorf("the schema of %s takes a number", kind)
		}
	}
	if _, err := schema.JSONSchema("nothing"); err == nil {
		t.Error("no error for an unknown kind")
	}
}

// FuzzLoad holds that no text takes the loader down, that places exist, and that no problem shows a secret.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range a.Files {
				f.Add(string(file.Data), strings.HasSuffix(file.Name, ".json"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, isJSON bool) {
		name := "a.yaml"
		if isJSON {
			name = "a.json"
		}
		reader := files{name: text, "p.yaml": "namespace: blog\ncollections: [" + name + "]\n"}
		for _, entry := range []string{name, "p.yaml"} {
			_, problems := schema.LoadProject(reader, entry, env, reader)
			lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1 // a lone CR also ends a YAML line
			for _, p := range problems {
				if p.Line < 1 || p.Column < 1 || p.File == name && p.Line > lines+1 {
					t.Fatalf("no such place: %v", p)
				}
				if strings.Contains(p.String(), secretValue) && !strings.Contains(text, secretValue) {
					t.Fatalf("shows a secret: %v", p)
				}
			}
		}
	})
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/good/patterns.txtar")
	if err != nil {
		t.Fatal(err)
	}
	l, problems := load(a)
	if problems.Err() {
		t.Fatal(problems)
	}
	var got []string
	for i, c := range l.Project.Collections {
		for j, f := range c.Fields {
			got = append(got, c.Name+"."+f.Name+" "+l.Position(fmt.Sprintf("collections[%d].fields[%d]", i, j)).File)
		}
		got = append(got, c.Name+" "+l.Position(fmt.Sprintf("collections[%d]", i)).File)
	}
	want := []string{
		"pages pages.yaml", "a.a collections/fields/a.yaml", "a collections/a.yaml", "b.a collections/fields/a.yaml",
		"b.ab collections/fields/ab.yaml", "b.z collections/b.yaml", "b collections/b.yaml", "x more/1/x.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
