package expr

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// named are the operands of an operator that takes an object.
type named struct {
	names    []string
	required int // the first of them have to be there

	late      bool // they are parsed in this order, once it is known which there are
	backwards bool // in the other order
	// given looks at which there are before they are parsed; nil: whatever is required.
	given func(v []bson.RawValue) error

	noObject, unknown document.ServerCode
	lacking           []document.ServerCode // of each required name
}

// named parses the operands in the order of their names; nil stands for one that is not given.
func (c *compiler) named(operator string, v bson.RawValue, n named) (operands, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(n.noObject, "%s needs an object, not %s", operator, typeName(v.Type))
	}
	args := make(operands, len(n.names))
	given := make([]bson.RawValue, len(n.names))
	for it := items(v); it.Next(); {
		i := slices.Index(n.names, string(it.Key()))
		if i < 0 {
			return nil, bad(n.unknown, "%s does not know %s", operator, document.Readable(it.Key()))
		}
		given[i] = it.Value()
		if n.late {
			continue
		}
		var err error
		if args[i], err = c.expression(it.Value()); err != nil {
			return nil, err
		}
	}
	for i := range n.required {
		if given[i].Type == 0 {
			return nil, bad(n.lacking[i], "%s needs %s", operator, n.names[i])
		}
	}
	if n.given != nil {
		if err := n.given(given); err != nil {
			return nil, err
		}
	}
	for i := range given {
		if n.backwards {
			i = len(given) - 1 - i
		}
		if !n.late || given[i].Type == 0 {
			continue
		}
		var err error
		if args[i], err = c.expression(given[i]); err != nil {
			return nil, err
		}
	}
	return args, nil
}
