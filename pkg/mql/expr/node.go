package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// node is a part of a compiled expression.
type node interface {
	// eval gives the value, type 0 if it is missing. It may alias the document, the constants and env's arena.
	eval(env *Env) (bson.RawValue, error)
	// each calls fn for each operand, in the order in which they are computed.
	each(fn func(*node) error) error
}

// folding is a node that decides itself what of it is constant. The others are if all their operands are.
type folding interface {
	node
	fold(f *folder) (node, error)
}

// leaf is a node without operands.
type leaf struct{}

func (leaf) each(func(*node) error) error { return nil }

// constant is a value known when the expression is compiled.
type constant struct {
	leaf
	v bson.RawValue
}

func (c *constant) eval(*Env) (bson.RawValue, error) { return c.v, nil }

func (c *constant) fold(*folder) (node, error) { return c, nil }

// operands are those of a node that takes any number of them.
type operands []node

func (o operands) list() operands { return o }

func (o operands) each(fn func(*node) error) error {
	for i := range o {
		if o[i] == nil {
			continue
		}
		if err := fn(&o[i]); err != nil {
			return err
		}
	}
	return nil
}

// unaryCall applies a function to its one operand.
type unaryCall struct {
	name  string
	a     node
	apply unaryFunc
}

type unaryFunc func(env *Env, name string, v bson.RawValue) (bson.RawValue, error)

func (u *unaryCall) eval(env *Env) (bson.RawValue, error) {
	v, err := u.a.eval(env)
	if err != nil {
		return missing, err
	}
	return u.apply(env, u.name, v)
}

func (u *unaryCall) each(fn func(*node) error) error { return fn(&u.a) }

// binaryCall applies a function to its two operands, which are computed in any case.
type binaryCall struct {
	name  string
	a, b  node
	apply binaryFunc
	// backwards is set where a server computes the second operand first.
	backwards bool
}

type binaryFunc func(env *Env, name string, a, b bson.RawValue) (bson.RawValue, error)

func (n *binaryCall) eval(env *Env) (bson.RawValue, error) {
	first, second := n.a, n.b
	if n.backwards {
		first, second = n.b, n.a
	}
	a, err := first.eval(env)
	if err != nil {
		return missing, err
	}
	b, err := second.eval(env)
	if err != nil {
		return missing, err
	}
	if n.backwards {
		a, b = b, a
	}
	return n.apply(env, n.name, a, b)
}

func (n *binaryCall) each(fn func(*node) error) error {
	if err := fn(&n.a); err != nil {
		return err
	}
	return fn(&n.b)
}

// several applies a function to all its operands, which are computed in any case. An operand that was not given is nil,
// and missing for the function.
type several struct {
	name string
	operands
	apply severalFunc
	// late is set where a server computes even what is constant only for a document.
	late bool
}

type severalFunc func(env *Env, name string, args []bson.RawValue) (bson.RawValue, error)

func (n *several) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	for _, a := range n.operands {
		v := missing
		if a != nil {
			var err error
			if v, err = a.eval(env); err != nil {
				return missing, err
			}
		}
		env.push(v)
	}
	v, err := n.apply(env, n.name, env.stack[mark:])
	env.stack = env.stack[:mark]
	return v, err
}

func (n *several) fold(f *folder) (node, error) {
	all, err := f.operands(n)
	if err != nil || !all || n.late {
		return n, err
	}
	return f.compute(n)
}
