package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// arrayLiteral is a list of expressions. What is missing becomes null in it.
type arrayLiteral struct{ operands }

func (a *arrayLiteral) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	for _, n := range a.operands {
		v, err := n.eval(env)
		if err != nil {
			return missing, err
		}
		env.push(v)
	}
	return env.popped(mark)
}

// objectLiteral is an object of expressions. What is missing is left out.
type objectLiteral struct {
	names []string
	operands
}

func (c *compiler) objectLiteral(v bson.RawValue) (node, error) {
	o := &objectLiteral{}
	seen := map[string]bool{}
	for it := items(v); it.Next(); {
		name := string(it.Key())
		if err := document.CheckFieldName(slugBad, name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, bad(16406, "the field %s is given twice in an object", document.Readable(name))
		}
		seen[name] = true
		n, err := c.expression(it.Value())
		if err != nil {
			return nil, err
		}
		o.names, o.operands = append(o.names, name), append(o.operands, n)
	}
	return o, nil
}

func (o *objectLiteral) eval(env *Env) (bson.RawValue, error) {
	mark, size := len(env.stack), 5
	for i, n := range o.operands {
		v, err := n.eval(env)
		if err != nil {
			return missing, err
		}
		size += len(o.names[i]) + len(v.Value) + 2
		env.push(v)
	}
	if err := env.room(size); err != nil {
		return missing, err
	}
	start := env.open()
	for i, v := range env.stack[mark:] {
		if v.Type != 0 {
			env.arena = document.AppendElement(env.arena, o.names[i], v)
		}
	}
	env.stack = env.stack[:mark]
	return env.close(bson.TypeEmbeddedDocument, start), nil
}

// parseLiteral is $literal and $const: what stands there is no expression.
func parseLiteral(_ *compiler, _ string, v bson.RawValue) (node, error) { return &constant{v: v}, nil }
