package expr

import "slices"

// merging is how a server rewrites an operator with any number of operands before it runs it: which of them are computed
// at once, and in which order they come then. It shows in which error comes first, and in how sums are rounded.
type merging struct {
	commutes bool                          // constants go to the end
	inner    func(n node) (operands, bool) // the operands of an operator of the same kind, which take its place
	again    func(args operands) node      // the operator with other operands
}

// same gives the operands of an operator that is a T, for merging.inner.
func same[T interface {
	node
	list() operands
}](n node) (operands, bool) {
	inner, ok := n.(T)
	if !ok {
		return nil, false
	}
	return inner.list(), true
}

// fold gives the rewritten operator, or a constant.
func (m merging) fold(f *folder, args operands) (node, error) {
	all := true
	for i := range args {
		var err error
		if args[i], err = f.fold(args[i]); err != nil {
			return nil, err
		}
		all = all && isConstant(args[i])
	}
	if all {
		return f.compute(m.again(args))
	}
	var out, constants operands
	settle := func() error {
		if len(constants) > 1 {
			n, err := f.compute(m.again(constants))
			if err != nil {
				return err
			}
			constants = operands{n}
		}
		out, constants = append(out, constants...), nil
		return nil
	}
	queue := args
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if isConstant(n) {
			constants = append(constants, n)
			continue
		}
		if inner, ok := m.inner(n); ok {
			queue = append(slices.Clip(inner), queue...)
			continue
		}
		if !m.commutes {
			if err := settle(); err != nil {
				return nil, err
			}
		}
		out = append(out, n)
	}
	if err := settle(); err != nil {
		return nil, err
	}
	return m.again(out), nil
}
