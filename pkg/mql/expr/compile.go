package expr

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// operator is a row of the table.
type operator struct {
	// parse takes an operand as it stands. nil: the operands are expressions, in a list unless there is just one.
	parse func(c *compiler, name string, v bson.RawValue) (node, error)
	make  func(name string, args []node) node

	min, max int // operands; a negative max is any number
}

// compiler parses one expression.
type compiler struct {
	operators map[string]operator // the table, whose functions come back here: so it can't be named in them
	outside   []string            // variables by their place in Env.Vars
	scope     []string            // variables of the expression itself by their slot
	patterns  bool                // there are regular expressions
}

// newCompiler reads a value of the value model, and takes the names of the variables that are bound outside.
func newCompiler(v any, vars []string) (*compiler, bson.RawValue, error) {
	raw, err := document.MarshalValue(v)
	if err != nil {
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind != errs.Internal {
			return nil, missing, bad(codeBadValue, "the expression can't be read: %s", e.Message)
		}
		return nil, missing, err
	}
	for _, name := range vars {
		if err := CheckVariable(name); err != nil {
			return nil, missing, err
		}
	}
	return &compiler{operators: operators, outside: vars}, raw, nil
}

func (c *compiler) expression(v bson.RawValue) (node, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return c.object(v)
	case bson.TypeArray:
		items, err := c.list(v)
		if err != nil {
			return nil, err
		}
		return &arrayLiteral{items}, nil
	case bson.TypeString:
		if s := bytesOf(v); bytes.HasPrefix(s, []byte{'$'}) {
			return c.path(string(s))
		}
	default:
	}
	return &constant{v: v}, nil
}

// list parses each element of a list.
func (c *compiler) list(v bson.RawValue) (operands, error) {
	var out operands
	for it := items(v); it.Next(); {
		n, err := c.expression(it.Value())
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// object parses an operator or an object literal.
func (c *compiler) object(v bson.RawValue) (node, error) {
	it := items(v)
	if !it.Next() {
		return &constant{v: v}, nil
	}
	if name := it.Key(); bytes.HasPrefix(name, []byte{'$'}) {
		operand := it.Value()
		if it.Next() {
			return nil, bad(15983, "an object with the operator %s must have no other field", document.Readable(name))
		}
		return c.operator(string(name), operand)
	}
	return c.objectLiteral(v)
}

func (c *compiler) operator(name string, v bson.RawValue) (node, error) {
	op, ok := c.operators[name]
	if !ok {
		return nil, bad(168, "the operator %s is not supported in expressions", document.Readable(name))
	}
	if op.parse != nil {
		return op.parse(c, name, v)
	}
	args, err := c.operands(v)
	if err != nil {
		return nil, err
	}
	if n := len(args); n < op.min || (op.max >= 0 && n > op.max) {
		return nil, wrongCount(name, op, n)
	}
	return op.make(name, args), nil
}

func wrongCount(name string, op operator, n int) error {
	if op.min == op.max {
		return bad(16020, "%s takes %d operands, not %d", name, op.min, n)
	}
	return bad(28667, "%s takes %d to %d operands, not %d", name, op.min, op.max, n)
}

// operands parses a list of operands; what is no list is the only one.
func (c *compiler) operands(v bson.RawValue) (operands, error) {
	if v.Type == bson.TypeArray {
		return c.list(v)
	}
	n, err := c.expression(v)
	return operands{n}, err
}

// path parses what a string that begins with $ means.
func (c *compiler) path(s string) (node, error) {
	if !strings.HasPrefix(s, "$$") {
		if len(s) == 1 {
			return nil, bad(16872, "%q is no field path: write it like \"$title\"", s)
		}
		if err := checkPath(s[1:]); err != nil {
			return nil, err
		}
		return c.variable("CURRENT", s[1:])
	}
	name, path, dotted := strings.Cut(s[2:], ".")
	if err := checkVariable(name, false); err != nil {
		return nil, err
	}
	if dotted {
		if err := checkPath(path); err != nil {
			return nil, err
		}
	}
	return c.variable(name, path)
}

// checkPath refuses the path of a field behind a variable, which a server counts as a name of it.
func checkPath(path string) error {
	return document.CheckFieldPath(slugBad, path, document.MaxFieldNames-1)
}

// CheckVariable refuses what can't be the name of a variable that is to be bound. Errors are as those of Compile.
func CheckVariable(name string) error {
	if name == "CURRENT" {
		return nil
	}
	return checkVariable(name, true)
}

// checkVariable checks the name of a variable. One that is to be bound begins with a small letter, those that a server
// binds, such as ROOT, with a capital.
func checkVariable(name string, bound bool) error {
	if name == "" {
		return bad(codeFailedToParse, "the name of a variable can't be empty")
	}
	first := name[0]
	lower, upper := 'a' <= first && first <= 'z', 'A' <= first && first <= 'Z'
	if first < 0x80 && !lower && (bound || !upper) {
		return bad(codeFailedToParse, "the name %q of a variable has to begin with a small letter", document.Readable(name))
	}
	for i := range len(name) {
		b := name[i]
		if b < 0x80 && b != '_' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return bad(codeFailedToParse, "the name %q of a variable has a character other than letters, digits and _", document.Readable(name))
		}
	}
	return nil
}

// with parses what comes in the scope of further variables, and gives the slot of the first.
func (c *compiler) with(names []string, parse func(slot int) error) error {
	slot := len(c.scope)
	c.scope = append(c.scope, names...)
	err := parse(slot)
	c.scope = c.scope[:slot]
	return err
}

// slot finds a variable of the expression itself, the innermost one.
func (c *compiler) slot(name string) int {
	for i, n := range slices.Backward(c.scope) {
		if n == name {
			return i
		}
	}
	return -1
}
