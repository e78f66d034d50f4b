package expr

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// set pushes the different elements of a list in their order; of equal ones, the first counts.
func (env *Env) set(v bson.RawValue) ([]bson.RawValue, error) {
	mark := len(env.stack)
	if err := env.pushAll(v); err != nil {
		return nil, err
	}
	return env.distinct(mark), nil
}

// distinct sorts what was pushed since mark, and drops what is there already.
func (env *Env) distinct(mark int) []bson.RawValue {
	pushed := env.stack[mark:]
	slices.SortStableFunc(pushed, compare)
	pushed = slices.CompactFunc(pushed, func(a, b bson.RawValue) bool { return compare(a, b) == 0 })
	env.stack = env.stack[:mark+len(pushed)]
	return env.stack[mark:]
}

// contains searches a set.
func contains(set []bson.RawValue, v bson.RawValue) bool {
	_, found := slices.BinarySearchFunc(set, v, compare)
	return found
}

// setMany is $setUnion and $setIntersection.
type setMany struct {
	operands
	intersect bool
}

func (n *setMany) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	for i, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(v.Type):
			env.stack = env.stack[:mark]
			return null, nil
		case v.Type != bson.TypeArray && n.intersect:
			return missing, fail(17047, "$setIntersection takes lists, not %s", typeName(v.Type))
		case v.Type != bson.TypeArray:
			return missing, fail(17043, "$setUnion takes lists, not %s", typeName(v.Type))
		case !n.intersect:
			err = env.pushAll(v)
		case i == 0:
			_, err = env.set(v)
		default:
			err = env.intersect(mark, v)
		}
		if err != nil {
			return missing, err
		}
	}
	env.distinct(mark)
	return env.popped(mark)
}

// intersect keeps of the set that begins at mark what is in a list, too.
func (env *Env) intersect(mark int, list bson.RawValue) error {
	set := env.stack[mark:]
	other, err := env.set(list)
	if err != nil {
		return err
	}
	if len(set) > len(other) { // servers walk the smaller one
		set, other = other, slices.Clone(set)
	}
	kept := mark
	for _, v := range set {
		if contains(other, v) {
			env.stack[kept] = v
			kept++
		}
	}
	env.stack = env.stack[:kept]
	return nil
}

func (n *setMany) fold(f *folder) (node, error) {
	return merging{
		commutes: true,
		inner: func(o node) (operands, bool) {
			inner, ok := o.(*setMany)
			if !ok || inner.intersect != n.intersect {
				return nil, false
			}
			return inner.operands, true
		},
		again: func(args operands) node { return &setMany{args, n.intersect} },
	}.fold(f, n.operands)
}

// setEquals is $setEquals. The first constant operand is what the others are compared with.
type setEquals struct{ operands }

func parseSetEquals(c *compiler, name string, v bson.RawValue) (node, error) {
	args, err := c.operands(v)
	if err == nil && len(args) < 2 {
		err = bad(17045, "%s needs at least two operands", name)
	}
	return &setEquals{args}, err
}

func (n *setEquals) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	defer func() { env.stack = env.stack[:mark] }()
	size := 0
	for i, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case v.Type != bson.TypeArray:
			return missing, fail(17044, "$setEquals takes lists, not %s", typeName(v.Type))
		case i == 0:
			first, err := env.set(v)
			if err != nil {
				return missing, err
			}
			size = len(first)
			continue
		}
		env.stack = env.stack[:mark+size]
		other, err := env.set(v)
		if err != nil {
			return missing, err
		}
		if !slices.EqualFunc(env.stack[mark:mark+size], other, func(a, b bson.RawValue) bool { return compare(a, b) == 0 }) {
			return falseValue, nil
		}
	}
	return trueValue, nil
}

// fold looks at constant operands at once, but leaves it to be run even if all are, as servers do.
func (n *setEquals) fold(f *folder) (node, error) {
	first := -1
	for i := range n.operands {
		folded, err := f.fold(n.operands[i])
		if err != nil {
			return n, err
		}
		n.operands[i] = folded
		c, ok := folded.(*constant)
		if ok && c.v.Type != bson.TypeArray {
			return n, fail(5887502, "$setEquals takes lists, not %s", typeName(c.v.Type))
		}
		if ok && first < 0 {
			first = i
		}
	}
	if first > 0 {
		constant := n.operands[first]
		copy(n.operands[1:first+1], n.operands[:first])
		n.operands[0] = constant
	}
	return n, nil
}

func setDifference(env *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case a.Type != bson.TypeArray:
		return missing, fail(17048, "%s takes lists, not %s", name, typeName(a.Type))
	case b.Type != bson.TypeArray:
		return missing, fail(17049, "%s takes lists, not %s", name, typeName(b.Type))
	}
	mark := len(env.stack)
	known, err := env.set(b)
	if err != nil {
		return missing, err
	}
	middle := len(env.stack)
	if err := env.pushAll(a); err != nil {
		return missing, err
	}
	known, given := env.stack[mark:mark+len(known)], env.stack[middle:]
	order := make([]int, len(given)) // equal elements side by side, the first one in front
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(given[i], given[j]) })
	drop := make([]bool, len(given))
	for n, i := range order {
		drop[i] = n > 0 && compare(given[order[n-1]], given[i]) == 0 || contains(known, given[i])
	}
	kept := mark
	for i, v := range given {
		if !drop[i] {
			env.stack[kept] = v
			kept++
		}
	}
	env.stack = env.stack[:kept]
	return env.popped(mark)
}

// setIsSubset is $setIsSubset. known is set where the second operand is constant; errors have other codes then.
type setIsSubset struct {
	operands
	known bool
}

func (n *setIsSubset) eval(env *Env) (bson.RawValue, error) {
	a, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	b, err := n.operands[1].eval(env)
	switch {
	case err != nil:
		return missing, err
	case a.Type != bson.TypeArray && n.known:
		return missing, fail(17310, "$setIsSubset takes lists, not %s", typeName(a.Type))
	case a.Type != bson.TypeArray:
		return missing, fail(17046, "$setIsSubset takes lists, not %s", typeName(a.Type))
	case b.Type != bson.TypeArray:
		return missing, fail(17042, "$setIsSubset takes lists, not %s", typeName(b.Type))
	}
	mark := len(env.stack)
	set, err := env.set(b)
	if err != nil {
		return missing, err
	}
	env.stack = env.stack[:mark]
	for it := items(a); it.Next(); {
		if !contains(set, it.Value()) {
			return falseValue, nil
		}
	}
	return trueValue, nil
}

func (n *setIsSubset) fold(f *folder) (node, error) {
	all, err := f.operands(n)
	if err != nil {
		return n, err
	}
	if all {
		return f.compute(n)
	}
	if c, ok := n.operands[1].(*constant); ok {
		if c.v.Type != bson.TypeArray {
			return n, fail(17311, "$setIsSubset takes lists, not %s", typeName(c.v.Type))
		}
		n.known = true
	}
	return n, nil
}

func allTrue(_ *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return missing, fail(17040, "%s takes a list, not %s", name, typeName(v.Type))
	}
	return boolean(!holds(v, false)), nil
}

func anyTrue(_ *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return missing, fail(17041, "%s takes a list, not %s", name, typeName(v.Type))
	}
	return boolean(holds(v, true)), nil
}

// holds says whether an element of a list is true, or false.
func holds(list bson.RawValue, want bool) bool {
	for it := items(list); it.Next(); {
		if Truth(it.Value()) == want {
			return true
		}
	}
	return false
}
