package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestStatusDoc finds every condition and every reason of pkg/status in gitops.md: programs switch on them.
func TestStatusDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(text), "\n## Status\n")
	conditions, events, found := strings.Cut(doc, "\n## Events\n")
	if !found {
		t.Fatal("gitops.md has no sections Status and Events")
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../pkg/status/condition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ofEvents := map[string]bool{"Enabled": true, "JobFailed": true, "SnapshotRunLost": true, "Restored": true, "RestoreUndone": true} // the reasons that no condition has
	known := 0
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				lit, ok := value.(*ast.BasicLit)
				if !ok {
					t.Fatalf("%T in the constants", value)
				}
				word, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				where := conditions
				if ofEvents[word] {
					where = events
				}
				if !strings.Contains(where, "\n| `"+word+"`") && word != "True" && word != "False" && word != "Unknown" {
					t.Errorf("gitops.md does not tell of %s", word)
				}
				known++
			}
		}
	}
	if known < 20 {
		t.Errorf("only %d constants: where are the others?", known)
	}
}
