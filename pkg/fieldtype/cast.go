package fieldtype

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// CastOperand casts what stands behind an operator of a filter. Most compare values of the field; $exists, $size,
// $type, $mod and $regex say something about them, so there only an Untyped is read.
func (f *Field) CastOperand(op string, v any) (any, error) {
	text, untyped := v.(Untyped)
	switch op {
	case "$in", "$nin", "$all":
		return f.castEach(v)
	case "$exists":
		if untyped {
			return booleanType{}.Cast(f, v)
		}
		return v, nil
	case "$size":
		if untyped {
			return numberType{}.Cast(f, v)
		}
		return v, nil
	case "$mod":
		if untyped {
			return (&Field{Type: numberType{}}).castEach(v)
		}
		return v, nil
	case "$type":
		if n, ok := readNumber(string(text)); untyped && ok {
			return n, nil
		}
		fallthrough
	case "$regex", "$options":
		if untyped {
			return string(text), nil
		}
		return v, nil
	}
	return f.Cast(v)
}

// castEach casts the items of a list operand; the short form separates them by commas.
func (f *Field) castEach(v any) (any, error) {
	var list bson.A
	switch v := v.(type) {
	case bson.A:
		list = v
	case Untyped:
		for item := range strings.SplitSeq(string(v), ",") {
			list = append(list, Untyped(item))
		}
	default:
		return f.Cast(v)
	}
	out := make(bson.A, len(list))
	for i, item := range list {
		cast, err := f.Cast(item)
		if err != nil {
			return nil, err
		}
		out[i] = cast
	}
	return out, nil
}

// untypedError says what a field would have taken.
func untypedError(want string, got Untyped) error {
	return fmt.Errorf("must be %s, is %q", want, string(got))
}
