package fieldtype

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// listType holds a list of another type's values: string[], number[], object[], file[].
type listType struct{ item Type }

func (t listType) Name() string { return t.item.Name() + "[]" }

func (t listType) Parse(f *Field, v any, c *Check) any {
	list, ok := v.(bson.A)
	if !ok {
		c.wrongType("a list", v)
		return v
	}
	item := f.item()
	out := make(bson.A, len(list))
	for i, v := range list {
		c.enterItem(i)
		out[i] = t.item.Parse(item, v, c)
		c.leave()
	}
	return out
}

// Cast casts a list item by item; anything else is compared with the items, so it is cast as one.
func (t listType) Cast(f *Field, v any) (any, error) {
	item := f.item()
	list, ok := v.(bson.A)
	if !ok {
		return t.item.Cast(item, v)
	}
	out := make(bson.A, len(list))
	for i, v := range list {
		cast, err := item.Cast(v)
		if err != nil {
			return nil, err
		}
		out[i] = cast
	}
	return out, nil
}
