package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendJSON writes a record as JSON, straight from its bytes: no tree is built, and nothing allocated if dst has room.
// _id goes out first, as "id" (a stored field "id" then stays inside); _id of objects further down keeps its name.
// Dates are RFC 3339 in UTC with milliseconds, ObjectIDs hexadecimal, integers exact, NaN and infinities null,
// binaries base64. Only what v shows is written. Of damaged bytes, what comes before the damage is written.
func AppendJSON(dst []byte, doc bson.Raw, v *View) []byte {
	m := v.root()
	id, hasID := Field(doc, "_id")
	dst = append(dst, '{')
	start := len(dst)
	if hasID {
		dst = append(dst, `"id":`...)
		dst = appendJSONValue(dst, id, mask{})
	}
	for it := NewIter(doc); it.Next(); {
		if hasID && (string(it.key) == "_id" || string(it.key) == "id") {
			continue
		}
		dst = appendJSONField(dst, start, &it, m)
	}
	if v != nil {
		dst = v.appendMembers(dst, start, doc)
	}
	return append(dst, '}')
}

// AppendJSONValue writes one value as it would be inside a record; view, if any, applies to the fields of an object or
// of the objects in a list. The missing value is null.
func AppendJSONValue(dst []byte, v bson.RawValue, view *View) []byte {
	return appendJSONValue(dst, v, view.root())
}

// appendJSONField writes the current field of it, if seen, into the object whose first field is at start.
func appendJSONField(dst []byte, start int, it *Iter, m mask) []byte {
	var sub mask
	if m != (mask{}) {
		var seen bool
		if sub, seen = m.field(it.key, isContainer(it.val.Type)); !seen {
			return dst
		}
	}
	before := len(dst)
	if before > start {
		dst = append(dst, ',')
	}
	dst = append(appendJSONString(dst, it.key), ':')
	if sub.inlay != nil && sub.inlay.with != nil {
		return sub.inlay.with.AppendJSON(dst, it.val)
	}
	value := len(dst)
	dst = appendJSONValue(dst, it.val, sub)
	if sub.bare() && string(dst[value:]) == "{}" {
		return dst[:before]
	}
	return dst
}

func appendJSONValue(dst []byte, v bson.RawValue, m mask) []byte {
	if valueLen(v.Type, v.Value) < 0 {
		return append(dst, "null"...) // missing or damaged
	}
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return appendJSONString(dst, stringBytes(v.Value))
	case bson.TypeInt32:
		return strconv.AppendInt(dst, int64(int32Of(v.Value)), 10)
	case bson.TypeInt64:
		return strconv.AppendInt(dst, int64Of(v.Value), 10)
	case bson.TypeDouble:
		return appendJSONFloat(dst, doubleOf(v.Value))
	case bson.TypeBoolean:
		return strconv.AppendBool(dst, v.Value[0] != 0)
	case bson.TypeDateTime:
		dst = appendTime(append(dst, '"'), int64Of(v.Value))
		return append(dst, '"')
	case bson.TypeObjectID:
		return append(hex.AppendEncode(append(dst, '"'), v.Value), '"')
	case bson.TypeEmbeddedDocument:
		dst = append(dst, '{')
		start := len(dst)
		for it := NewIter(v.Value); it.Next(); {
			dst = appendJSONField(dst, start, &it, m)
		}
		return append(dst, '}')
	case bson.TypeArray:
		return appendJSONList(dst, v.Value, m)
	default:
		return appendRareJSON(dst, v)
	}
}

func appendJSONList(dst, list []byte, m mask) []byte {
	dst = append(dst, '[')
	start := len(dst)
	for it := NewIter(list); it.Next(); {
		if !m.element(isContainer(it.val.Type)) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = appendJSONValue(dst, it.val, m)
	}
	return append(dst, ']')
}

func appendRareJSON(dst []byte, v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeDecimal128:
		d := bson.NewDecimal128(binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value))
		if d.IsNaN() || d.IsInf() != 0 {
			return append(dst, "null"...)
		}
		return append(dst, d.String()...)
	case bson.TypeBinary:
		_, data := binaryParts(v.Value)
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), data), '"')
	case bson.TypeRegex:
		pattern, options := regexParts(v.Value)
		dst = AppendJSONText(append(dst, `"/`...), pattern)
		dst = AppendJSONText(append(dst, '/'), options)
		return append(dst, '"')
	case bson.TypeTimestamp:
		dst = append(dst, `{"t":`...)
		dst = strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(v.Value[4:])), 10)
		dst = append(dst, `,"i":`...)
		dst = strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(v.Value)), 10)
		return append(dst, '}')
	case bson.TypeCodeWithScope:
		code, _ := codeParts(v.Value)
		return appendJSONString(dst, code)
	case bson.TypeDBPointer:
		return append(hex.AppendEncode(append(dst, '"'), v.Value[len(v.Value)-12:]), '"')
	default: // null, undefined, MinKey, MaxKey
		return append(dst, "null"...)
	}
}

// appendJSONFloat writes the shortest form that reads back as f, with an exponent only for very large and very small
// ones, as JavaScript and encoding/json do.
func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 to e-9
		dst = dst[:n-1]
	}
	return dst
}

// appendTime writes milliseconds since 1970 as 2006-01-02T15:04:05.000Z.
func appendTime(dst []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := t.Clock()
	dst = append2(append2(dst, year/100), year%100)
	dst = append2(append(dst, '-'), int(month))
	dst = append2(append(dst, '-'), day)
	dst = append2(append(dst, 'T'), hour)
	dst = append2(append(dst, ':'), minute)
	dst = append2(append(dst, ':'), second)
	ms = int64(t.Nanosecond()) / int64(time.Millisecond)
	dst = append2(append(dst, '.', byte('0'+ms/100)), int(ms%100)) //nolint:gosec // below 1000
	return append(dst, 'Z')
}

func append2(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10)) //nolint:gosec // two digits
}

func appendJSONString(dst, s []byte) []byte {
	return append(AppendJSONText(append(dst, '"'), s), '"')
}

// AppendJSONText appends the inside of a JSON string, without its quotes. Only what JSON demands is escaped; what is not UTF-8 becomes U+FFFD.
func AppendJSONText(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte(string(utf8.RuneError)))
	}
	for {
		n := plainPrefix(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst
		}
		dst = appendEscape(dst, s[n])
		s = s[n+1:]
	}
}

// plainPrefix counts the bytes before the first that needs an escape, eight at a time.
func plainPrefix(s []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		quote, slash := w^'"'*ones, w^'\\'*ones
		// A byte's high bit is set here if the byte is below ' ', or is '"', or is '\'.
		if ((w-' '*ones)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
