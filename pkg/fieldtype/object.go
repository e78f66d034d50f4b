package fieldtype

import "go.mongodb.org/mongo-driver/v2/bson"

// objectType holds an object. Without subfields its inside is not checked.
type objectType struct{}

func (objectType) Name() string { return "object" }

func (objectType) Parse(f *Field, v any, c *Check) any {
	doc, ok := v.(bson.D)
	if !ok {
		c.wrongType("an object", v)
		return v
	}
	if f.Sub == nil {
		c.checkDepth(doc)
		return doc
	}
	return f.Sub.check(doc, f.Sub.strict || f.Strict, c)
}

// Cast casts the members of an object that a query compares as a whole.
func (objectType) Cast(f *Field, v any) (any, error) {
	if text, untyped := v.(Untyped); untyped {
		if text == "null" {
			return nil, nil
		}
		return nil, untypedError("null: an object is compared by its members, or as JSON in filter=", text)
	}
	doc, ok := v.(bson.D)
	if !ok || f.Sub == nil {
		return v, nil
	}
	out := make(bson.D, len(doc))
	for i, e := range doc {
		out[i] = e
		member := f.Sub.byName[e.Key]
		if member == nil {
			continue
		}
		cast, err := member.Cast(e.Value)
		if err != nil {
			return nil, err
		}
		out[i].Value = cast
	}
	return out, nil
}
