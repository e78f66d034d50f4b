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
	equalsName     = "equal values"
	spreadName     = "spread object"
)

// guardOperators hands operands and results of operators that can take their time through the meter: operators are
// instructions, which no built-in stands for.
func guardOperators(tree *ast.Program, text string) *rewriter {
	w := &rewriter{names: names{said: map[unistring.String]int{}}, counted: map[*ast.BinaryExpression]bool{}, assigned: map[unistring.String]bool{}}
	if countingLoop.MatchString(text) {
		w.noteAssigned(reflect.ValueOf(tree))
	}
	w.rewrite(reflect.ValueOf(tree))
	return w
}

// countingLoop matches texts that have loops which count.
var countingLoop = regexp.MustCompile(`\bfor\s*\(let\b`)

// rewriter rewrites a program.
type rewriter struct {
	used  []string // names of the meter's functions
	names names    // that the program says

	counted  map[*ast.BinaryExpression]bool // conditions of loops that compare a number which they count
	assigned map[unistring.String]bool      // variables that may get another value than by counting
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
			} else if b, is := e.(*ast.BinaryExpression); is && (b.Operator == token.EQUAL || b.Operator == token.NOT_EQUAL) && !isShort(b.Left) && !isShort(b.Right) {
				v.Set(reflect.ValueOf(w.equals(b)))
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
	case *ast.ForStatement:
		w.count(n)
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
	case token.LESS, token.LESS_OR_EQUAL, token.GREATER, token.GREATER_OR_EQUAL:
		if !isShort(n.Left) && !isShort(n.Right) && !w.counted[n] {
			n.Left, n.Right = w.guarded(comparableName, n.Left), w.guarded(comparableName, n.Right)
		}
	}
}

// equals is a call in place of the operator ==.
func (w *rewriter) equals(n *ast.BinaryExpression) ast.Expression {
	call := w.call(equalsName, n.Left)
	call.ArgumentList = append(call.ArgumentList, n.Right)
	if n.Operator == token.NOT_EQUAL {
		return &ast.UnaryExpression{Operator: token.NOT, Idx: n.Idx0(), Operand: call}
	}
	return call
}

// count notes the condition of a loop, for (let i = 0; i < n; i++), where i is a number for certain: it needs no guard, and
// such loops are where it would cost most.
func (w *rewriter) count(n *ast.ForStatement) {
	begin, ok := n.Initializer.(*ast.ForLoopInitializerLexicalDecl)
	test, is := n.Test.(*ast.BinaryExpression)
	if !ok || !is || begin.LexicalDeclaration.Token != token.LET {
		return
	}
	for _, b := range begin.LexicalDeclaration.List {
		name, ok := b.Target.(*ast.Identifier)
		if !ok || b.Initializer == nil || !isNumber(b.Initializer) || w.assigned[name.Name] {
			continue
		}
		for _, side := range []ast.Expression{test.Left, test.Right} {
			if own, ok := side.(*ast.Identifier); ok && own.Name == name.Name {
				w.counted[test] = true
			}
		}
	}
}

// noteAssigned notes the variables to which something else is assigned than a number that is added.
func (w *rewriter) noteAssigned(v reflect.Value) {
	walk(v, func(node any) {
		switch n := node.(type) {
		case *ast.AssignExpression:
			if _, plain := n.Left.(*ast.Identifier); !plain || !isNumber(n.Right) {
				w.noteNames(n.Left)
			}
		case *ast.ForIntoExpression:
			w.noteNames(n.Expression)
		}
	})
}

func (w *rewriter) noteNames(target any) {
	walk(reflect.ValueOf(target), func(node any) {
		switch n := node.(type) {
		case *ast.Identifier:
			w.assigned[n.Name] = true
		case *ast.PropertyShort:
			w.assigned[n.Name.Name] = true
		}
	})
}

// takesApart says whether a program has {...rest} = object, which is one instruction, however much that is.
func takesApart(tree *ast.Program, text string) (does bool) {
	if strings.Contains(text, "...") {
		walk(reflect.ValueOf(tree), func(node any) {
			n, is := node.(*ast.ObjectPattern)
			does = does || is && n.Rest != nil
		})
	}
	return does
}

// walk visits the nodes of a tree.
func walk(v reflect.Value, visit func(node any)) {
	switch v.Kind() { //nolint:exhaustive // nodes are made of these
	case reflect.Interface:
		walk(v.Elem(), visit)
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*file.File]() {
			visit(v.Interface())
			walk(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[[]*ast.VariableDeclaration]() {
				walk(v.Field(i), visit)
			}
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

// isShort says whether an expression is no BigInt, no object and no long text.
func isShort(e ast.Expression) bool {
	switch n := e.(type) {
	case *ast.StringLiteral, *ast.BooleanLiteral, *ast.NullLiteral:
		return true
	case *ast.UnaryExpression:
		return n.Operator == token.TYPEOF || n.Operator == token.NOT || n.Operator == token.VOID
	}
	return isNumber(e)
}

func (w *rewriter) guarded(name string, e ast.Expression) ast.Expression {
	if isNumber(e) {
		return e
	}
	return w.call(name, e)
}

func (w *rewriter) call(name string, e ast.Expression) *ast.CallExpression {
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
	case equalsName:
		return r.meter.Equals
	default:
		return r.meter.Spread
	}
}
