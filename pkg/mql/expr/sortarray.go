package expr

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// sortArray is $sortArray.
type sortArray struct {
	input node
	by    []sortKey
}

// sortKey is a field to sort by; without a path, the whole element.
type sortKey struct {
	path []string
	desc bool
}

func parseSortArray(c *compiler, name string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(2942500, "%s needs an object, not %s", name, typeName(v.Type))
	}
	n := &sortArray{}
	for it := items(v); it.Next(); {
		var err error
		switch string(it.Key()) {
		case "input":
			n.input, err = c.expression(it.Value())
		case "sortBy":
			n.by, err = parseSortBy(name, it.Value())
		default:
			err = bad(2942501, "%s does not know %s", name, document.Readable(it.Key()))
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case n.input == nil:
		return nil, bad(2942502, "%s needs input", name)
	case n.by == nil:
		return nil, bad(2942503, "%s needs sortBy", name)
	}
	return n, nil
}

func parseSortBy(name string, v bson.RawValue) ([]sortKey, error) {
	switch {
	case isNumber(v.Type):
		desc, ok := direction(v)
		if !ok {
			return nil, bad(2942506, "%s: sortBy has to be 1 or -1, or an object of fields", name)
		}
		return []sortKey{{nil, desc}}, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return nil, bad(2942507, "%s: sortBy has to be 1 or -1, or an object of fields", name)
	}
	var keys []sortKey
	for it := items(v); it.Next(); {
		desc, ok := direction(it.Value())
		path := strings.Split(string(it.Key()), ".")
		if !ok || slices.Contains(path, "") {
			return nil, bad(2942505, "%s: a field of sortBy needs a path and 1 or -1", name)
		}
		keys = append(keys, sortKey{path, desc})
	}
	if len(keys) == 0 {
		return nil, bad(2942505, "%s: sortBy is empty", name)
	}
	return keys, nil
}

// direction reads 1 or -1.
func direction(v bson.RawValue) (desc, ok bool) {
	if !isNumber(v.Type) || !isIntegral(v) {
		return false, false
	}
	n, err := toLong(v)
	return n == -1, err == nil && (n == 1 || n == -1)
}

func (n *sortArray) eval(env *Env) (bson.RawValue, error) {
	v, err := n.input.eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeArray:
		return missing, fail(2942504, "$sortArray takes a list, not %s", typeName(v.Type))
	}
	mark := len(env.stack)
	if err := env.pushAll(v); err != nil {
		return missing, err
	}
	slices.SortStableFunc(env.stack[mark:], n.compare)
	return env.popped(mark)
}

func (n *sortArray) compare(a, b bson.RawValue) int {
	for _, k := range n.by {
		c := compare(k.of(a), k.of(b))
		if k.desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// of is the part of an element to sort by. A path leads through objects only, and to null where there is nothing.
func (k sortKey) of(v bson.RawValue) bson.RawValue {
	for _, name := range k.path {
		if v.Type != bson.TypeEmbeddedDocument {
			return null
		}
		v, _ = document.Field(v.Value, name)
	}
	if v.Type == 0 {
		return null
	}
	return v
}

func (n *sortArray) each(fn func(*node) error) error { return fn(&n.input) }

func (n *sortArray) fold(f *folder) (node, error) {
	_, err := f.operands(n)
	return n, err
}
