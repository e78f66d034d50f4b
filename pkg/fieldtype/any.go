package fieldtype

import "go.mongodb.org/mongo-driver/v2/bson"

// anyType holds any JSON value. With subfields, an object in it and each object of a list, lists in it included, are checked by them.
type anyType struct{}

func (anyType) Name() string { return "any" }

func (anyType) Parse(f *Field, v any, c *Check) any {
	c.checkDepth(v)
	if f.Sub == nil {
		return v
	}
	return f.checkInside(v, c)
}

// checkInside checks the objects in a value by the subfields.
func (f *Field) checkInside(v any, c *Check) any {
	switch v := v.(type) {
	case bson.D:
		return f.Sub.check(v, f.Sub.strict || f.Strict, c)
	case bson.A:
		out := make(bson.A, len(v))
		for i, item := range v {
			c.enterItem(i)
			out[i] = f.checkInside(item, c)
			c.leave()
		}
		return out
	}
	return v
}

// Cast reads an Untyped as JSON would: numbers, true, false and null are themselves, all else is a string. The JSON
// form of a filter says "10" when it means the string.
func (anyType) Cast(_ *Field, v any) (any, error) {
	text, untyped := v.(Untyped)
	if !untyped {
		return v, nil
	}
	if v, ok := literal(text); ok {
		return v, nil
	}
	if n, ok := readNumber(string(text)); ok {
		return n, nil
	}
	return string(text), nil
}
