package fieldtype

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Tree is the fields of one object level: a collection's, or those inside an object field. It is immutable and safe
// for concurrent use.
type Tree struct {
	fields   []*Field
	byName   map[string]*Field
	defaults []*Field // those with a default
	required []*Field // those under the rule required
	across   []*Field // those that are compared with others
	strict   bool

	languages *Languages // nil: records have no translations
}

// NewTree makes a tree and takes the fields over. Of two fields with one name the last counts (a config is refused
// for it before). strict refuses undeclared names in Check; a tree without fields declares nothing and takes any name.
func NewTree(fields []*Field, strict bool) *Tree { return newTree(fields, strict, false) }

// newTree is NewTree. In a partial tree every field may be absent.
func newTree(fields []*Field, strict, partial bool) *Tree {
	t := &Tree{fields: fields, byName: make(map[string]*Field, len(fields)), strict: strict}
	for _, f := range fields {
		f.prepare()
		t.byName[f.Name] = f
		if f.Default != nil {
			t.defaults = append(t.defaults, f)
		}
		if slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.across != nil }) {
			t.across = append(t.across, f)
		}
		if f.Has("required") && !partial {
			t.required = append(t.required, f)
		}
	}
	return t
}

// Fields lists the declared fields in their order. The caller must not change the list.
func (t *Tree) Fields() []*Field { return t.fields }

// Required lists the fields that have to have a value, in their order. The caller must not change the list.
func (t *Tree) Required() []*Field { return t.required }

// Open says that undeclared names are kept when a record is written.
func (t *Tree) Open() bool { return !t.strict || len(t.fields) == 0 }

// Undeclared is the paths of records that Check refuses because they are not declared; nil for none.
func (t *Tree) Undeclared() *document.PathSet {
	below := make(map[string]*document.PathSet, len(t.fields)+len(systemFields))
	for _, name := range systemFields {
		below[name] = nil
	}
	return t.undeclared(t.strict, below)
}

// undeclared adds the fields of one level to below, which has those that are always there.
func (t *Tree) undeclared(strict bool, below map[string]*document.PathSet) *document.PathSet {
	none := true
	for _, f := range t.fields {
		below[f.Name] = nil
		if f.Sub != nil {
			below[f.Name] = f.Sub.undeclared(f.Sub.strict || f.Strict, map[string]*document.PathSet{})
		}
		if f.holder {
			below[f.Name] = below[f.Name].WithoutEmpty()
		}
		none = none && below[f.Name] == nil
	}
	strict = strict && len(t.fields) > 0
	if none && !strict {
		return nil
	}
	return document.NewPathTree(below, strict)
}

// Walk calls fn for every declared field, those inside others included, parents first.
func (t *Tree) Walk(fn func(f *Field)) {
	for _, f := range t.fields {
		fn(f)
		if f.Sub != nil {
			f.Sub.Walk(fn)
		}
	}
}

// Resolve gives the field at a dotted path of a query. List positions are stepped over ("tags.0", "items.2.name"). A
// path that is not declared has no field, with or without strict, except where nothing is declared: a collection
// without fields, and the inside of an object or any field without subfields; there it is an any field. The system
// fields resolve at the top; "id" and "_id" both give the field with the Path "_id".
func (t *Tree) Resolve(path string) (*Field, bool) {
	if strings.Count(path, ".") >= document.MaxDepth {
		return nil, false
	}
	name, rest, nested := strings.Cut(path, ".")
	if f := systemField(name); f != nil {
		return f, !nested
	}
	return t.resolve(path, name, rest, nested)
}

// resolve finds name in this level and goes on with rest below it. whole is the path from the top.
func (t *Tree) resolve(whole, name, rest string, nested bool) (*Field, bool) {
	f := t.byName[name]
	if f == nil {
		if len(t.fields) > 0 {
			return nil, false
		}
		return openField(whole, name, rest, nested)
	}
	if !nested {
		return f, true
	}
	return f.resolve(whole, rest)
}

// resolve finds rest, a path that is not empty, inside f.
func (f *Field) resolve(whole, rest string) (*Field, bool) {
	name, deeper, nested := strings.Cut(rest, ".")
	if f.elem != nil {
		if !isPosition(name) {
			return f.elem.resolve(whole, rest)
		}
		if !nested {
			return f.elem, true
		}
		return f.elem.resolve(whole, deeper)
	}
	if f.Sub != nil {
		_, list := f.Type.(anyType) // an any field may hold a list of objects
		if list && isPosition(name) && f.Sub.byName[name] == nil {
			if !nested {
				return f, true
			}
			return f.resolve(whole, deeper)
		}
		return f.Sub.resolve(whole, name, deeper, nested)
	}
	if f.file != nil && f.file.byName[name] != nil {
		return f.file.resolve(whole, name, deeper, nested)
	}
	switch f.Type.(type) {
	case objectType, anyType, fileType:
		return openField(whole, name, deeper, nested)
	}
	return nil, false
}

// FirstList gives the shortest part of a path that is a declared list, or "": a path through it has many values in one
// record.
func (t *Tree) FirstList(path string) string {
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != '.' {
			continue
		}
		if f, ok := t.Resolve(path[:i]); ok && f.IsList() {
			return f.Path
		}
	}
	return ""
}

// Relation gives the field on the way along a path that refers to records of another collection, the path of its values
// with the list positions that it names, and the rest of the path, which is one in those records; rest is "" where the path
// ends there. nil: there is none on the way.
func (t *Tree) Relation(path string) (f *Field, values, rest string) {
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != '.' {
			continue
		}
		f, ok := t.Resolve(path[:i])
		switch {
		case !ok:
			return nil, "", ""
		case f.Foreign == nil || f.Foreign.Collection == "":
			continue
		case i == len(path):
			return f, path, ""
		}
		position, below, more := strings.Cut(path[i+1:], ".")
		if !isPosition(position) || !f.IsList() && f.Type != (anyType{}) {
			return f, path[:i], path[i+1:]
		}
		if !more {
			return f, path, ""
		}
		return f, path[:i+1+len(position)], below
	}
	return nil, "", ""
}

// openField is an undeclared field where nothing is declared. Its names are checked all the same.
func openField(whole, name, rest string, nested bool) (*Field, bool) {
	for {
		if name == "" || name[0] == '$' || strings.IndexByte(name, 0) >= 0 {
			return nil, false
		}
		if !nested {
			return &Field{Name: name, Path: whole, Type: anyType{}}, true
		}
		name, rest, nested = strings.Cut(rest, ".")
	}
}

// isPosition says that a path segment is a list position: digits without leading zeros, as in MongoDB.
func isPosition(s string) bool {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Cast turns the constant v, which a query compares path with by an operator, into the form that stored values have.
// It has the shape that mql.Rewrite calls. A path that does not resolve is errs.Invalid "unknown field: …".
func (t *Tree) Cast(path, op string, v any) (any, error) {
	f, ok := t.Resolve(path)
	if !ok {
		return nil, UnknownField(path)
	}
	cast, err := f.CastOperand(op, v)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_filter", "%s: %s", path, err.Error())
	}
	return cast, nil
}

// UnknownField is the error for a path in a query that resolves to nothing, or that the caller may not see.
func UnknownField(path string) error {
	return errs.New(errs.Invalid, "unknown_field", "unknown field: %s", path)
}

// IsSystem says that a top-level name is kept by the service: clients can't set it and configs can't declare it.
func IsSystem(name string) bool { return slices.Contains(systemFields[:], name) }

// systemFields are the names that IsSystem. They are made once: IsSystem is asked about each field of each record.
var systemFields = [...]string{"_id", "id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev"} //nolint:gochecknoglobals // never written

// systemField gives the field of a name that the service keeps, or nil.
func systemField(name string) *Field {
	if !IsSystem(name) {
		return nil
	}
	f := &Field{Name: name, Path: name, Readonly: true}
	switch name {
	case "_id", "id":
		f.Path = "_id"
		f.Type = stringType{}
		f.Foreign = &Foreign{Key: "_id"} // its own id: hex becomes an ObjectID
	case "createdAt", "updatedAt":
		f.Type = dateType{}
	case "createdBy", "updatedBy":
		f.Type = stringType{}
	default: // _rev
		f.Type = numberType{}
	}
	return f
}

// SplitSystem separates the system fields of a record from its own. Both results are new, doc is not changed; without
// system fields own is doc.
func SplitSystem(doc bson.D) (system, own bson.D) {
	for i, e := range doc {
		if !IsSystem(e.Key) {
			if system != nil {
				own = append(own, e)
			}
			continue
		}
		if system == nil {
			own = append(make(bson.D, 0, len(doc)), doc[:i]...)
		}
		system = append(system, e)
	}
	if system == nil {
		return nil, doc
	}
	return system, own
}
