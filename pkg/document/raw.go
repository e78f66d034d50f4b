package document

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Limits of a document.
const (
	MaxDepth = 32       // levels of objects and lists in a request body or a patched record; the document itself is level 1
	MaxSize  = 16 << 20 // bytes of an encoded document, as in MongoDB
)

// Iter walks the elements of an encoded document or list in order, without allocating:
//
//	for it := NewIter(doc); it.Next(); {
//		use(it.Key(), it.Value())
//	}
//
// What it hands out aliases the document.
type Iter struct {
	rest []byte
	key  []byte
	val  bson.RawValue
	bad  bool
}

// NewIter starts before the first element. doc is the bytes of a document, of an object or of a list.
func NewIter(doc []byte) Iter {
	if n, ok := docLen(doc); ok {
		return Iter{rest: doc[4 : n-1]}
	}
	return Iter{bad: true}
}

// Next steps to the next element and says whether there is one. It stops at damage, which Valid then tells.
func (it *Iter) Next() bool {
	if len(it.rest) == 0 {
		return false
	}
	rest := it.rest
	t := bson.Type(rest[0])
	end := nameLen(rest[1:])
	if end < 0 {
		return it.fail()
	}
	body := rest[end+2:]
	n := int(fixedLen[t]) - 1
	if n < 0 || n > len(body) {
		if n = valueLen(t, body); n < 0 {
			return it.fail()
		}
	}
	it.key = rest[1 : end+1]
	it.val.Type, it.val.Value = t, body[:n:n]
	it.rest = body[n:]
	return true
}

func (it *Iter) fail() bool {
	it.rest, it.key, it.val, it.bad = nil, nil, bson.RawValue{}, true
	return false
}

// Key is the name of the current element; in a list, its index in digits.
func (it *Iter) Key() []byte { return it.key }

// Value is the value of the current element.
func (it *Iter) Value() bson.RawValue { return it.val }

// Valid is false once Next has met bytes that are not BSON.
func (it *Iter) Valid() bool { return !it.bad }

// nameLen is where the NUL behind the name is that b begins with, or -1. Most names are short: eight bytes are looked at
// in one step.
func nameLen(b []byte) int {
	const ones = 0x0101010101010101
	if len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		if zeros := (w - ones) &^ w & (ones << 7); zeros != 0 {
			return bits.TrailingZeros64(zeros) >> 3
		}
	}
	return bytes.IndexByte(b, 0)
}

// docLen reads the length that a document begins with and checks it against b and the closing NUL.
func docLen(b []byte) (int, bool) {
	if len(b) < 5 {
		return 0, false
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n < 5 || n > int64(len(b)) || b[n-1] != 0 {
		return 0, false
	}
	return int(n), true
}

// stringLen reads the length that a string begins with; the result counts the prefix and the closing NUL.
func stringLen(b []byte) int {
	if len(b) < 5 {
		return -1
	}
	n := int64(binary.LittleEndian.Uint32(b)) + 4
	if n < 5 || n > int64(len(b)) || b[n-1] != 0 {
		return -1
	}
	return int(n)
}

// fixedLen is one more than the length of a value, for the types whose values all have the same.
//
//nolint:gochecknoglobals // a constant
var fixedLen = [256]uint8{
	bson.TypeNull: 1, bson.TypeUndefined: 1, bson.TypeMinKey: 1, bson.TypeMaxKey: 1,
	bson.TypeBoolean: 1 + 1, bson.TypeInt32: 4 + 1,
	bson.TypeDouble: 8 + 1, bson.TypeInt64: 8 + 1, bson.TypeDateTime: 8 + 1, bson.TypeTimestamp: 8 + 1,
	bson.TypeObjectID: 12 + 1, bson.TypeDecimal128: 16 + 1,
}

// valueLen is the number of bytes of b that a value of type t takes, or -1 if b does not begin with one. It does not
// look inside objects and lists.
func valueLen(t bson.Type, b []byte) int {
	n := int(fixedLen[t]) - 1
	switch t { //nolint:exhaustive // the others have a length of their own
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return stringLen(b)
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		if l, ok := docLen(b); ok {
			return l
		}
	case bson.TypeBinary:
		if len(b) >= 5 && binary.LittleEndian.Uint32(b) <= math.MaxInt32-5 {
			n = int(binary.LittleEndian.Uint32(b)) + 5
		}
	case bson.TypeRegex:
		return regexLen(b)
	case bson.TypeDBPointer:
		if l := stringLen(b); l >= 0 {
			n = l + 12
		}
	case bson.TypeCodeWithScope:
		return codeWithScopeLen(b)
	}
	if n > len(b) {
		return -1
	}
	return n
}

func regexLen(b []byte) int {
	p := bytes.IndexByte(b, 0)
	if p < 0 {
		return -1
	}
	o := bytes.IndexByte(b[p+1:], 0)
	if o < 0 {
		return -1
	}
	return p + o + 2
}

func codeWithScopeLen(b []byte) int {
	if len(b) < 14 {
		return -1
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > int64(len(b)) || n < 14 {
		return -1
	}
	code := stringLen(b[4:n])
	if code < 0 {
		return -1
	}
	if scope, ok := docLen(b[4+code : n]); !ok || int64(4+code+scope) != n {
		return -1
	}
	return int(n)
}

// stringBytes is the text of a string, symbol or code value, without length and closing NUL. A damaged value is "".
func stringBytes(b []byte) []byte {
	n := stringLen(b)
	if n < 0 {
		return nil
	}
	return b[4 : n-1]
}

// regexParts is the pattern and the options of a regex value.
func regexParts(b []byte) (pattern, options []byte) {
	if regexLen(b) < 0 {
		return nil, nil
	}
	p := bytes.IndexByte(b, 0)
	o := bytes.IndexByte(b[p+1:], 0)
	return b[:p], b[p+1 : p+1+o]
}

// TooDeep says whether objects and lists are nested deeper in doc than a document may be that is stored. It looks no
// deeper than that, whatever doc is.
func TooDeep(doc bson.Raw) bool { return deeper(doc, maxNesting-1) }

func deeper(doc []byte, levels int) bool {
	for it := NewIter(doc); it.Next(); {
		if t := it.val.Type; t != bson.TypeEmbeddedDocument && t != bson.TypeArray {
			continue
		}
		if levels == 0 || deeper(it.val.Value, levels-1) {
			return true
		}
	}
	return false
}

// WellFormed says whether v is one whole value of its type, to the last byte and at every depth, and nested no deeper
// than a document may be.
func WellFormed(v bson.RawValue) bool { return wellFormed(v, 0) }

func wellFormed(v bson.RawValue, depth int) bool {
	if depth > maxNesting || valueLen(v.Type, v.Value) != len(v.Value) {
		return false
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		it := NewIter(v.Value)
		for it.Next() {
			if !wellFormed(it.val, depth+1) {
				return false
			}
		}
		return it.Valid()
	case bson.TypeBoolean:
		return v.Value[0] <= 1 // servers take no other
	default:
		return true
	}
}

// OperatorName gives the first name in v, at any depth, that begins with "$" as operators do; nil if there is none.
func OperatorName(v bson.RawValue) []byte {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil
	}
	for it := NewIter(v.Value); it.Next(); {
		if bytes.HasPrefix(it.key, []byte{'$'}) {
			return it.key
		}
		if name := OperatorName(it.val); name != nil {
			return name
		}
	}
	return nil
}

// Lookup walks a dotted path. In a list only an index ("0", "12", not "012") leads on: it does not look into each
// element as a filter does. The value aliases doc.
func Lookup(doc bson.Raw, path string) (bson.RawValue, bool) {
	cur := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	for more := true; more; {
		var seg string
		seg, path, more = strings.Cut(path, ".")
		var ok bool
		switch cur.Type {
		case bson.TypeEmbeddedDocument:
			cur, ok = Field(cur.Value, seg)
		case bson.TypeArray:
			cur, ok = Element(cur.Value, ListIndex(seg))
		default: // a scalar has nothing in it
		}
		if !ok {
			return bson.RawValue{}, false
		}
	}
	return cur, true
}

// Field gives the value of the first field of that name in a document or an object, or the zero value. The value aliases
// doc. It does not allocate.
func Field(doc []byte, name string) (v bson.RawValue, found bool) {
	n, ok := docLen(doc)
	if !ok {
		return bson.RawValue{}, false
	}
	// As Iter does, but what is passed over is not taken apart: filters spend most of their time here.
	for rest := doc[4 : n-1]; len(rest) > 0; {
		end := nameLen(rest[1:])
		if end < 0 {
			break
		}
		t, body := bson.Type(rest[0]), rest[end+2:]
		size := int(fixedLen[t]) - 1
		if size < 0 || size > len(body) {
			if size = valueLen(t, body); size < 0 {
				break
			}
		}
		if string(rest[1:end+1]) == name {
			return bson.RawValue{Type: t, Value: body[:size:size]}, true
		}
		rest = body[size:]
	}
	return bson.RawValue{}, false
}

// Element gives the element at an index of a list, or the zero value; there is none below 0. The value aliases list. It
// does not allocate.
func Element(list []byte, index int) (v bson.RawValue, found bool) {
	if index < 0 {
		return bson.RawValue{}, false
	}
	for it := NewIter(list); it.Next(); index-- {
		if index == 0 {
			return it.val, true
		}
	}
	return bson.RawValue{}, false
}

// ListIndex reads a name of a path as the index of a list element: digits without a leading zero, no more of them than
// a list of MaxSize can have. -1 if it is none.
func ListIndex(name string) int {
	if name == "" || len(name) > 8 || (name[0] == '0' && len(name) > 1) {
		return -1
	}
	n := 0
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
		n = n*10 + int(name[i]-'0')
	}
	return n
}
