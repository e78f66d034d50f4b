package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// let is $let.
type let struct {
	slot   int
	values operands
	in     node
}

func parseLet(c *compiler, _ string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(16874, "$let needs an object with vars and in")
	}
	var vars, in bson.RawValue
	for it := items(v); it.Next(); {
		switch string(it.Key()) {
		case "vars":
			vars = it.Value()
		case "in":
			in = it.Value()
		default:
			return nil, bad(16875, "$let knows vars and in, not %s", document.Readable(it.Key()))
		}
	}
	switch {
	case vars.Type == 0:
		return nil, bad(16876, "$let needs vars")
	case in.Type == 0:
		return nil, bad(16877, "$let needs in")
	case vars.Type != bson.TypeEmbeddedDocument:
		return nil, bad(10065, "$let needs an object as vars")
	}
	n := &let{}
	var names []string
	for it := items(vars); it.Next(); {
		name := string(it.Key())
		if err := CheckVariable(name); err != nil {
			return nil, err
		}
		value, err := c.expression(it.Value())
		if err != nil {
			return nil, err
		}
		names, n.values = append(names, name), append(n.values, value)
	}
	err := c.with(names, func(slot int) (err error) {
		n.slot = slot
		n.in, err = c.expression(in)
		return err
	})
	return n, err
}

func (n *let) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	for _, value := range n.values {
		v, err := value.eval(env)
		if err != nil {
			return missing, err
		}
		env.push(v)
	}
	for i, v := range env.stack[mark:] {
		env.bind(n.slot+i, v)
	}
	env.stack = env.stack[:mark]
	return n.in.eval(env)
}

func (n *let) each(fn func(*node) error) error {
	if err := n.values.each(fn); err != nil {
		return err
	}
	return fn(&n.in)
}

// fold leaves a $let in place even if all of it is constant, as servers do.
func (n *let) fold(f *folder) (node, error) {
	if len(n.values) == 0 {
		return f.fold(n.in)
	}
	_, err := f.operands(n)
	return n, err
}
