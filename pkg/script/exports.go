package script

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// form is how a run comes to what a program exports. A module of CommonJS needs the objects module and exports, and a call of what
// is around it: more than a short script itself. Most scripts say what they export in one statement, so that they need none of it.
type form int

const (
	commonJS form = iota // call it with module, exports and require
	returns              // call it: it returns what it exports
	bare                 // it is the exported function, or the expression
)

// names counts what a program says, as far as the forms differ in it.
type names struct {
	said map[unistring.String]int
	this bool // this, arguments or new.target, which mean something else in a bare arrow function
}

func (n *names) note(node any) {
	switch x := node.(type) {
	case *ast.Identifier:
		n.said[x.Name]++
		n.this = n.this || x.Name == "arguments"
	case *ast.PropertyShort:
		n.said[x.Name.Name]++
	case *ast.ThisExpression, *ast.MetaProperty:
		n.this = true
	}
}

// plainForm turns a bundle whose only word of module, exports or require is the statement module.exports = … at its end
// into a simpler form, and gives the form. Everything else stays as it is.
func plainForm(tree *ast.Program, said *names) form {
	wrapper, ok := onlyFunction(tree)
	if !ok || len(wrapper.ParameterList.List) != 3 || said.said["module"] != 2 || said.said["exports"] != 1 || said.said["require"] != 1 {
		return commonJS // more than the parameters of the wrapper, and the one statement
	}
	list := wrapper.Body.List
	last := len(list) - 1
	for last >= 0 && isHoisted(list[last]) {
		last--
	}
	if last < 0 {
		return commonJS
	}
	exported, ok := moduleExports(list[last])
	if !ok {
		return commonJS
	}
	if f := said.onlyExport(list, last, exported); f != nil {
		tree.Body = []ast.Statement{&ast.ExpressionStatement{Expression: f}}
		return bare
	}
	list[last] = &ast.ReturnStatement{Return: list[last].Idx0(), Argument: exported}
	return returns
}

// onlyFunction gives the function that is all of a program.
func onlyFunction(tree *ast.Program) (*ast.FunctionLiteral, bool) {
	if len(tree.Body) != 1 {
		return nil, false
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil, false
	}
	f, ok := statement.Expression.(*ast.FunctionLiteral)
	return f, ok
}

// isHoisted says whether a statement does nothing where it stands.
func isHoisted(s ast.Statement) bool {
	switch s := s.(type) {
	case *ast.FunctionDeclaration, *ast.EmptyStatement:
		return true
	case *ast.ExpressionStatement:
		_, directive := s.Expression.(*ast.StringLiteral)
		return directive
	}
	return false
}

// moduleExports gives the right side of module.exports = ….
func moduleExports(s ast.Statement) (ast.Expression, bool) {
	statement, ok := s.(*ast.ExpressionStatement)
	if !ok {
		return nil, false
	}
	assign, ok := statement.Expression.(*ast.AssignExpression)
	if !ok || assign.Operator != token.ASSIGN {
		return nil, false
	}
	member, ok := assign.Left.(*ast.DotExpression)
	if !ok || member.Identifier.Name != "exports" {
		return nil, false
	}
	object, ok := member.Left.(*ast.Identifier)
	return assign.Right, ok && object.Name == "module"
}

// onlyExport gives the function that is exported, if a module has nothing else: as the value itself, or under a name that
// it has nowhere else.
func (n *names) onlyExport(list []ast.Statement, last int, exported ast.Expression) ast.Expression {
	if n.this {
		return nil
	}
	var others []ast.Statement
	for i, s := range list {
		if i != last && (!isHoisted(s) || isFunction(s)) {
			others = append(others, s)
		}
	}
	name, named := exported.(*ast.Identifier)
	switch {
	case len(others) == 0 && !named:
		return function(exported)
	case len(others) != 1 || !named || n.said[name.Name] != 2:
		return nil
	}
	switch s := others[0].(type) {
	case *ast.FunctionDeclaration:
		return s.Function
	case *ast.VariableStatement:
		return initialized(s.List, name.Name)
	case *ast.LexicalDeclaration:
		return initialized(s.List, name.Name)
	}
	return nil
}

func isFunction(s ast.Statement) bool {
	_, ok := s.(*ast.FunctionDeclaration)
	return ok
}

// initialized gives the function that a declaration gives a name to.
func initialized(list []*ast.Binding, name unistring.String) ast.Expression {
	if len(list) != 1 || list[0].Initializer == nil {
		return nil
	}
	if target, ok := list[0].Target.(*ast.Identifier); !ok || target.Name != name {
		return nil
	}
	return function(list[0].Initializer)
}

func function(e ast.Expression) ast.Expression {
	switch e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return e
	}
	return nil
}
