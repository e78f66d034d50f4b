package mql

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// set is $set.
type set struct{ value bson.RawValue }

func compileSet(op *updateOp, v any) (change, bson.RawValue, error) {
	value, err := op.value(v, 0)
	return &set{value}, value, err
}

func (c *set) apply(s *updating, _ *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type == c.value.Type && bytes.Equal(old.Value, c.value.Value) {
		return 0, kept, nil
	}
	s.out = append(s.out, c.value.Value...)
	return c.value.Type, written, nil
}

// setOnInsert is $setOnInsert.
type setOnInsert struct{ set }

func compileSetOnInsert(op *updateOp, v any) (change, bson.RawValue, error) {
	value, err := op.value(v, 0)
	return &setOnInsert{set{value}}, value, err
}

func (c *setOnInsert) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if !s.Insert {
		return 0, kept, nil
	}
	return c.set.apply(s, op, old)
}

// unset is $unset.
type unset struct{}

func compileUnset(*updateOp, any) (change, bson.RawValue, error) { return unset{}, boolean(true), nil }

func (unset) apply(_ *updating, _ *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type == 0 {
		return 0, kept, nil
	}
	return 0, removed, nil
}

// arithmetic is $inc and $mul.
type arithmetic struct {
	by    bson.RawValue
	times bool
}

func compileArithmetic(op *updateOp, v any) (change, bson.RawValue, error) {
	by, err := op.value(v, 0)
	if err == nil && !isNumber(by.Type) {
		err = badUpdate("update: %s %s needs a number", op.name, op.path)
	}
	return &arithmetic{by, op.name == "$mul"}, by, err
}

func (c *arithmetic) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	missing := old.Type == 0
	switch {
	case missing && !c.times:
		s.out = append(s.out, c.by.Value...)
		return c.by.Type, written, nil
	case missing:
		old = bson.RawValue{Type: bson.TypeInt32, Value: []byte{0, 0, 0, 0}}
	case !isNumber(old.Type):
		return 0, kept, op.fail("the value is %s, and this needs a number", typeName(old.Type))
	}
	start := len(s.out)
	combine := document.AppendSum
	if c.times {
		combine = document.AppendProduct
	}
	t, out, ok := combine(s.out, old, c.by)
	if !ok {
		return 0, kept, op.fail("the result is larger than an integer can be: use a decimal")
	}
	s.out = out
	// Equal by number is no change: -0.0 stays, 1.0 stays where a decimal gains a digit. NaN equals nothing.
	if result := (bson.RawValue{Type: t, Value: out[start:]}); !missing && t == old.Type && !isNaN(result) &&
		document.Compare(old, result) == 0 {
		s.out = out[:start]
		return 0, kept, nil
	}
	return t, written, nil
}
