package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// cond is $cond: condition, then, else.
type cond struct{ operands }

// parseCond takes the three operands as a list or by name.
func parseCond(c *compiler, name string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		args, err := c.operands(v)
		if err == nil && len(args) != 3 {
			err = wrongCount(name, operator{min: 3, max: 3}, len(args))
		}
		return &cond{args}, err
	}
	n := &cond{make(operands, 3)}
	for it := items(v); it.Next(); {
		var place int
		switch string(it.Key()) {
		case "if":
		case "then":
			place = 1
		case "else":
			place = 2
		default:
			return nil, bad(17083, "$cond knows if, then and else, not %s", document.Readable(it.Key()))
		}
		var err error
		if n.operands[place], err = c.expression(it.Value()); err != nil {
			return nil, err
		}
	}
	for i, part := range [...]string{"if", "then", "else"} {
		if n.operands[i] == nil {
			return nil, bad([...]document.ServerCode{17080, 17081, 17082}[i], "$cond needs %s", part)
		}
	}
	return n, nil
}

func (n *cond) eval(env *Env) (bson.RawValue, error) {
	v, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	if Truth(v) {
		return n.operands[1].eval(env)
	}
	return n.operands[2].eval(env)
}

// fold takes the branch that a constant condition leads to.
func (n *cond) fold(f *folder) (node, error) {
	all, err := f.operands(n)
	switch c, ok := n.operands[0].(*constant); {
	case err != nil:
		return n, err
	case all:
		return f.compute(n)
	case ok && Truth(c.v):
		return n.operands[1], nil
	case ok:
		return n.operands[2], nil
	default:
		return n, nil
	}
}

// ifNull is $ifNull: the first operand that is not null, or the last.
type ifNull struct{ operands }

func parseIfNull(c *compiler, _ string, v bson.RawValue) (node, error) {
	args, err := c.operands(v)
	if err == nil && len(args) < 2 {
		err = bad(1257300, "$ifNull needs at least two operands")
	}
	return &ifNull{args}, err
}

func (n *ifNull) eval(env *Env) (v bson.RawValue, err error) {
	for _, a := range n.operands {
		if v, err = a.eval(env); err != nil || !isNull(v.Type) {
			return v, err
		}
	}
	return v, nil
}

// fold leaves out what is null, and what comes after the first constant that is not, as servers do.
func (n *ifNull) fold(f *folder) (node, error) {
	all, err := f.operands(n)
	if err != nil {
		return n, err
	}
	if all {
		return f.compute(n)
	}
	last := len(n.operands) - 1
	var kept operands
	for i, a := range n.operands {
		c, ok := a.(*constant)
		switch {
		case !ok || i == last:
			kept = append(kept, a)
		case isNull(c.v.Type):
		default:
			kept = append(kept, a)
			return alone(kept), nil
		}
	}
	return alone(kept), nil
}

func alone(args operands) node {
	if len(args) == 1 {
		return args[0]
	}
	return &ifNull{args}
}

// choice is $switch: pairs of case and then; the default comes last, if there is one.
type choice struct {
	operands
	hasDefault bool
}

func parseSwitch(c *compiler, _ string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(40060, "$switch needs an object, not %s", typeName(v.Type))
	}
	n := &choice{}
	var otherwise node
	for it := items(v); it.Next(); {
		var err error
		switch string(it.Key()) {
		case "branches":
			err = n.parseBranches(c, it.Value())
		case "default":
			otherwise, err = c.expression(it.Value())
		default:
			err = bad(40067, "$switch knows branches and default, not %s", document.Readable(it.Key()))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(n.operands) == 0 {
		return nil, bad(40068, "$switch needs at least one branch")
	}
	if otherwise != nil {
		n.operands, n.hasDefault = append(n.operands, otherwise), true
	}
	return n, nil
}

func (n *choice) parseBranches(c *compiler, v bson.RawValue) error {
	if v.Type != bson.TypeArray {
		return bad(40061, "$switch needs a list of branches, not %s", typeName(v.Type))
	}
	for it := items(v); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			return bad(40062, "a branch of $switch has to be an object, not %s", typeName(it.Value().Type))
		}
		var when, then node
		for part := items(it.Value()); part.Next(); {
			var err error
			switch string(part.Key()) {
			case "case":
				when, err = c.expression(part.Value())
			case "then":
				then, err = c.expression(part.Value())
			default:
				err = bad(40063, "a branch of $switch has case and then, not %s", document.Readable(part.Key()))
			}
			if err != nil {
				return err
			}
		}
		switch {
		case when == nil:
			return bad(40064, "a branch of $switch needs case")
		case then == nil:
			return bad(40065, "a branch of $switch needs then")
		}
		n.operands = append(n.operands, when, then)
	}
	return nil
}

func (n *choice) eval(env *Env) (bson.RawValue, error) {
	i := 0
	for ; i+1 < len(n.operands); i += 2 {
		v, err := n.operands[i].eval(env)
		if err != nil {
			return missing, err
		}
		if Truth(v) {
			return n.operands[i+1].eval(env)
		}
	}
	if !n.hasDefault {
		return missing, fail(40066, "no branch of $switch fits, and there is no default")
	}
	return n.operands[i].eval(env)
}

// fold leaves out branches that are never taken; one that always is becomes the default.
func (n *choice) fold(f *folder) (node, error) {
	out := &choice{}
	last := len(n.operands) - 1
	if n.hasDefault { // it comes first
		var err error
		if n.operands[last], err = f.fold(n.operands[last]); err != nil {
			return nil, err
		}
	}
	for i := 0; i+1 < len(n.operands); i += 2 {
		when, err := f.fold(n.operands[i])
		if err != nil {
			return nil, err
		}
		c, ok := when.(*constant)
		if ok && !Truth(c.v) {
			continue
		}
		then, err := f.fold(n.operands[i+1])
		if err != nil {
			return nil, err
		}
		if ok {
			return out.end(then), nil
		}
		out.operands = append(out.operands, when, then)
	}
	if !n.hasDefault {
		if len(out.operands) == 0 {
			return nil, fail(40069, "no branch of $switch ever fits, and there is no default")
		}
		return out, nil
	}
	return out.end(n.operands[last]), nil
}

func (n *choice) end(otherwise node) node {
	if len(n.operands) == 0 {
		return otherwise
	}
	n.operands, n.hasDefault = append(n.operands, otherwise), true
	return n
}
