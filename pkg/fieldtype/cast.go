package fieldtype

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// CastOperand casts the constant behind an operator of a filter, or one item of the list behind $in, $nin and $all.
// Most operators compare it with values of the field; $exists, $size, $type, $mod and $regex say something about them,
// so there only an Untyped is read.
func (f *Field) CastOperand(op string, v any) (any, error) {
	switch op {
	case "$exists", "$size", "$mod", "$type", "$regex", "$options":
		text, untyped := v.(Untyped)
		if !untyped {
			return v, nil
		}
		return castAbout(op, text)
	}
	if d, ok := v.(bson.D); ok && op == "$eq" && f.neverObject() && (len(d) == 0 || !strings.HasPrefix(d[0].Key, "$")) {
		return nil, errObject
	}
	return f.Cast(v)
}

// errObject is for what would find nothing, in silence: an operator without its $, or a relation written as an object.
var errObject = errors.New(`is never an object: write an operator with its $, such as {"$gte": 5}, ` +
	`and a field of a related record by its path, such as {"author.name": "Ann"}`)

// neverObject says that no value of the field is an object, nor holds one.
func (f *Field) neverObject() bool {
	switch strings.TrimSuffix(f.Type.Name(), "[]") {
	case "string", "number", "boolean", "date":
		return true
	}
	return false
}

// castAbout reads what an operator needs that says something about a field whatever its type.
func castAbout(op string, text Untyped) (any, error) {
	switch op {
	case "$exists":
		return booleanType{}.Cast(nil, text)
	case "$size":
		return numberType{}.Cast(nil, text)
	case "$mod": // divisor,remainder
		var list bson.A
		for part := range strings.SplitSeq(string(text), ",") {
			n, err := numberType{}.Cast(nil, Untyped(part))
			if err != nil {
				return nil, err
			}
			list = append(list, n)
		}
		return list, nil
	case "$type": // by number or by name
		if n, ok := readNumber(string(text)); ok {
			return n, nil
		}
	}
	return string(text), nil
}

// untypedError says what a field would have taken.
func untypedError(want string, got Untyped) error {
	return fmt.Errorf("must be %s, is %q", want, string(got))
}
