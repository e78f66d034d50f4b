package recordtypes_test

import (
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/recordtypes"
)

var update = flag.Bool("update", false, "write the golden files")

// written runs svcctl types against a service that gives a document.
func written(t *testing.T, doc string, args ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(doc))
	}))
	t.Cleanup(s.Close)
	st := commandtest.State(t)
	out := &strings.Builder{}
	st.Out = out
	if exit := cli.Run(t.Context(), st, append([]string{"types", "everything", "--server", s.URL}, args...)); exit != 0 {
		t.Fatalf("exit %d: %s", exit, st.Err)
	}
	return out.String()
}

// everything is the document of a project that has all types of fields.
func everything(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../pkg/openapi/testdata/everything.admin.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// hostile is a document whose names and texts try to become code.
const hostile = `{"components": {"schemas": {
	"type": {"type": "object", "title": "*/ evil(); /*", "description": "a\nvar x = 1\u2028b", "properties": {
		"a-b": {"type": "string"}, "-": {"type": "string"}, "a b": {"type": "string"}, "9": {"type": "integer"}, "über": {"type": ["string", "null"]}, "\"\\` + "`" + `": {"type": "boolean"},
		"e": {"enum": ["\"; evil()", 1, null]}, "self": {"$ref": "#/components/schemas/type"}, "none": {"$ref": "#/components/schemas/none"}, "never": {"type": "null"},
		"map": {"type": "object", "additionalProperties": {"type": "number"}}, "closed": {"type": "object", "additionalProperties": false},
		"or": {"oneOf": [{"type": "string"}, {"type": "number"}]}, "in": {"type": "object", "properties": {"in": {"type": "object", "properties": {"x": {"type": "array"}}}}}},
		"required": ["a-b", "-"]},
	"a\nvar Evil = 1\n//": {"type": "object", "title": "a\nvar Evil = 1", "properties": {"marks": {"enum": ["\u202e\ufeff\u2066\ud83d\ude00\udb40\udc41", "\u0085\u2028\u001b"]}, "\u202emark": {"type": "string"}}},
	"typeIn": {"type": "object", "properties": {"x": {"type": "string"}}},
	"type.page": {"type": "object", "properties": {"unwanted": {"type": "string"}}},
	"list": {"type": "array", "items": {"$ref": "#/components/schemas/svc.File"}},
	"svc.File": {"type": "object", "properties": {"path": {"type": "string"}}}
}}}`

func TestGolden(t *testing.T) {
	for _, tt := range []struct{ file, lang string }{{"everything.ts", "ts"}, {"everything.go.txt", "go"}} {
		got := written(t, everything(t), "--lang", tt.lang)
		path := filepath.Join("testdata", tt.file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: (-want +got; -update writes it)\n%s", tt.file, diff)
		}
	}
}

// TestGoCompiles has the types of Go checked as the compiler does.
func TestGoCompiles(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{"everything": everything(t), "hostile": hostile, "none": `{}`} {
		text := written(t, doc, "--lang", "go", "--package", "records", "-q")
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name+".go", text, parser.AllErrors)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		conf := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
		pkg, err := conf.Check("records", set, []*ast.File{file}, nil)
		wantSeen(t, text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if strings.Contains(text, "unwanted") || strings.Contains(text, `json:"-"`) || name == "hostile" && !strings.Contains(text, `json:"-,"`) || name != "none" && len(pkg.Scope().Names()) < 4 {
			t.Errorf("%s has %v", name, pkg.Scope().Names())
		}
		if pkg.Scope().Lookup("Evil") != nil {
			t.Errorf("%s: the name of a schema has become code", name)
		}
	}
}

// wantSeen wants a source in which there is nothing that people don't see, or see elsewhere than it stands.
func wantSeen(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\u200b' }); i >= 0 { // the last is ours, in */
		t.Errorf("there is %q", text[max(i-40, 0):min(i+10, len(text))])
	}
}

// TestHostileTypeScript: texts and names of a document are no code, and hide none.
func TestHostileTypeScript(t *testing.T) {
	t.Parallel()
	text := written(t, hostile, "--lang", "ts")
	wantSeen(t, text)
	if want := `"\u202e\ufeff\u2066😀\udb40\udc41" | "\u0085\u2028\u001b"`; !strings.Contains(text, want) {
		t.Errorf("%s is not in %s", want, text)
	}
}

// TestTypeScriptCompiles has those of TypeScript checked by its compiler, where it is installed (scripts/agents.sh).
func TestTypeScriptCompiles(t *testing.T) {
	t.Parallel()
	tsc := filepath.Join(os.Getenv("MCP_CLIENTS"), "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); os.Getenv("MCP_CLIENTS") == "" || err != nil {
		t.Skip("there is no TypeScript: make agents installs it")
	}
	dir := t.TempDir()
	use := `import type { Things, ThingsCreate, ThingsUpdate } from './everything';
const made: ThingsCreate = { title: 'A', slug: 'a', numbers: [1], kind: null, nested: { text: 'x', inside: { deep: 1 } } };
const read = (t: Things): string => t.id + (t.kind ?? 'none') + (t.rows?.[0]?.cell ?? '');
const change: ThingsUpdate = { level: 2.5 };
// @ts-expect-error: a slug is required
const lacks: ThingsCreate = { title: 'A', numbers: [1] };
// @ts-expect-error: no such kind
const wrong: ThingsUpdate = { kind: 'huge' };
// @ts-expect-error: no such field
const unknown: ThingsCreate = { title: 'A', slug: 'a', numbers: [1], none: 1 };
console.log(made, read, change, lacks, wrong, unknown);
`
	for name, text := range map[string]string{"everything.ts": written(t, everything(t), "--lang", "ts"), "hostile.ts": written(t, hostile, "--lang", "ts"), "use.ts": use} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), tsc, "--strict", "--noEmit", "--lib", "es2022,dom", filepath.Join(dir, "use.ts"), filepath.Join(dir, "hostile.ts")).CombinedOutput() //nolint:gosec // MCP_CLIENTS names it
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args, want string
	}{
		{"", "--lang is missing: want ts or go"}, {"--lang java", "want ts or go"}, {"--lang ts --package x", "--package is for --lang go"}, {"--lang go --package a-b", "want the name of a Go package"},
		{"--lang go --package func", "want the name of a Go package"},
	} {
		st := commandtest.State(t)
		exit := cli.Run(t.Context(), st, append([]string{"types", "x"}, strings.Fields(tt.args)...))
		if errs := st.Err.(interface{ String() string }).String(); exit != command.ExitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit %d: %s", tt.args, exit, errs)
		}
	}
}

// FuzzWritten: whatever a service gives as its document, there is an error or Go that can be parsed.
func FuzzWritten(f *testing.F) {
	f.Add(hostile)
	f.Add(`{"components":{"schemas":{"a":{"anyOf":[null,{"type":"null"}],"oneOf":[null]},"a.create":null,"b":{"properties":{"x":null,"y":{"items":null,"additionalProperties":null}}}}}}`)
	f.Add(`{"components":{"schemas":{"a":{"properties":[]}}}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		ts, text, err := recordtypes.Written([]byte(doc))
		if err != nil {
			return
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0); err != nil || ts == "" {
			t.Errorf("%v: %s", err, text)
		}
	})
}
