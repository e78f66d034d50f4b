package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAuditTable: the tables of security.md have every op and every kind of entries of the audit log, and none that there is not.
func TestAuditTable(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../pkg/audit/entry.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]map[string]bool{"op": {}, "kind": {}}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		literal, ok := v.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Kind" {
			there["kind"][text] = true
		} else if strings.HasPrefix(v.Names[0].Name, "Op") {
			there["op"][text] = true
		}
		return true
	})
	if len(there["op"]) < 28 || len(there["kind"]) != 3 {
		t.Fatalf("found in the code: %v", there)
	}
	doc, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Audit\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile("`([a-z_-]+)`")
	for member, known := range there {
		told := map[string]bool{}
		for line := range strings.Lines(section) {
			if _, values, ok := strings.Cut(line, "| `"+member+"` | "); ok {
				values, _, _ = strings.Cut(values, " | ")
				for _, m := range named.FindAllStringSubmatch(values, -1) {
					told[m[1]] = true
				}
			}
		}
		for name := range known {
			if !told[name] {
				t.Errorf("security.md does not tell of the %s %s", member, name)
			}
		}
		for name := range told {
			if !known[name] {
				t.Errorf("there is no %s %s", member, name)
			}
		}
	}
	opsAreConstants(t)
}

// opsAreConstants: what is logged is one of the constants of package audit, so that a test that reads them sees all.
func opsAreConstants(t *testing.T) {
	t.Helper()
	literal := regexp.MustCompile(`(?:Operated|Snapshotted)\([^,\n]*, "|(?:startSnapshots|receive)\(w, r, "|(?:noteRun|noteInto|operateJob)\(r, "|audit\.Entry\{[^}]*\bOp: +"`)
	files := 0
	for _, dir := range []string{"actions", "auth", "httpapi", "records", "system"} {
		list, err := filepath.Glob("../pkg/" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range list {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			if found := literal.Find(text); found != nil {
				t.Errorf("%s logs an op that is no constant of package audit: %s", name, found)
			}
		}
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}
