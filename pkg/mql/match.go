package mql

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

func (n *AndNode) match(doc []byte) bool {
	for _, child := range n.Nodes {
		if !child.match(doc) {
			return false
		}
	}
	return true
}

func (n *OrNode) match(doc []byte) bool {
	for _, child := range n.Nodes {
		if child.match(doc) {
			return true
		}
	}
	return false
}

func (n *NorNode) match(doc []byte) bool {
	for _, child := range n.Nodes {
		if child.match(doc) {
			return false
		}
	}
	return true
}

func (f *Field) match(doc []byte) bool {
	if v, ok := single(doc, f.segments); ok {
		return allHold(f.Preds, v)
	}
	for _, p := range f.Preds {
		if !p.holds(doc, f.segments) {
			return false
		}
	}
	return true
}

// single gives the value at the end of a path that meets no list, so that one look at the document is enough for all
// predicates: what they hold for is this value. It is the zero value if there is none.
func single(doc []byte, path []segment) (v bson.RawValue, ok bool) {
	for i := range path {
		v, _ = document.Field(doc, path[i].name)
		switch {
		case v.Type == bson.TypeArray:
			return v, false
		case i == len(path)-1:
			return v, true
		case v.Type != bson.TypeEmbeddedDocument:
			return bson.RawValue{}, true
		}
		doc = v.Value
	}
	return v, true
}

// newField splits the path once.
func newField(path string, preds ...Pred) *Field {
	names := strings.Split(path, ".")
	f := &Field{Path: path, Preds: preds, segments: make([]segment, len(names))}
	for i, name := range names {
		f.segments[i] = segment{name: name, index: document.ListIndex(name)}
	}
	return f
}

// walk offers p the values that path leads to from doc, until one satisfies it. Lists on the way are entered one
// level deep; a name that is an index also picks that element. A list at the end is offered element by element if
// spread is set, and then as a whole.
func walk(doc []byte, path []segment, p Pred, spread bool) bool {
	v, _ := document.Field(doc, path[0].name)
	if len(path) == 1 {
		return leaf(v, p, spread)
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return walk(v.Value, path[1:], p, spread)
	case bson.TypeArray:
		return walkList(v.Value, path[1:], p, spread)
	default:
		return p.one(bson.RawValue{})
	}
}

func walkList(list []byte, path []segment, p Pred, spread bool) bool {
	it := document.NewIter(list)
	for i := 0; it.Next(); i++ {
		v := it.Value()
		if v.Type == bson.TypeEmbeddedDocument && walk(v.Value, path, p, spread) {
			return true
		}
		if path[0].index != i {
			continue
		}
		switch {
		case len(path) == 1:
			if p.one(v) {
				return true
			}
		case v.Type == bson.TypeEmbeddedDocument:
			if walk(v.Value, path[1:], p, spread) {
				return true
			}
		case v.Type == bson.TypeArray:
			if walkList(v.Value, path[1:], p, spread) {
				return true
			}
		}
	}
	return false
}

func leaf(v bson.RawValue, p Pred, spread bool) bool {
	if spread && v.Type == bson.TypeArray {
		for it := document.NewIter(v.Value); it.Next(); {
			if p.one(it.Value()) {
				return true
			}
		}
	}
	return p.one(v)
}

func (c *Cmp) holds(doc []byte, path []segment) bool { return walk(doc, path, c, true) }

func (c *Cmp) one(v bson.RawValue) bool {
	if kind, want := document.TypeOrder(v.Type), document.TypeOrder(c.Value.Type); kind != want {
		return c.otherKind(v)
	}
	if c.Value.Type == bson.TypeString && c.Op == Eq {
		return bytes.Equal(v.Value, c.Value.Value)
	}
	if isNaN(v) || isNaN(c.Value) {
		return isNaN(v) && isNaN(c.Value) && (c.Op == Eq || c.Op == Gte || c.Op == Lte)
	}
	order := document.Compare(v, c.Value)
	switch c.Op {
	case Eq:
		return order == 0
	case Gt:
		return order > 0
	case Gte:
		return order >= 0
	case Lt:
		return order < 0
	default:
		return order <= 0
	}
}

// otherKind compares with a constant of another kind: only null, with what is missing, and the two ends of the order
// do compare.
func (c *Cmp) otherKind(v bson.RawValue) bool {
	switch c.Value.Type {
	case bson.TypeNull:
		return isMissing(v) && (c.Op == Eq || c.Op == Gte || c.Op == Lte)
	case bson.TypeMinKey:
		return c.Op == Gt || c.Op == Gte
	case bson.TypeMaxKey:
		return c.Op == Lt || c.Op == Lte
	default:
		return false
	}
}

func isMissing(v bson.RawValue) bool { return v.Type == 0 || v.Type == bson.TypeUndefined }

// isNaN is true for the NaN of a double and of a decimal.
func isNaN(v bson.RawValue) bool {
	switch {
	case v.Type == bson.TypeDouble && len(v.Value) == 8:
		f := math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
		return f != f
	case v.Type == bson.TypeDecimal128 && len(v.Value) == 16:
		return v.Value[15]&0x7c == 0x7c
	default:
		return false
	}
}

func (p *In) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *In) one(v bson.RawValue) bool {
	// Compare takes a missing value for a null, which is what $in with null asks for.
	if _, ok := slices.BinarySearchFunc(p.Values, v, document.Compare); ok {
		return true
	}
	for _, re := range p.Regexes {
		if re.one(v) {
			return true
		}
	}
	return false
}

func (p *Not) holds(doc []byte, path []segment) bool {
	for _, child := range p.Preds {
		if !child.holds(doc, path) {
			return true
		}
	}
	return false
}

func (p *Not) one(v bson.RawValue) bool {
	for _, child := range p.Preds {
		if !child.one(v) {
			return true
		}
	}
	return false
}

// exists is the positive form of Exists, so that a path through a list asks whether any element has it.
type exists struct{}

func (exists) holds(doc []byte, path []segment) bool { return walk(doc, path, exists{}, false) }
func (exists) one(v bson.RawValue) bool              { return v.Type != 0 }

func (p *Exists) holds(doc []byte, path []segment) bool {
	return exists{}.holds(doc, path) == p.Want
}
func (p *Exists) one(v bson.RawValue) bool { return exists{}.one(v) == p.Want }

func (p *Type) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *Type) one(v bson.RawValue) bool {
	return slices.Contains(p.Types, v.Type) && v.Type != 0 || p.Number && isNumber(v.Type)
}

func isNumber(t bson.Type) bool {
	return t == bson.TypeInt32 || t == bson.TypeInt64 || t == bson.TypeDouble || t == bson.TypeDecimal128
}

func (p *All) holds(doc []byte, path []segment) bool {
	for _, child := range p.Preds {
		if !child.holds(doc, path) {
			return false
		}
	}
	return len(p.Preds) > 0
}

func (p *All) one(v bson.RawValue) bool { return len(p.Preds) > 0 && allHold(p.Preds, v) }

func allHold(preds []Pred, v bson.RawValue) bool {
	for _, p := range preds {
		if !p.one(v) {
			return false
		}
	}
	return true
}

func (p *ElemMatch) holds(doc []byte, path []segment) bool { return walk(doc, path, p, false) }

func (p *ElemMatch) one(v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	for it := document.NewIter(v.Value); it.Next(); {
		if p.element(it.Value()) {
			return true
		}
	}
	return false
}

// element decides for one element. A list in the list counts as an object whose names are its indexes.
func (p *ElemMatch) element(v bson.RawValue) bool {
	if p.Node == nil {
		return allHold(p.Preds, v)
	}
	return (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) && p.Node.match(v.Value)
}

func (p *Size) holds(doc []byte, path []segment) bool { return walk(doc, path, p, false) }

func (p *Size) one(v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	var n int64
	for it := document.NewIter(v.Value); it.Next(); {
		n++
	}
	return n == p.N
}

func (p *Mod) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *Mod) one(v bson.RawValue) bool {
	n, ok := truncated(v)
	// The smallest integer divided by -1 overflows; its remainder is 0 as for any other.
	return ok && (p.Divisor != -1 && n%p.Divisor == p.Remainder || p.Divisor == -1 && p.Remainder == 0)
}

func (p *Regex) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *Regex) one(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return len(v.Value) >= 5 && p.re.Match(v.Value[4:len(v.Value)-1])
	case bson.TypeRegex:
		// The server compares with what it was sent.
		pattern, options, _ := v.RegexOK()
		return pattern == p.raw && options == ""
	default:
		return false
	}
}
