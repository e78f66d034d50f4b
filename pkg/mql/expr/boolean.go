package expr

import "go.mongodb.org/mongo-driver/v2/bson"

// logic is $and and $or: the operands from left to right, up to the first that decides.
type logic struct {
	operands
	decides bool // false for $and
}

func (n *logic) eval(env *Env) (bson.RawValue, error) {
	for _, a := range n.operands {
		v, err := a.eval(env)
		if err != nil {
			return missing, err
		}
		if Truth(v) == n.decides {
			return boolean(n.decides), nil
		}
	}
	return boolean(!n.decides), nil
}

// fold moves constants to the end, as servers do. One that decides there makes all operands vanish, with their errors.
func (n *logic) fold(f *folder) (node, error) {
	folded, err := merging{
		commutes: true,
		inner: func(o node) (operands, bool) {
			if l, ok := o.(*logic); ok && l.decides == n.decides {
				return l.operands, true
			}
			return nil, false
		},
		again: func(args operands) node { return &logic{args, n.decides} },
	}.fold(f, n.operands)
	l, ok := folded.(*logic)
	if err != nil || !ok {
		return folded, err
	}
	last := len(l.operands) - 1
	c, ok := l.operands[last].(*constant)
	switch {
	case !ok:
		return l, nil
	case Truth(c.v) == n.decides:
		return &constant{v: boolean(n.decides)}, nil
	case last == 1:
		return &unaryCall{"", l.operands[0], toTruth}, nil
	default:
		l.operands = l.operands[:last]
		return l, nil
	}
}

func toTruth(_ *Env, _ string, v bson.RawValue) (bson.RawValue, error) { return boolean(Truth(v)), nil }

func not(_ *Env, _ string, v bson.RawValue) (bson.RawValue, error) { return boolean(!Truth(v)), nil }
