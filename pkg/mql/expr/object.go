package expr

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

func objectToArray(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return missing, fail(40390, "%s takes an object, not %s", name, typeName(v.Type))
	}
	if err := env.room(len(v.Value) * 4); err != nil {
		return missing, err
	}
	start, n := env.open(), 0
	for it := items(v); it.Next(); n++ {
		env.item(n, bson.RawValue{Type: bson.TypeEmbeddedDocument})
		pair := env.open()
		env.arena = append(env.arena, byte(bson.TypeString), 'k', 0)
		key := env.openText()
		env.arena = append(env.arena, it.Key()...)
		env.closeText(key)
		env.arena = document.AppendElement(env.arena, "v", it.Value())
		env.close(bson.TypeEmbeddedDocument, pair)
	}
	return env.close(bson.TypeArray, start), nil
}

// member is a field of an object that is being made.
type member struct {
	name  []byte
	value bson.RawValue
}

// members keeps fields in their order; a later value of a name takes the place of the first.
type members struct {
	list []member
	at   map[string]int
}

func (m *members) set(name []byte, v bson.RawValue) {
	const few = 16 // names that are quicker found without a map
	if m.at == nil && len(m.list) < few {
		for i := range m.list {
			if bytes.Equal(m.list[i].name, name) {
				m.list[i].value = v
				return
			}
		}
		m.list = append(m.list, member{name, v})
		return
	}
	if m.at == nil {
		m.at = make(map[string]int, 2*few)
		for i := range m.list {
			m.at[string(m.list[i].name)] = i
		}
	}
	if i, ok := m.at[string(name)]; ok {
		m.list[i].value = v
		return
	}
	m.at[string(name)] = len(m.list)
	m.list = append(m.list, member{name, v})
}

// object writes the fields that are not missing.
func (env *Env) object(m *members) (bson.RawValue, error) {
	size := 5
	for i := range m.list {
		size += len(m.list[i].name) + len(m.list[i].value.Value) + 2
	}
	if err := env.room(size); err != nil {
		return missing, err
	}
	start := env.open()
	for i := range m.list {
		if m.list[i].value.Type != 0 {
			env.arena = document.AppendElement(env.arena, m.list[i].name, m.list[i].value)
		}
	}
	return env.close(bson.TypeEmbeddedDocument, start), nil
}

func arrayToObject(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeArray:
		return missing, fail(40386, "%s takes a list, not %s", name, typeName(v.Type))
	}
	var m members
	var form bson.Type
	for it := items(v); it.Next(); {
		t := it.Value().Type
		switch {
		case form == 0 && t != bson.TypeArray && t != bson.TypeEmbeddedDocument:
			return missing, fail(40398, "%s takes a list of pairs, not of %s", name, typeName(t))
		case form == 0:
			form = t
		case t != form && form == bson.TypeArray:
			return missing, fail(40396, "%s takes a list of lists or of objects, not of both", name)
		case t != form:
			return missing, fail(40391, "%s takes a list of lists or of objects, not of both", name)
		}
		key, value, err := pairOf(name, it.Value())
		if err != nil {
			return missing, err
		}
		m.set(key, value)
	}
	return env.object(&m)
}

// pairOf reads a list of two or an object with k and v.
func pairOf(name string, v bson.RawValue) (key []byte, value bson.RawValue, err error) {
	n := count(v)
	if v.Type == bson.TypeArray {
		k, _ := document.Element(v.Value, 0)
		value, _ = document.Element(v.Value, 1)
		switch {
		case n != 2:
			return nil, missing, fail(40397, "%s takes lists of a name and a value, not of %d elements", name, n)
		case k.Type != bson.TypeString:
			return nil, missing, fail(40395, "%s needs text as a name, not %s", name, typeName(k.Type))
		case bytes.IndexByte(bytesOf(k), 0) >= 0:
			return nil, missing, fail(4940400, "%s: a name can't contain NUL", name)
		}
		return bytesOf(k), value, nil
	}
	k, hasKey := document.Field(v.Value, "k")
	value, hasValue := document.Field(v.Value, "v")
	switch {
	case n != 2:
		return nil, missing, fail(40392, "%s takes objects with k and v, not with %d fields", name, n)
	case !hasKey || !hasValue:
		return nil, missing, fail(40393, "%s takes objects with k and v", name)
	case k.Type != bson.TypeString:
		return nil, missing, fail(40394, "%s needs text as k, not %s", name, typeName(k.Type))
	case bytes.IndexByte(bytesOf(k), 0) >= 0:
		return nil, missing, fail(4940401, "%s: k can't contain NUL", name)
	}
	return bytesOf(k), value, nil
}

// mergeObjects is $mergeObjects.
type mergeObjects struct{ operands }

func (n *mergeObjects) eval(env *Env) (bson.RawValue, error) {
	var m members
	for _, a := range n.operands {
		v, err := a.eval(env)
		if err != nil {
			return missing, err
		}
		if v.Type == bson.TypeArray && len(n.operands) == 1 { // its elements are merged
			for it := items(v); it.Next(); {
				if err := m.merge(it.Value()); err != nil {
					return missing, err
				}
			}
			continue
		}
		if err := m.merge(v); err != nil {
			return missing, err
		}
	}
	return env.object(&m)
}

func (m *members) merge(v bson.RawValue) error {
	switch {
	case isNull(v.Type):
		return nil
	case v.Type != bson.TypeEmbeddedDocument:
		return fail(40400, "$mergeObjects takes objects, not %s", typeName(v.Type))
	}
	for it := items(v); it.Next(); {
		m.set(it.Key(), it.Value())
	}
	return nil
}

// getField is $getField.
type getField struct {
	name  string
	input node
}

func parseGetField(c *compiler, name string, v bson.RawValue) (node, error) {
	var field, input node
	var err error
	if v.Type == bson.TypeEmbeddedDocument {
		if it := items(v); !it.Next() || !bytes.HasPrefix(it.Key(), []byte{'$'}) {
			args, err := c.named(name, v, named{
				names: []string{"field", "input"}, required: 2, unknown: 3041701, lacking: []document.ServerCode{3041702, 3041703},
			})
			if err != nil {
				return nil, err
			}
			field, input = args[0], args[1]
		}
	}
	if field == nil {
		if field, err = c.expression(v); err != nil {
			return nil, err
		}
		if input, err = c.variable("CURRENT", ""); err != nil {
			return nil, err
		}
	}
	key, err := fieldName(name, field, [3]document.ServerCode{5654600, 5654601, 5654602})
	return &getField{key, input}, err
}

// fieldName reads the constant name of a field; the codes are for a path, for another expression, and for no text.
func fieldName(operator string, n node, codes [3]document.ServerCode) (string, error) {
	switch n := n.(type) {
	case *constant:
		switch n.v.Type {
		case bson.TypeString:
			return string(bytesOf(n.v)), nil
		case 0: // $$REMOVE
			return "", bad(codes[0], "%s needs the name of a field", operator)
		default:
		}
		return "", bad(codes[2], "%s needs text as field, not %s", operator, typeName(n.v.Type))
	case *rootPath, *slotPath, *outsidePath, *now:
		return "", bad(codes[0], "%s needs the name of a field, not its value: write {$literal: …} for a name that begins with $", operator)
	default:
		return "", bad(codes[1], "%s needs a constant as field", operator)
	}
}

func (n *getField) eval(env *Env) (bson.RawValue, error) {
	v, err := n.input.eval(env)
	switch {
	case err != nil || v.Type == 0:
		return missing, err
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return missing, nil
	}
	v, _ = document.Field(v.Value, n.name)
	return v, nil
}

func (n *getField) each(fn func(*node) error) error { return fn(&n.input) }

// fold leaves all as it is, as servers do.
func (n *getField) fold(*folder) (node, error) { return n, nil }

// setField is $setField and $unsetField: what the value is missing of, the field is removed.
type setField struct {
	operator, name string
	input, value   node
}

func parseSetField(c *compiler, name string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(4161100, "%s needs an object, not %s", name, typeName(v.Type))
	}
	n := &setField{operator: name}
	var field node
	for it := items(v); it.Next(); {
		var err error
		switch key := string(it.Key()); {
		case key == "field":
			field, err = c.expression(it.Value())
		case key == "input":
			n.input, err = c.expression(it.Value())
		case key == "value" && name == "$setField":
			n.value, err = c.expression(it.Value())
		default:
			err = bad(4161101, "%s does not know %s", name, document.Readable(key))
		}
		if err != nil {
			return nil, err
		}
	}
	if name == "$unsetField" {
		n.value = &constant{}
	}
	switch {
	case field == nil:
		return nil, bad(4161102, "%s needs field", name)
	case n.value == nil:
		return nil, bad(4161103, "%s needs value", name)
	case n.input == nil:
		return nil, bad(4161109, "%s needs input", name)
	}
	var err error
	n.name, err = fieldName(name, field, [3]document.ServerCode{4161108, 4161106, 4161107})
	return n, err
}

func (n *setField) eval(env *Env) (bson.RawValue, error) {
	v, err := n.input.eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return missing, fail(4161105, "%s takes an object, not %s", n.operator, typeName(v.Type))
	}
	value, err := n.value.eval(env)
	if err != nil {
		return missing, err
	}
	if err := env.room(len(v.Value) + len(value.Value) + len(n.name) + 2); err != nil {
		return missing, err
	}
	start, found := env.open(), false
	for it := items(v); it.Next(); {
		field := it.Value()
		if string(it.Key()) == n.name {
			field, found = value, true
		}
		if field.Type != 0 {
			env.arena = document.AppendElement(env.arena, it.Key(), field)
		}
	}
	if !found && value.Type != 0 {
		env.arena = document.AppendElement(env.arena, n.name, value)
	}
	return env.close(bson.TypeEmbeddedDocument, start), nil
}

func (n *setField) each(fn func(*node) error) error {
	if err := fn(&n.input); err != nil {
		return err
	}
	return fn(&n.value)
}

func (n *setField) fold(*folder) (node, error) { return n, nil }

func bsonSize(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return missing, fail(31393, "%s takes an object, not %s", name, typeName(v.Type))
	}
	return env.int32(int32(len(v.Value))), nil //nolint:gosec // below 2 GB
}

func binarySize(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(v.Type):
		return null, nil
	case v.Type == bson.TypeString, v.Type == bson.TypeBinary:
		return env.int32(int32(len(v.Value) - 5)), nil //nolint:gosec // as above; length and one byte more in both
	}
	return missing, fail(51276, "%s takes text or binary data, not %s", name, typeName(v.Type))
}
