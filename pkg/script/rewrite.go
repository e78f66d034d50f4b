package script

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
)

// shiftName is what programs call their guard of << and >> by; no script can write it.
const shiftName = "shift amount"

// guardShifts hands the right operands of << and >> through the meter, where they are no plain numbers: the operators
// are instructions, which no built-in stands for, and take any BigInt.
func guardShifts(node any) { rewrite(reflect.ValueOf(node)) }

// rewrite walks a tree of goja's nodes, which are structs, pointers, slices and interfaces.
func rewrite(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // nodes are made of these
	case reflect.Interface:
		rewrite(v.Elem())
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*file.File]() { // the source is no node
			rewriteNode(v.Interface())
			rewrite(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewrite(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewrite(v.Field(i))
			}
		}
	}
}

func rewriteNode(node any) {
	switch n := node.(type) {
	case *ast.BinaryExpression:
		if n.Operator == token.SHIFT_LEFT || n.Operator == token.SHIFT_RIGHT {
			n.Right = guardedShift(n.Right)
		}
	case *ast.AssignExpression:
		if n.Operator == token.SHIFT_LEFT || n.Operator == token.SHIFT_RIGHT {
			n.Right = guardedShift(n.Right)
		}
	}
}

func guardedShift(right ast.Expression) ast.Expression {
	if n, ok := right.(*ast.NumberLiteral); ok {
		if _, ok := n.Value.(int64); ok {
			return right
		}
	}
	return &ast.CallExpression{
		Callee:       &ast.Identifier{Name: shiftName, Idx: right.Idx0()},
		ArgumentList: []ast.Expression{right},
	}
}

// Things that goja makes by itself, outside of what package guard sees, when a program has certain syntax: with it, they
// are made, and so guarded, before the program runs. Too much costs a little time.
const (
	usesRegExp = 1 << iota
	usesError
	usesPromise
	usesAsync
	usesGenerator
	usesShift
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
	if has("<<", ">>") {
		uses |= usesShift
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
	if uses&usesShift != 0 {
		if err := r.vm.GlobalObject().DefineDataProperty(shiftName, r.vm.ToValue(r.meter.Shift), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE); err != nil {
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
