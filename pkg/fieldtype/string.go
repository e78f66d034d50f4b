package fieldtype

import "go.mongodb.org/mongo-driver/v2/bson"

// stringType holds text, or the id of a foreign record as an ObjectID.
type stringType struct{}

func (stringType) Name() string { return "string" }

func (stringType) Parse(f *Field, v any, c *Check) any {
	if f.holdsIDs() {
		return parseID(v, c)
	}
	if _, ok := v.(string); !ok {
		c.wrongType("a string", v)
	}
	return v
}

func parseID(v any, c *Check) any {
	switch v := v.(type) {
	case bson.ObjectID:
		return v
	case string:
		id, err := bson.ObjectIDFromHex(v)
		if err != nil {
			c.Fail("type", "must be an id: 24 hex digits")
		}
		return id
	}
	c.wrongType("an id (24 hex digits)", v)
	return v
}

func (stringType) Cast(f *Field, v any) (any, error) {
	text, untyped := v.(Untyped)
	if !f.holdsIDs() {
		if untyped {
			return string(text), nil
		}
		return v, nil
	}
	hex, ok := v.(string)
	if untyped {
		if text == "null" {
			return nil, nil
		}
		hex, ok = string(text), true
	}
	if !ok {
		return v, nil
	}
	id, err := bson.ObjectIDFromHex(hex)
	switch {
	case err == nil:
		return id, nil
	case untyped:
		return nil, untypedError("an id: 24 hex digits", text)
	}
	return v, nil
}
