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
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	return nil, untypedError("true or false", text)
}
