package fieldtype

// booleanType holds true or false.
type booleanType struct{}

func (booleanType) Name() string { return "boolean" }

func (booleanType) Parse(_ *Field, v any, c *Check) any {
	if _, ok := v.(bool); !ok {
		c.wrongType("a boolean", v)
	}
	return v
}

func (booleanType) Cast(_ *Field, v any) (any, error) {
	text, untyped := v.(Untyped)
	if !untyped {
		return v, nil
	}
	if v, ok := literal(text); ok {
		return v, nil
	}
	return nil, untypedError("true or false", text)
}

// literal reads true, false and null.
func literal(text Untyped) (v any, ok bool) {
	switch text {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	}
	return nil, false
}
