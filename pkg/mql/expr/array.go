package expr

import (
	"encoding/binary"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// element is $arrayElemAt.
func element(_ *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case a.Type != bson.TypeArray:
		return missing, fail(28689, "%s takes a list, not %s", name, typeName(a.Type))
	case !isNumber(b.Type):
		return missing, fail(28690, "%s needs a number as the position, not %s", name, typeName(b.Type))
	case !isIntegral(b):
		return missing, fail(28691, "%s needs a whole number as the position", name)
	}
	n, err := toLong(b)
	if err != nil {
		return missing, err
	}
	if n < 0 {
		n += int64(count(a))
	}
	v, _ := document.Element(a.Value, int(n))
	return v, nil
}

func first(_ *Env, name string, v bson.RawValue) (bson.RawValue, error) { return end(name, v, false) }

func last(_ *Env, name string, v bson.RawValue) (bson.RawValue, error) { return end(name, v, true) }

func end(name string, v bson.RawValue, last bool) (out bson.RawValue, err error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeArray:
		return missing, fail(28689, "%s takes a list, not %s", name, typeName(v.Type))
	}
	for it := items(v); it.Next(); {
		out = it.Value()
		if !last {
			break
		}
	}
	return out, nil
}

// concatArrays is $concatArrays.
type concatArrays struct{ operands }

func (n *concatArrays) eval(env *Env) (bson.RawValue, error) {
	mark := len(env.stack)
	for _, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(v.Type):
			env.stack = env.stack[:mark]
			return null, nil
		case v.Type != bson.TypeArray:
			return missing, fail(28664, "$concatArrays takes lists, not %s", typeName(v.Type))
		}
		if err := env.pushAll(v); err != nil {
			return missing, err
		}
	}
	return env.popped(mark)
}

func (n *concatArrays) fold(f *folder) (node, error) {
	return merging{
		inner: same[*concatArrays],
		again: func(args operands) node { return &concatArrays{args} },
	}.fold(f, n.operands)
}

func in(_ *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	if b.Type != bson.TypeArray {
		return missing, fail(40081, "%s needs a list as its second operand, not %s", name, typeName(b.Type))
	}
	for it := items(b); it.Next(); {
		if compare(a, it.Value()) == 0 {
			return trueValue, nil
		}
	}
	return falseValue, nil
}

func isArray(_ *Env, _ string, v bson.RawValue) (bson.RawValue, error) {
	return boolean(v.Type == bson.TypeArray), nil
}

func size(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return missing, fail(17124, "%s takes a list, not %s", name, typeName(v.Type))
	}
	return env.int32(int32(count(v))), nil //nolint:gosec // a list has fewer
}

func reverse(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeArray:
		return missing, fail(34435, "%s takes a list, not %s", name, typeName(v.Type))
	}
	mark := len(env.stack)
	if err := env.pushAll(v); err != nil {
		return missing, err
	}
	slices.Reverse(env.stack[mark:])
	return env.popped(mark)
}

// indexOfArray is $indexOfArray: list, value, and from where and up to where it is searched for.
type indexOfArray struct{ operands }

func (n *indexOfArray) eval(env *Env) (bson.RawValue, error) {
	list, err := n.operands[0].eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(list.Type):
		return null, nil
	case list.Type != bson.TypeArray:
		return missing, fail(40090, "$indexOfArray takes a list, not %s", typeName(list.Type))
	}
	from, to, err := env.bounds("$indexOfArray", n.operands)
	if err != nil {
		return missing, err
	}
	v, err := n.operands[1].eval(env)
	if err != nil {
		return missing, err
	}
	at := 0
	for it := items(list); it.Next() && at < to; at++ {
		if at >= from && compare(v, it.Value()) == 0 {
			return env.int32(int32(at)), nil
		}
	}
	return env.int32(-1), nil
}

// fold looks at a constant list at once.
func (n *indexOfArray) fold(f *folder) (node, error) {
	all, err := f.operands(n)
	if err != nil {
		return n, err
	}
	if all {
		return f.compute(n)
	}
	if list, ok := n.operands[0].(*constant); ok {
		switch {
		case isNull(list.v.Type):
			return &constant{v: null}, nil
		case list.v.Type != bson.TypeArray:
			return n, fail(50809, "$indexOfArray takes a list, not %s", typeName(list.v.Type))
		}
	}
	return n, nil
}

// bounds computes the third and fourth operand of the operators that search: where to begin and where to end.
func (env *Env) bounds(name string, args operands) (from, to int, err error) {
	bounds := [2]int{0, math.MaxInt32}
	for i := range args[2:] {
		v, err := args[2+i].eval(env)
		if err != nil {
			return 0, 0, err
		}
		if !isIntegral(v) {
			return 0, 0, fail(40096, "%s needs whole numbers to begin and to end at, not %s", name, typeName(v.Type))
		}
		n, err := toLong(v)
		if err != nil {
			return 0, 0, err
		}
		if n < 0 {
			return 0, 0, fail(40097, "%s can't begin or end at the negative number %d", name, n)
		}
		bounds[i] = int(n)
	}
	return bounds[0], bounds[1], nil
}

// ranges is $range.
type ranges struct{ operands }

func (n *ranges) eval(env *Env) (bson.RawValue, error) {
	var v [3]bson.RawValue
	var err error
	for i := range 2 {
		if v[i], err = n.operands[i].eval(env); err != nil {
			return missing, err
		}
	}
	numbers := [3]int64{2: 1}
	for i := range n.operands {
		if i == 2 {
			if v[2], err = n.operands[2].eval(env); err != nil {
				return missing, err
			}
		}
		code := document.ServerCode(34443 + 2*i)
		switch {
		case !isNumber(v[i].Type):
			return missing, fail(code, "$range takes numbers, not %s", typeName(v[i].Type))
		case !isIntegral(v[i]):
			return missing, fail(code+1, "$range takes whole numbers of 32 bits")
		}
		if numbers[i], err = toLong(v[i]); err != nil {
			return missing, err
		}
	}
	if numbers[2] == 0 {
		return missing, fail(34449, "$range needs a step other than 0")
	}
	return env.numbers(numbers[0], numbers[1], numbers[2])
}

// numbers is a list of int32.
func (env *Env) numbers(from, to, step int64) (bson.RawValue, error) {
	n := (to - from + step - step/max(step, -step)) / step
	if n > 0 {
		if err := env.room(int(n) * 16); err != nil {
			return missing, err
		}
	}
	start := env.open()
	var v [4]byte
	for i := range max(n, 0) {
		binary.LittleEndian.PutUint32(v[:], uint32(from+i*step)) //nolint:gosec // the bits of an int32
		env.item(int(i), bson.RawValue{Type: bson.TypeInt32, Value: v[:]})
		if err := env.step(); err != nil {
			return missing, err
		}
	}
	return env.close(bson.TypeArray, start), nil
}

// slice is $slice: list, and how many, or where to begin and how many.
type slice struct{ operands }

func (n *slice) eval(env *Env) (bson.RawValue, error) {
	list, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	second, err := n.operands[1].eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(list.Type) || isNull(second.Type):
		return null, nil
	case list.Type != bson.TypeArray:
		return missing, fail(28724, "$slice takes a list, not %s", typeName(list.Type))
	}
	a, err := sliceNumber(second, 28725)
	if err != nil {
		return missing, err
	}
	size := count(list)
	from, to := 0, min(a, size)
	if a < 0 {
		from, to = max(size+a, 0), size
	}
	if len(n.operands) > 2 {
		third, err := n.operands[2].eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(third.Type):
			return null, nil
		}
		b, err := sliceNumber(third, 28727)
		switch {
		case err != nil:
			return missing, err
		case b <= 0:
			return missing, fail(28729, "$slice needs a positive number of elements")
		}
		if a >= 0 {
			from = min(a, size)
		}
		to = min(from+b, size)
	}
	mark, i := len(env.stack), 0
	for it := items(list); it.Next() && i < to; i++ {
		if i < from {
			continue
		}
		env.push(it.Value())
		if err := env.step(); err != nil {
			return missing, err
		}
	}
	return env.popped(mark)
}

func sliceNumber(v bson.RawValue, code document.ServerCode) (int, error) {
	switch {
	case !isNumber(v.Type):
		return 0, fail(code, "$slice takes numbers, not %s", typeName(v.Type))
	case !isIntegral(v):
		return 0, fail(code+1, "$slice takes whole numbers of 32 bits")
	}
	n, err := toLong(v)
	return int(n), err
}
