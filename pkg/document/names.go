package document

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Names is what the fields of documents are stored as, where that is not their name: fields that were renamed keep their
// data in place. It holds for one level of objects, and has those of the levels below; those of a field that has a list of
// objects, or lists of them, are the names of these objects.
//
// At each level it is a permutation: whatever else a document has, no two of its fields are stored as one, and Inverse leads
// back. Nil leaves all as it is. It is immutable and safe for concurrent use.
type Names struct {
	stored map[string]string // by name; only those that differ
	below  map[string]*Names // by name, not by what it is stored as
	every  *Names            // below names that are not in below

	inverse *Names
	lengths uint64 // of the names in stored and below, a bit for each; those of 63 bytes and more share one
}

// NewNames makes the names of a level: what its fields are stored as (no two as one; those that are left out as their
// names), and the names below fields. A name that is not in stored, but as which another field is stored, is stored as what
// is free for it. It gives nil if nothing differs.
func NewNames(stored map[string]string, below map[string]*Names) *Names {
	n := &Names{stored: maps.Clone(stored), below: maps.Clone(below)}
	taken := make(map[string]bool, len(stored))
	for _, as := range stored {
		taken[as] = true
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if taken[name] {
			continue
		}
		last := name // the end of the chain that begins with a name as which nothing is stored
		for next, ok := stored[last]; ok; next, ok = stored[last] {
			last = next
		}
		n.stored[last] = name
	}
	maps.DeleteFunc(n.stored, func(name, as string) bool { return name == as })
	maps.DeleteFunc(n.below, func(_ string, inner *Names) bool { return inner == nil })
	if len(n.stored) == 0 && len(n.below) == 0 {
		return nil
	}
	return n.invert()
}

// Within gives names that hold below every member of a field, too, as those of a record do below its translations.
func (n *Names) Within(field string) *Names {
	if n == nil {
		return nil
	}
	out := &Names{stored: n.stored, below: maps.Clone(n.below), every: n.every}
	if out.below == nil {
		out.below = map[string]*Names{}
	}
	out.below[field] = (&Names{every: n}).invert()
	return out.invert()
}

// Level gives what the fields of the level are stored as, the names below fields, and those below all others. The caller
// must not change the maps.
func (n *Names) Level() (stored map[string]string, below map[string]*Names, others *Names) {
	if n == nil {
		return nil, nil, nil
	}
	return n.stored, n.below, n.every
}

// Equal says whether all fields are stored as the same.
func (n *Names) Equal(other *Names) bool {
	if n == nil || other == nil {
		return n == other
	}
	return maps.Equal(n.stored, other.stored) && maps.EqualFunc(n.below, other.below, (*Names).Equal) && n.every.Equal(other.every)
}

// Inverse gives the names that lead back.
func (n *Names) Inverse() *Names {
	if n == nil {
		return nil
	}
	return n.inverse
}

// invert makes the inverse of new names.
func (n *Names) invert() *Names {
	out := &Names{every: n.every.Inverse(), stored: make(map[string]string, len(n.stored)), below: make(map[string]*Names, len(n.below))}
	for name, as := range n.stored {
		out.stored[as] = name
	}
	for name, inner := range n.below {
		out.below[n.field(name)] = inner.Inverse()
	}
	n.inverse, out.inverse = out, n
	n.measure()
	out.measure()
	return n
}

func (n *Names) measure() {
	for name := range n.stored {
		n.lengths |= lengthBit(len(name))
	}
	for name := range n.below {
		n.lengths |= lengthBit(len(name))
	}
}

func lengthBit(n int) uint64 { return 1 << min(n, 63) }

// knows says that a member may have another name, or have others inside. Most members have and are known by their length alone.
func (n *Names) knows(name []byte) bool {
	return n.every != nil || n.lengths&lengthBit(len(name)) != 0 || len(name) > 0 && (name[0] == '$' || name[0] >= '0' && name[0] <= '9')
}

// field is what a field of the level is stored as.
func (n *Names) field(name string) string {
	if as, ok := n.stored[name]; ok {
		return as
	}
	return name
}

// inside is the names below a field.
func (n *Names) inside(name string) *Names {
	if inner, ok := n.below[name]; ok {
		return inner
	}
	return n.every
}

// Path is what a dotted path is stored as. Positions in lists stay, those of updates ($, $[] and $[name]) among them.
func (n *Names) Path(path string) string {
	if n == nil {
		return path
	}
	out := make([]byte, 0, len(path)+16)
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, ".")
		switch {
		case n == nil || isPlace(name):
			out = append(out, name...)
		default:
			out = append(out, n.field(name)...)
			n = n.inside(name)
		}
		if more {
			out = append(out, '.')
		}
	}
	return string(out)
}

// At gives the names of objects at a dotted path.
func (n *Names) At(path string) *Names {
	for more := true; more && n != nil; {
		var name string
		if name, path, more = strings.Cut(path, "."); !isPlace(name) {
			n = n.inside(name)
		}
	}
	return n
}

// isPlace says that a name in a path is a position in a list.
func isPlace(name string) bool { return name != "" && (name[0] == '$' || isDigits(name)) }

// Document gives a document as it is stored. One that is damaged it gives as it is, and doc itself where n is nil.
func (n *Names) Document(doc bson.Raw) bson.Raw {
	if n == nil || doc == nil {
		return doc
	}
	return n.AppendDocument(make([]byte, 0, len(doc)+32), doc)
}

// AppendDocument appends what Document gives to dst.
func (n *Names) AppendDocument(dst []byte, doc bson.Raw) []byte {
	start := len(dst)
	if size, ok := docLen(doc); n != nil && ok && size == len(doc) {
		if dst, ok = n.appendMembers(dst, doc, false, 1); ok {
			return dst
		}
	}
	return append(dst[:start], doc...)
}

// Value gives a value of a field with these names below it as it is stored.
func (n *Names) Value(v bson.RawValue) bson.RawValue {
	if n == nil || !isContainer(v.Type) {
		return v
	}
	if size, ok := docLen(v.Value); !ok || size != len(v.Value) {
		return v
	}
	out, ok := n.appendMembers(make([]byte, 0, len(v.Value)+32), v.Value, v.Type == bson.TypeArray, 1)
	if !ok {
		return v
	}
	return bson.RawValue{Type: v.Type, Value: out}
}

// maxNamed is how deep a document may be; stores take 100 levels.
const maxNamed = 200

// appendMembers appends a document or list. It says false where that is damaged.
func (n *Names) appendMembers(dst, doc []byte, list bool, level int) (_ []byte, ok bool) {
	if level > maxNamed {
		return dst, false
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	it := NewIter(doc)
	for it.Next() {
		v, inner := it.Value(), n
		if !list && !n.knows(it.Key()) {
			dst = AppendElement(dst, it.Key(), v)
			continue
		}
		dst = append(dst, byte(v.Type))
		if list {
			dst = append(dst, it.Key()...)
		} else {
			if as, other := n.stored[string(it.Key())]; other {
				dst = append(dst, as...)
			} else {
				dst = append(dst, it.Key()...)
			}
			if !isPlace(string(it.Key())) { // else as Path has it, which can't tell an object from a list
				inner = n.inside(string(it.Key()))
			}
		}
		dst = append(dst, 0)
		if inner == nil || !isContainer(v.Type) {
			dst = append(dst, v.Value...)
			continue
		}
		if dst, ok = inner.appendMembers(dst, v.Value, v.Type == bson.TypeArray, level+1); !ok {
			return dst, false
		}
	}
	if !it.Valid() {
		return dst, false
	}
	return Close(dst, start), true
}
