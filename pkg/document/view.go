package document

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// View says which fields of a record go out. It is immutable and safe for concurrent use; nil is everything.
//
// Paths pass through lists: "variants.sku" means sku in each object of the list variants. As in a projection of
// MongoDB, an included path below a list leaves out its elements that are no objects, an excluded one keeps them, and
// a segment of digits is a field name, never an index.
type View struct{ mask mask }

// mask is the part of a View that applies to one value: what is included (nil: all) without what is excluded.
type mask struct{ include, exclude *node }

// NewView makes a view of what a caller selected, by including or excluding but not both, without what is hidden.
// _id (also called id) always stays. No paths at all give nil. Errors are errs.Invalid with code "bad_select".
func NewView(include, exclude, hidden []string) (*View, error) {
	if len(include) > 0 && len(exclude) > 0 {
		return nil, errs.New(errs.Invalid, "bad_select", "select either includes fields or excludes them; it can't do both")
	}
	v := &View{}
	if len(include) > 0 {
		v.mask.include = &node{}
		v.mask.include.add("_id")
		v.mask.include.add("id")
	}
	for _, path := range include {
		if err := checkSelect(path); err != nil {
			return nil, err
		}
		v.mask.include.add(path)
	}
	for _, paths := range [][]string{exclude, hidden} {
		for _, path := range paths {
			if err := checkSelect(path); err != nil {
				return nil, err
			}
			if path == "_id" || path == "id" {
				continue
			}
			if v.mask.exclude == nil {
				v.mask.exclude = &node{}
			}
			v.mask.exclude.add(path)
		}
	}
	if v.mask == (mask{}) {
		return nil, nil //nolint:nilnil // nil is the view of everything
	}
	return v, nil
}

func checkSelect(path string) error {
	for seg := range strings.SplitSeq(path, ".") {
		if seg == "" || seg[0] == '$' || strings.IndexByte(seg, 0) >= 0 {
			return errs.New(errs.Invalid, "bad_select", "%q is no field path; write it like title or seo.title", path)
		}
	}
	return nil
}

func (v *View) root() mask {
	if v == nil {
		return mask{}
	}
	return v.mask
}

// field gives the mask of a field and whether the field is seen at all. container says whether the value is an object
// or a list.
func (m mask) field(name []byte, container bool) (mask, bool) {
	var include, exclude *node
	if m.include != nil {
		include = m.include.kids[string(name)]
	}
	if m.exclude != nil {
		exclude = m.exclude.kids[string(name)]
	}
	return m.step(include, exclude, container)
}

func (m mask) step(include, exclude *node, container bool) (mask, bool) {
	if exclude != nil && exclude.leaf {
		return mask{}, false
	}
	if m.include == nil {
		return mask{exclude: exclude}, true
	}
	if include == nil {
		return mask{}, false
	}
	if include.leaf {
		return mask{exclude: exclude}, true
	}
	return mask{include, exclude}, container
}

// element says whether an element of a list is seen; it has the mask of the list.
func (m mask) element(container bool) bool { return m.include == nil || container }

func isContainer(t bson.Type) bool { return t == bson.TypeEmbeddedDocument || t == bson.TypeArray }

// Redact gives a copy of doc with only what the view shows. Parts that are shown whole are shared with doc.
func (v *View) Redact(doc bson.D) bson.D {
	if v == nil {
		return doc
	}
	return v.mask.redactObject(doc)
}

func (m mask) redactObject(doc bson.D) bson.D {
	out := make(bson.D, 0, len(doc))
	for _, e := range doc {
		value := plain(e.Value)
		sub, seen := m.field([]byte(e.Key), isTreeContainer(value))
		if seen {
			out = append(out, bson.E{Key: e.Key, Value: sub.redactValue(value)})
		}
	}
	return out
}

func (m mask) redactValue(v any) any {
	if m == (mask{}) {
		return v
	}
	switch v := v.(type) {
	case bson.D:
		return m.redactObject(v)
	case bson.A:
		out := make(bson.A, 0, len(v))
		for _, e := range v {
			if e = plain(e); m.element(isTreeContainer(e)) {
				out = append(out, m.redactValue(e))
			}
		}
		return out
	default:
		return v
	}
}

func isTreeContainer(v any) bool {
	switch v.(type) {
	case bson.D, bson.A:
		return true
	default:
		return false
	}
}

// plain turns the other forms that Marshal takes for objects and lists into bson.D and bson.A, so that nothing hides
// in them. What is damaged becomes null.
func plain(v any) any {
	switch v := v.(type) {
	case bson.Raw:
		return plainRaw(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: v})
	case bson.RawArray:
		return plainRaw(bson.RawValue{Type: bson.TypeArray, Value: v})
	case bson.RawValue:
		return plainRaw(v)
	case []any:
		return bson.A(v)
	case []bson.D:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	default:
		return v
	}
}

func plainRaw(v bson.RawValue) any {
	out, err := UnmarshalValue(v)
	if err != nil {
		return nil
	}
	return out
}
