package script

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// The names that programs call functions of the meter by; no script can write them.
const (
	shiftName      = "shift amount"
	exponentName   = "exponent"
	productName    = "product of numbers"
	assignedName   = "assigned number"
	comparableName = "comparable value"
	spreadName     = "spread object"
)

// guardOperators hands operands and results of operators that can take their time through the meter: operators are
// instructions, which no built-in stands for.
func guardOperators(tree *ast.Program, text string) (used []string, said *names) {
	w := &rewriter{bigInts: bigInts.MatchString(text), names: names{said: map[unistring.String]int{}}}
	w.rewrite(reflect.ValueOf(tree))
	return w.used, &w.names
}

// bigInts matches texts that make a BigInt.
var bigInts = regexp.MustCompile(`BigInt|[0-9a-fA-F_]n\b`)

// rewriter rewrites a program.
type rewriter struct {
	bigInts bool     // the text has one
	used    []string // names of the meter's functions
	names   names    // that the program says
}

// rewrite walks a tree of goja's nodes, which are structs, pointers, slices and interfaces. Each node is visited once: a
// DeclarationList repeats statements of the same function.
func (w *rewriter) rewrite(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // nodes are made of these
	case reflect.Interface:
		w.rewrite(v.Elem())
		if e, ok := reflect.TypeAssert[ast.Expression](v); ok && v.CanSet() {
			if name := resultName(e); name != "" {
				v.Set(reflect.ValueOf(w.call(name, e)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*file.File]() { // the source is no node
			w.node(v.Interface())
			w.rewrite(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.rewrite(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[[]*ast.VariableDeclaration]() {
				w.rewrite(v.Field(i))
			}
		}
	}
}

func (w *rewriter) node(node any) {
	w.names.note(node)
	switch n := node.(type) {
	case *ast.BinaryExpression:
		w.binary(n)
	case *ast.AssignExpression:
		if n.Operator == token.SHIFT_LEFT || n.Operator == token.SHIFT_RIGHT {
			n.Right = w.guarded(shiftName, n.Right)
		}
	case *ast.ObjectLiteral:
		for _, p := range n.Value {
			if spread, ok := p.(*ast.SpreadElement); ok {
				spread.Expression = w.guarded(spreadName, spread.Expression)
			}
		}
	}
}

func (w *rewriter) binary(n *ast.BinaryExpression) {
	switch n.Operator { //nolint:exhaustive // the others take no time
	case token.SHIFT_LEFT, token.SHIFT_RIGHT:
		n.Right = w.guarded(shiftName, n.Right)
	case token.EXPONENT:
		n.Right = w.guarded(exponentName, n.Right)
	case token.EQUAL, token.NOT_EQUAL, token.LESS, token.LESS_OR_EQUAL, token.GREATER, token.GREATER_OR_EQUAL:
		if w.bigInts && !isNumber(n.Left) && !isNumber(n.Right) {
			n.Left, n.Right = w.guarded(comparableName, n.Left), w.guarded(comparableName, n.Right)
		}
	}
}

// resultName is what the value of an expression is handed to, empty if to nothing.
func resultName(e ast.Expression) string {
	switch n := e.(type) {
	case *ast.BinaryExpression:
		if isProduct(n.Operator) && !isNumber(n.Left) && !isNumber(n.Right) {
			return productName
		}
	case *ast.AssignExpression:
		if isProduct(n.Operator) && !isNumber(n.Right) {
			return assignedName
		}
	}
	return ""
}

func isProduct(t token.Token) bool {
	return t == token.MULTIPLY || t == token.SHIFT_LEFT || t == token.SHIFT_RIGHT
}

// isNumber says whether an expression is a number that is no BigInt, with which an operator takes no BigInt either.
func isNumber(e ast.Expression) bool {
	n, ok := e.(*ast.NumberLiteral)
	if !ok {
		return false
	}
	switch n.Value.(type) {
	case int64, float64:
		return true
	}
	return false
}

func (w *rewriter) guarded(name string, e ast.Expression) ast.Expression {
	if isNumber(e) {
		return e
	}
	return w.call(name, e)
}

func (w *rewriter) call(name string, e ast.Expression) ast.Expression {
	if !slices.Contains(w.used, name) {
		w.used = append(w.used, name)
	}
	return &ast.CallExpression{Callee: &ast.Identifier{Name: unistring.String(name), Idx: e.Idx0()}, ArgumentList: []ast.Expression{e}}
}

// Things that goja makes by itself, outside of what package guard sees, when a program has certain syntax: with it, they
// are made, and so guarded, before the program runs. Too much costs a little time.
const (
	usesRegExp = 1 << iota
	usesError
	usesPromise
	usesAsync
	usesGenerator
	usesRequire
)

// generator matches what esbuild writes for generators; it puts spaces around the operator.
var generator = regexp.MustCompile(`function\s*\*|\*[\w$#\["'\x60]`)

// requires matches a call of require that the bundle did not take in.
var requires = regexp.MustCompile(`\brequire\b`)

// comment matches the line comments in which esbuild names the files of a bundle.
var comment = regexp.MustCompile(`(?m)^\s*//.*$`)

// usesOf finds the syntax.
func usesOf(text string) int {
	text = comment.ReplaceAllString(text, "")
	uses := 0
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	if has("/") {
		uses |= usesRegExp
	}
	if has("async") {
		uses |= usesAsync
	}
	if has("async", "Promise", "sleep", "then", "db", "http", "cache", "files") {
		uses |= usesPromise
	}
	if has("catch") || uses&usesPromise != 0 {
		uses |= usesError
	}
	if generator.MatchString(text) {
		uses |= usesGenerator
	}
	if requires.MatchString(text) {
		uses |= usesRequire
	}
	return uses
}

// makeUsed makes what the program's syntax needs.
func (r *run) makeUsed() error {
	uses := r.call.Program.uses
	for i, name := range []string{"RegExp", "Error", "Promise"} {
		if uses&(1<<i) != 0 {
			r.vm.Get(name)
		}
	}
	for _, name := range r.call.Program.operators {
		if err := r.vm.GlobalObject().DefineDataProperty(name, r.vm.ToValue(r.operator(name)), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE); err != nil {
			return err
		}
	}
	for i, sample := range []*goja.Program{r.engine.asyncSample, r.engine.generatorSample} {
		if uses&(usesAsync<<i) == 0 {
			continue
		}
		v, err := r.vm.RunProgram(sample)
		if err != nil {
			return err
		}
		r.meter.Guard(v)
	}
	return nil
}

// operator gives the function of the meter that programs call by a name.
func (r *run) operator(name string) func(goja.FunctionCall) goja.Value {
	switch name {
	case shiftName:
		return r.meter.Shift
	case exponentName:
		return r.meter.Exponent
	case productName:
		return r.meter.Product
	case assignedName:
		return r.meter.Assigned
	case comparableName:
		return r.meter.Comparable
	default:
		return r.meter.Spread
	}
}
