package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// extendedWhole is the one member of the object that stands for a document which Extended JSON can't say.
const extendedWhole = "$bson"

// bitsOfNaN is the NaN that is written as such. Others are said by their bytes.
const bitsOfNaN = 0x7ff8000000000000

// AppendExtended writes a document as canonical Extended JSON (version 2 of MongoDB's specification) without spaces: the same
// bytes always give the same text, and ParseExtended gives these bytes back, every type and every bit.
//
// What Extended JSON has no words for is written as one object with the member "$bson", the document's bytes in base64:
// documents with a name that begins with "$", which would be read as a type, a list whose names are not its positions,
// text that is not UTF-8, a NaN or a decimal number in an unusual form, and the types that MongoDB has given up.
func AppendExtended(dst []byte, doc bson.Raw) []byte {
	start := len(dst)
	if out, ok := appendExtendedDoc(dst, doc); ok {
		return out
	}
	dst = append(dst[:start], `{"`+extendedWhole+`":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, doc)
	return append(dst, `"}`...)
}

// appendExtendedDoc is false for what can't be said.
func appendExtendedDoc(dst, doc []byte) (out []byte, ok bool) {
	dst = append(dst, '{')
	it := NewIter(doc)
	for n := 0; it.Next(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		if bytes.HasPrefix(it.key, []byte{'$'}) || !utf8.Valid(it.key) {
			return dst, false
		}
		dst = append(appendJSONString(dst, it.key), ':')
		if dst, ok = appendExtendedValue(dst, it.val); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), it.Valid()
}

func appendExtendedList(dst, list []byte) (out []byte, ok bool) {
	dst = append(dst, '[')
	it := NewIter(list)
	var position [20]byte
	for n := 0; it.Next(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		if !bytes.Equal(it.key, strconv.AppendInt(position[:0], int64(n), 10)) {
			return dst, false
		}
		if dst, ok = appendExtendedValue(dst, it.val); !ok {
			return dst, false
		}
	}
	return append(dst, ']'), it.Valid()
}

func appendExtendedValue(dst []byte, v bson.RawValue) (out []byte, ok bool) {
	switch v.Type { //nolint:exhaustive // the others are rare
	case bson.TypeString:
		text := stringBytes(v.Value)
		return appendJSONString(dst, text), utf8.Valid(text)
	case bson.TypeInt32:
		dst = strconv.AppendInt(append(dst, `{"$numberInt":"`...), int64(int32Of(v.Value)), 10)
	case bson.TypeInt64:
		dst = strconv.AppendInt(append(dst, `{"$numberLong":"`...), int64Of(v.Value), 10)
	case bson.TypeDouble:
		return appendExtendedDouble(dst, doubleOf(v.Value))
	case bson.TypeBoolean:
		return strconv.AppendBool(dst, v.Value[0] != 0), v.Value[0] <= 1
	case bson.TypeDateTime:
		dst = strconv.AppendInt(append(dst, `{"$date":{"$numberLong":"`...), int64Of(v.Value), 10)
		return append(dst, `"}}`...), true
	case bson.TypeObjectID:
		dst = hex.AppendEncode(append(dst, `{"$oid":"`...), v.Value)
	case bson.TypeEmbeddedDocument:
		return appendExtendedDoc(dst, v.Value)
	case bson.TypeArray:
		return appendExtendedList(dst, v.Value)
	case bson.TypeNull:
		return append(dst, "null"...), true
	default:
		return appendRareExtended(dst, v)
	}
	return append(dst, `"}`...), true
}

// appendExtendedDouble writes the shortest number that reads back as f, with a point or an exponent in it.
func appendExtendedDouble(dst []byte, f float64) (out []byte, ok bool) {
	dst = append(dst, `{"$numberDouble":"`...)
	start := len(dst)
	switch {
	case math.IsNaN(f):
		dst, ok = append(dst, "NaN"...), math.Float64bits(f) == bitsOfNaN
		return append(dst, `"}`...), ok
	case math.IsInf(f, 1):
		dst = append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		dst = append(dst, "-Infinity"...)
	default:
		dst = strconv.AppendFloat(dst, f, 'G', -1, 64)
		if !bytes.ContainsAny(dst[start:], ".E") {
			dst = append(dst, ".0"...)
		}
	}
	return append(dst, `"}`...), true
}

func appendRareExtended(dst []byte, v bson.RawValue) (out []byte, ok bool) {
	switch v.Type { //nolint:exhaustive // the others can't be said
	case bson.TypeDecimal128:
		d := bson.NewDecimal128(binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value))
		text := d.String()
		same, err := bson.ParseDecimal128(text)
		dst = append(append(dst, `{"$numberDecimal":"`...), text...)
		return append(dst, `"}`...), err == nil && same == d
	case bson.TypeBinary:
		subtype, data := binaryParts(v.Value)
		dst = base64.StdEncoding.AppendEncode(append(dst, `{"$binary":{"base64":"`...), data)
		dst = hex.AppendEncode(append(dst, `","subType":"`...), []byte{subtype})
		return append(dst, `"}}`...), subtype != bson.TypeBinaryBinaryOld // which has its length in it once more
	case bson.TypeTimestamp:
		dst = strconv.AppendUint(append(dst, `{"$timestamp":{"t":`...), uint64(binary.LittleEndian.Uint32(v.Value[4:])), 10)
		dst = strconv.AppendUint(append(dst, `,"i":`...), uint64(binary.LittleEndian.Uint32(v.Value)), 10)
		return append(dst, "}}"...), true
	case bson.TypeRegex:
		pattern, options := regexParts(v.Value)
		dst = appendJSONString(append(dst, `{"$regularExpression":{"pattern":`...), pattern)
		dst = appendJSONString(append(dst, `,"options":`...), options)
		return append(dst, "}}"...), utf8.Valid(pattern) && utf8.Valid(options)
	case bson.TypeJavaScript:
		code := stringBytes(v.Value)
		dst = appendJSONString(append(dst, `{"$code":`...), code)
		return append(dst, '}'), utf8.Valid(code)
	case bson.TypeSymbol:
		text := stringBytes(v.Value)
		dst = appendJSONString(append(dst, `{"$symbol":`...), text)
		return append(dst, '}'), utf8.Valid(text)
	case bson.TypeMinKey:
		return append(dst, `{"$minKey":1}`...), true
	case bson.TypeMaxKey:
		return append(dst, `{"$maxKey":1}`...), true
	case bson.TypeUndefined:
		return append(dst, `{"$undefined":true}`...), true
	default:
		return dst, false
	}
}
