package expr

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// zip is $zip: first the inputs, then as many defaults or none.
type zip struct {
	operands
	inputs  int
	longest bool
}

func parseZip(c *compiler, name string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(34460, "%s needs an object, not %s", name, typeName(v.Type))
	}
	n := &zip{}
	var inputs, defaults operands
	for it := items(v); it.Next(); {
		var err error
		switch key := string(it.Key()); {
		case key == "inputs" && it.Value().Type != bson.TypeArray:
			err = bad(34461, "%s needs a list as inputs", name)
		case key == "inputs":
			inputs, err = c.list(it.Value())
		case key == "defaults" && it.Value().Type != bson.TypeArray:
			err = bad(34462, "%s needs a list as defaults", name)
		case key == "defaults":
			defaults, err = c.list(it.Value())
		case key == "useLongestLength" && it.Value().Type != bson.TypeBoolean:
			err = bad(34463, "%s needs true or false as useLongestLength", name)
		case key == "useLongestLength":
			n.longest = Truth(it.Value())
		default:
			err = bad(34464, "%s does not know %s", name, document.Readable(key))
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(inputs) == 0:
		return nil, bad(34465, "%s needs at least one input", name)
	case !n.longest && len(defaults) > 0:
		return nil, bad(34466, "%s takes defaults only with useLongestLength", name)
	case len(defaults) > 0 && len(defaults) != len(inputs):
		return nil, bad(34467, "%s needs as many defaults as inputs", name)
	}
	n.operands, n.inputs = slices.Concat(inputs, defaults), len(inputs)
	return n, nil
}

func (n *zip) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	shortest, longest := -1, 0
	for _, a := range n.operands[:n.inputs] {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(v.Type):
			env.stack = env.stack[:mark]
			return null, nil
		case v.Type != bson.TypeArray:
			return missing, fail(34468, "$zip takes lists, not %s", typeName(v.Type))
		}
		size := count(v)
		longest = max(longest, size)
		if shortest < 0 || size < shortest {
			shortest = size
		}
		env.push(v)
	}
	rows := shortest
	if n.longest {
		rows = longest
	}
	if rows > shortest {
		if err := n.defaults(env); err != nil {
			return missing, err
		}
	}
	if err := env.room(rows * n.inputs * 8); err != nil {
		return missing, err
	}
	out, err := n.rows(env, env.stack[mark:], rows)
	env.stack = env.stack[:mark]
	return out, err
}

// defaults computes all defaults, and pushes them behind the inputs.
func (n *zip) defaults(env *Env) error {
	for _, a := range n.operands[n.inputs:] {
		v, err := a.eval(env)
		if err != nil {
			return err
		}
		env.push(v)
	}
	return nil
}

func (n *zip) rows(env *Env, values []bson.RawValue, rows int) (bson.RawValue, error) {
	columns := make([]document.Iter, n.inputs)
	for i := range columns {
		columns[i] = items(values[i])
	}
	start := env.open()
	for row := range rows {
		env.item(row, bson.RawValue{Type: bson.TypeArray})
		list, at := env.open(), 0
		for i := range columns {
			v := null
			if columns[i].Next() {
				v = columns[i].Value()
			} else if len(values) > n.inputs {
				v = values[n.inputs+i]
			}
			if v.Type != 0 { // a default that is missing is left out
				env.item(at, v)
				at++
			}
		}
		env.close(bson.TypeArray, list)
		if err := env.step(); err != nil {
			return missing, err
		}
	}
	return env.close(bson.TypeArray, start), nil
}

func (n *zip) fold(f *folder) (node, error) {
	_, err := f.operands(n)
	return n, err
}
