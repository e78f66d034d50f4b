package document

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Ranks of the types in MongoDB's order of values. They are the first byte of index keys, so a change of one is a
// change of the stored format. None may be 0x00 or 0xFF.
const (
	orderMinKey        = 0x10
	orderUndefined     = 0x14 // also the sort and index key of an empty list
	orderNull          = 0x18 // and missing
	orderNumber        = 0x20
	orderString        = 0x28
	orderObject        = 0x30
	orderList          = 0x38
	orderBinary        = 0x40
	orderObjectID      = 0x48
	orderBoolean       = 0x50
	orderDateTime      = 0x58
	orderTimestamp     = 0x60
	orderRegex         = 0x68
	orderDBPointer     = 0x70
	orderCode          = 0x78
	orderCodeWithScope = 0x80
	orderMaxKey        = 0xe0
)

// TypeOrder is the rank of a type in MongoDB's order: values of types with different ranks compare by rank alone, and
// a range operator only ever matches within one rank. The number types share one, so do string and symbol, and null
// and missing (type 0). Undefined has its own, just below null, though $eq null matches it.
func TypeOrder(t bson.Type) int {
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return orderNumber
	case bson.TypeString, bson.TypeSymbol:
		return orderString
	case bson.TypeNull, 0:
		return orderNull
	case bson.TypeUndefined:
		return orderUndefined
	case bson.TypeEmbeddedDocument:
		return orderObject
	case bson.TypeArray:
		return orderList
	case bson.TypeBinary:
		return orderBinary
	case bson.TypeObjectID:
		return orderObjectID
	case bson.TypeBoolean:
		return orderBoolean
	case bson.TypeDateTime:
		return orderDateTime
	case bson.TypeTimestamp:
		return orderTimestamp
	case bson.TypeRegex:
		return orderRegex
	case bson.TypeDBPointer:
		return orderDBPointer
	case bson.TypeJavaScript:
		return orderCode
	case bson.TypeCodeWithScope:
		return orderCodeWithScope
	case bson.TypeMinKey:
		return orderMinKey
	default:
		return orderMaxKey
	}
}

// Compare gives -1, 0 or 1 by MongoDB's order of all values. Numbers of all types compare by their exact value, NaN
// being the smallest and equal to itself; objects compare field by field (type, then name, then value), so the order
// of fields matters; lists element by element. The zero RawValue stands for a missing field and equals null.
func Compare(a, b bson.RawValue) int {
	order := TypeOrder(a.Type)
	if c := cmp.Compare(order, TypeOrder(b.Type)); c != 0 {
		return c
	}
	switch order {
	case orderNumber:
		return compareNumberValues(a, b)
	case orderString, orderCode:
		return bytes.Compare(stringBytes(a.Value), stringBytes(b.Value))
	case orderObject:
		return compareObjects(a.Value, b.Value, true)
	case orderList:
		return compareObjects(a.Value, b.Value, false)
	case orderObjectID, orderBoolean:
		return bytes.Compare(a.Value, b.Value)
	case orderDateTime:
		return cmp.Compare(int64Of(a.Value), int64Of(b.Value))
	case orderTimestamp:
		return cmp.Compare(uint64(int64Of(a.Value)), uint64(int64Of(b.Value))) //nolint:gosec // unsigned by definition
	case orderBinary, orderDBPointer:
		// Length first, then (for binary) subtype, then content.
		if c := cmp.Compare(len(a.Value), len(b.Value)); c != 0 {
			return c
		}
		return bytes.Compare(a.Value, b.Value)
	case orderRegex:
		return compareRegexes(a.Value, b.Value)
	case orderCodeWithScope:
		return compareCodeWithScope(a.Value, b.Value)
	default:
		return 0
	}
}

func compareNumberValues(a, b bson.RawValue) int {
	aInt, aOK := integerValue(a)
	bInt, bOK := integerValue(b)
	switch {
	case aOK && bOK:
		return cmp.Compare(aInt, bInt)
	case a.Type == bson.TypeDouble && b.Type == bson.TypeDouble:
		return cmp.Compare(doubleOf(a.Value), doubleOf(b.Value)) // NaN is smallest and equal to itself, -0 is 0
	case aOK && b.Type == bson.TypeDouble && isSmall(aInt):
		return cmp.Compare(float64(aInt), doubleOf(b.Value))
	case bOK && a.Type == bson.TypeDouble && isSmall(bInt):
		return cmp.Compare(doubleOf(a.Value), float64(bInt))
	}
	x, y := numberOf(a), numberOf(b)
	return compareNumbers(&x, &y)
}

func integerValue(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(int32Of(v.Value)), true
	case bson.TypeInt64:
		return int64Of(v.Value), true
	default:
		return 0, false
	}
}

// isSmall says whether i is exact as a float64.
func isSmall(i int64) bool { return bits.Len64(uint64(max(i, -i))) <= 53 } //nolint:gosec // MinInt64 has 64 bits

func compareObjects(a, b []byte, names bool) int {
	x, y := NewIter(a), NewIter(b)
	for {
		xMore, yMore := x.Next(), y.Next()
		switch {
		case !xMore && !yMore:
			return 0
		case !xMore:
			return -1
		case !yMore:
			return 1
		}
		if c := cmp.Compare(TypeOrder(x.val.Type), TypeOrder(y.val.Type)); c != 0 {
			return c
		}
		if names {
			if c := bytes.Compare(x.key, y.key); c != 0 {
				return c
			}
		}
		if c := Compare(x.val, y.val); c != 0 {
			return c
		}
	}
}

func compareRegexes(a, b []byte) int {
	aPattern, aOptions := regexParts(a)
	bPattern, bOptions := regexParts(b)
	if c := bytes.Compare(aPattern, bPattern); c != 0 {
		return c
	}
	return bytes.Compare(aOptions, bOptions)
}

func compareCodeWithScope(a, b []byte) int {
	aCode, aScope := codeParts(a)
	bCode, bScope := codeParts(b)
	if c := bytes.Compare(aCode, bCode); c != 0 {
		return c
	}
	return compareObjects(aScope, bScope, true)
}

func codeParts(b []byte) (code, scope []byte) {
	if codeWithScopeLen(b) < 0 {
		return nil, nil
	}
	n := stringLen(b[4:])
	return b[8 : 4+n-1], b[4+n:]
}

// AppendKey appends the order of Compare as bytes: for any values a and b the keys compare as a and b do. Keys are
// self-delimiting, so the keys of several values, each with its own direction, may be joined to order tuples; no key
// is a beginning of another. A key can't be turned back into its value (1 and 1.0 share one), and never begins with
// 0x00 or 0xFF, which are left for bounds. With desc the order is reversed.
func AppendKey(dst []byte, v bson.RawValue, desc bool) []byte {
	start := len(dst)
	dst = append(dst, byte(TypeOrder(v.Type))) //nolint:gosec // a rank is one byte
	dst = appendPayload(dst, v)
	if desc {
		InvertKey(dst[start:])
	}
	return dst
}

// InvertKey turns the key of a value into that of the other direction, in place, and returns it.
func InvertKey(key []byte) []byte {
	for i := range key {
		key[i] = ^key[i]
	}
	return key
}

// KeyAfter gives the smallest key behind all keys that begin with prefix; nil if there is none.
func KeyAfter(prefix []byte) []byte {
	if end := AppendKeyAfter(nil, prefix); len(end) > 0 {
		return end
	}
	return nil
}

// AppendKeyAfter appends KeyAfter(prefix) to dst: nothing if there is none.
func AppendKeyAfter(dst, prefix []byte) []byte {
	for i, b := range slices.Backward(prefix) {
		if b != 0xff {
			dst = append(dst, prefix[:i+1]...)
			dst[len(dst)-1]++
			return dst
		}
	}
	return dst
}

// AppendUndefinedKey appends the key that stands for an empty list in an index: it sorts just before null.
func AppendUndefinedKey(dst []byte, desc bool) []byte {
	return AppendKey(dst, bson.RawValue{Type: bson.TypeUndefined}, desc)
}

func appendPayload(dst []byte, v bson.RawValue) []byte {
	switch TypeOrder(v.Type) {
	case orderNumber:
		n := numberOf(v)
		return appendNumberKey(dst, &n)
	case orderString, orderCode:
		return appendEscaped(dst, stringBytes(v.Value))
	case orderObject:
		return appendObjectKey(dst, v.Value, true)
	case orderList:
		return appendObjectKey(dst, v.Value, false)
	case orderObjectID, orderBoolean:
		return append(dst, v.Value...)
	case orderDateTime:
		return binary.BigEndian.AppendUint64(dst, uint64(int64Of(v.Value))^1<<63) //nolint:gosec // sign bit flipped
	case orderTimestamp:
		return binary.BigEndian.AppendUint64(dst, uint64(int64Of(v.Value))) //nolint:gosec // unsigned by definition
	case orderBinary, orderDBPointer:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Value))) //nolint:gosec // a document is at most MaxSize
		return append(dst, v.Value...)
	case orderRegex:
		pattern, options := regexParts(v.Value)
		return appendEscaped(appendEscaped(dst, pattern), options)
	case orderCodeWithScope:
		code, scope := codeParts(v.Value)
		return appendObjectKey(appendEscaped(dst, code), scope, true)
	default:
		return dst
	}
}

// appendObjectKey writes type, name and value of each field in the order in which Compare looks at them, and 0 behind
// the last, which is less than any type.
func appendObjectKey(dst, doc []byte, names bool) []byte {
	for it := NewIter(doc); it.Next(); {
		dst = append(dst, byte(TypeOrder(it.val.Type))) //nolint:gosec // as above
		if names {
			dst = append(append(dst, it.key...), 0) // a name can't contain NUL
		}
		dst = appendPayload(dst, it.val)
	}
	return append(dst, 0)
}

// appendEscaped writes text so that it ends itself: NUL becomes 00 FF, the end is 00 01.
func appendEscaped(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, 0)
		if i < 0 {
			return append(append(dst, text...), 0, 1)
		}
		dst = append(append(dst, text[:i]...), 0, 0xff)
		text = text[i+1:]
	}
}
