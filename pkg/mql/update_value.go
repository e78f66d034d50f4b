package mql

import (
	"bytes"
	"encoding/binary"

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
		err = coded(codeTypeMismatch, badUpdate("update: %s %s needs a number", op.name, op.path))
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
		return 0, kept, coded(codeTypeMismatch, op.fail("the value is %s, and this needs a number", typeName(old.Type)))
	}
	start := len(s.out)
	combine := document.AppendSum
	if c.times {
		combine = document.AppendProduct
	}
	t, out, ok := combine(s.out, c.by, old) // in this order: of two NaN the first counts
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

// bound is $min and $max.
type bound struct {
	value bson.RawValue
	max   bool
}

func compileBound(op *updateOp, v any) (change, bson.RawValue, error) {
	value, err := op.value(v, 0)
	return &bound{value, op.name == "$max"}, value, err
}

func (c *bound) apply(s *updating, _ *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type != 0 {
		order := document.Compare(c.value, old)
		if order == 0 || (order > 0) != c.max {
			return 0, kept, nil
		}
	}
	s.out = append(s.out, c.value.Value...)
	return c.value.Type, written, nil
}

// currentDate is $currentDate.
type currentDate struct{ timestamp bool }

func compileCurrentDate(op *updateOp, v any) (change, bson.RawValue, error) {
	kind := "date"
	switch v := v.(type) {
	case bool:
	case bson.D:
		name, _ := document.Member(v, "$type")
		kind, _ = name.(string)
		if len(v) != 1 || kind != "date" && kind != "timestamp" {
			return nil, bson.RawValue{}, badCurrentDate(op)
		}
	default:
		return nil, bson.RawValue{}, badCurrentDate(op)
	}
	return &currentDate{kind == "timestamp"}, object([]clause{{"$type", text(kind)}}), nil
}

func badCurrentDate(op *updateOp) error {
	return coded(codeBadValue, badUpdate(`update: $currentDate %s needs true, {"$type": "date"} or {"$type": "timestamp"}`, op.path))
}

func (c *currentDate) apply(s *updating, _ *updateOp, _ bson.RawValue) (bson.Type, verdict, error) {
	if c.timestamp {
		// Seconds above, a counter within the second below.
		stamp := uint64(s.Now.Unix())<<32 | uint64(s.Now.Nanosecond()/1000+1) //nolint:gosec // until 2106
		s.out = binary.LittleEndian.AppendUint64(s.out, stamp)
		return bson.TypeTimestamp, written, nil
	}
	s.out = binary.LittleEndian.AppendUint64(s.out, uint64(s.Now.UnixMilli()))
	return bson.TypeDateTime, written, nil
}

// bitwise is $bit: operations on integers, one after another.
type bitwise struct{ steps []bitStep }

type bitStep struct {
	name string
	by   int64
	long bool
}

func compileBit(op *updateOp, v any) (change, bson.RawValue, error) {
	d, ok := v.(bson.D)
	if !ok || len(d) == 0 {
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate(`update: $bit %s needs an object such as {"and": 5}, with "and", "or" or "xor"`, op.path))
	}
	c, sent := &bitwise{}, make([]clause, len(d))
	for i, e := range d {
		if e.Key != "and" && e.Key != "or" && e.Key != "xor" {
			return nil, bson.RawValue{}, coded(codeBadValue, badUpdate(`update: $bit %s: %q is none of "and", "or" and "xor"`, op.path, cut(e.Key)))
		}
		by, err := op.value(e.Value, 0)
		if err != nil {
			return nil, by, err
		}
		if by.Type != bson.TypeInt32 && by.Type != bson.TypeInt64 {
			return nil, by, coded(codeBadValue, badUpdate("update: $bit %s: %q needs an integer", op.path, e.Key))
		}
		n, _ := truncated(by)
		c.steps = append(c.steps, bitStep{e.Key, n, by.Type == bson.TypeInt64})
		sent[i] = clause{e.Key, by}
	}
	return c, object(sent), nil
}

func (c *bitwise) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type != 0 && old.Type != bson.TypeInt32 && old.Type != bson.TypeInt64 {
		return 0, kept, op.fail("the value is %s, and this needs an integer", typeName(old.Type))
	}
	before, _ := truncated(old)
	n, long := before, old.Type == bson.TypeInt64
	for _, step := range c.steps {
		switch step.name {
		case "and":
			n &= step.by
		case "or":
			n |= step.by
		default:
			n ^= step.by
		}
		long = long || step.long
	}
	switch {
	case long && old.Type == bson.TypeInt64 && n == before, !long && old.Type == bson.TypeInt32 && n == before:
		return 0, kept, nil
	case long:
		s.out = binary.LittleEndian.AppendUint64(s.out, uint64(n)) //nolint:gosec // the same bits
		return bson.TypeInt64, written, nil
	default:
		s.out = binary.LittleEndian.AppendUint32(s.out, uint32(n)) //nolint:gosec // the same bits
		return bson.TypeInt32, written, nil
	}
}
