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
type View struct {
	mask    mask
	members []Extra
}

// mask is the part of a View that applies to one value: what is included (nil: all) without what is excluded or hidden, and
// what takes the place of values.
type mask struct {
	include, exclude, hidden *node

	inlay *inlay
}

// NewView makes a view of what a caller selected, by including or excluding but not both, without what is hidden.
// _id (also called id) can't be excluded. No paths at all give nil. Errors are errs.Invalid with code "bad_select".
func NewView(include, exclude []string, hidden *PathSet) (*View, error) {
	if len(include) > 0 && len(exclude) > 0 {
		return nil, errs.New(errs.Invalid, "bad_select", "select either includes fields or excludes them; it can't do both")
	}
	v := &View{}
	if all := Without(hidden); all != nil {
		v.mask = all.mask
	}
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
	for _, path := range exclude {
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
	if v.mask == (mask{}) {
		return nil, nil //nolint:nilnil // nil is the view of everything
	}
	return v, nil
}

// Without is the view of everything but what is hidden.
func Without(hidden *PathSet) *View {
	if !hidden.Touches("") {
		return nil
	}
	return &View{mask: mask{hidden: &hidden.root}}
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
	hidden, in := m.hidden.kid(name)
	if in {
		return mask{}, false
	}
	exclude, in := m.exclude.kid(name)
	if in {
		return mask{}, false
	}
	below := mask{exclude: exclude, hidden: hidden}
	if m.inlay != nil {
		if below.inlay = m.inlay.kid(name); below.inlay != nil && below.inlay.gone {
			return mask{}, false
		}
	}
	if m.include == nil {
		return below, true
	}
	include := m.include.kids[string(name)]
	switch {
	case include == nil:
		return mask{}, false
	case include.leaf:
		return below, true
	}
	below.include = include
	return below, container
}

// bare says that an object with this mask goes out only with something in it.
func (m mask) bare() bool { return m.hidden != nil && m.hidden.bare }

// element says whether an element of a list is seen; it has the mask of the list.
func (m mask) element(container bool) bool { return m.include == nil || container }

func isContainer(t bson.Type) bool { return t == bson.TypeEmbeddedDocument || t == bson.TypeArray }
