package script

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/svcctl/svc/pkg/script/guard"
)

// Program is a compiled script. It is immutable and may run many times at once.
type Program struct {
	name   string
	files  []string
	code   *goja.Program
	text   string // what was compiled, for a worker process, which compiles it again
	smap   []byte // the source map of text; none for an expression
	expr   bool
	record *record // how its runs went
	hash   [sha256.Size]byte

	form      form
	operators []string // functions that stand in for operators; see rewrite.go
	uses      int      // syntax that needs something made; see rewrite.go
	modules   []int    // of modules(): those that the text names
}

// Name is the path of the file the program was made from, or the name of the expression.
func (p *Program) Name() string { return p.name }

// Files are the paths of all files that went in, the entry first.
func (p *Program) Files() []string { return p.files }

// Problem is why a script does not compile, at its own place. Line and Column start at 1; 0 is unknown.
type Problem struct {
	File    string
	Line    int
	Column  int
	Message string
}

// String gives "file:line:column: message".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems are all reasons why a script does not compile. None means that it does.
type Problems []Problem

// The wrappers of the code. They stay on the first line and end on a line of their own, so that a last comment of the
// script can't swallow them.
const (
	moduleHead = "(function (module, exports, require) {"
	moduleTail = "\n})"
	exprHead   = "(function (ctx) { return ("
	exprTail   = "\n); })"
)

// CompileExpr compiles one expression over ctx, such as "ctx.user && ctx.user.isAdmin". name is what failures call it.
func CompileExpr(name, expr string) (*Program, Problems) {
	if len(expr) > maxRun {
		return nil, Problems{{File: name, Message: "the expression is too long; put it into a file that ends in .js or .ts"}}
	}
	p := &Program{name: name, expr: true, text: exprHead + expr + exprTail}
	tree, err := goja.Parse(name, p.text, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, exprProblems(name, expr)
	}
	if !oneExpression(tree) {
		return nil, Problems{{File: name, Message: "an eval is one expression; put more into a file that ends in .js or .ts"}}
	}
	if takesApart(tree, p.text) {
		return nil, Problems{{File: name, Message: "an eval can't have {...rest} = object; put it into a file that ends in .js or .ts"}}
	}
	return p.finish(tree)
}

// oneExpression says whether the text between the wrappers stayed inside them.
func oneExpression(tree *ast.Program) bool {
	if len(tree.Body) != 1 {
		return false
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	f, ok := statement.Expression.(*ast.FunctionLiteral)
	if !ok || len(f.Body.List) != 1 {
		return false
	}
	_, ok = f.Body.List[0].(*ast.ReturnStatement)
	return ok
}

// exprProblems parses the bare expression again, for a position that is its own. What follows the first problem comes of it.
func exprProblems(name, expr string) Problems {
	lines := strings.Count(expr, "\n") + 1
	if strings.TrimSpace(expr) == "" {
		return Problems{{File: name, Line: 1, Column: 1, Message: "the expression is empty"}}
	}
	_, err := parser.ParseFile(nil, name, "("+expr+"\n)", 0, parser.WithDisableSourceMaps)
	if err == nil {
		return Problems{{File: name, Message: "not an expression"}}
	}
	first := parseProblems(name, err)[0]
	switch {
	case first.Line > lines:
		first = Problem{File: name, Line: lines, Column: len(expr) - strings.LastIndexByte(expr, '\n'), Message: "the expression ends too early"}
	case first.Line == 1 && first.Column > 1:
		first.Column-- // the parenthesis is ours
	}
	return Problems{first}
}

func parseProblems(name string, err error) Problems {
	if list, ok := errors.AsType[parser.ErrorList](err); ok {
		var problems Problems
		for _, e := range list {
			problems = append(problems, Problem{File: name, Line: e.Position.Line, Column: e.Position.Column, Message: e.Message})
		}
		return problems
	}
	return Problems{{File: name, Message: err.Error()}}
}

// finish compiles the tree.
func (p *Program) finish(tree *ast.Program) (*Program, Problems) {
	guard.Install()
	w := guardOperators(tree, p.text)
	if p.operators, p.form = w.used, bare; !p.expr {
		p.form = plainForm(tree, &w.names)
	}
	code, err := goja.CompileAST(tree, true)
	if err != nil {
		return nil, p.compileProblem(err)
	}
	p.code, p.record = code, &record{}
	for i, m := range modules() {
		if m.usedBy(p.text) {
			p.modules = append(p.modules, i)
		}
	}
	p.uses = usesOf(p.text)
	p.hash = sha256.Sum256([]byte(p.name + "\x00" + p.text))
	if len(p.files) == 0 && !p.expr {
		p.files = []string{p.name}
	}
	return p, nil
}

func (p *Program) compileProblem(err error) Problems {
	problem := Problem{File: p.name, Message: err.Error()}
	if e, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok {
		problem.Message = strings.TrimPrefix(e.Message, "SyntaxError: ")
		if e.File != nil {
			at := p.position(e.File.Position(e.Offset))
			problem.File, problem.Line, problem.Column = at.Filename, at.Line, at.Column
		}
	}
	return Problems{problem}
}

// position turns a place in the compiled text into one in the script's own files.
func (p *Program) position(at file.Position) file.Position {
	switch {
	case at.Line == 0:
		return file.Position{Filename: p.name}
	case p.smap != nil:
		return p.mapped(at)
	case at.Line == 1 && at.Column > len(exprHead):
		at.Column -= len(exprHead)
	}
	return file.Position{Filename: p.name, Line: at.Line, Column: at.Column}
}
