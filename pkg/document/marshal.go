package document

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// maxNesting is how deep an encoded document may be: MongoDB's own limit. It is above MaxDepth because filters wrap
// what callers send.
const maxNesting = 100

// oldBinary is the binary subtype that repeats its length inside.
const oldBinary = 2

// Marshal encodes a document. It takes the value model only: nil, bool, the Go integers, floats, string, bson.D,
// bson.A, []any, []string, []bson.D, []byte, time.Time, the value types of package bson, bson.Raw and bson.RawValue.
//
// Errors: errs.TooLarge above MaxSize; errs.Invalid for text that is not UTF-8, NUL in a name and nesting above 100
// levels; errs.Internal for any other Go type and for damaged raw bytes.
func Marshal(doc bson.D) (bson.Raw, error) {
	dst, err := appendDocument(make([]byte, 0, 512), doc, 1)
	if err != nil {
		return nil, err
	}
	return bson.Raw(dst), checkSize(len(dst))
}

// MarshalValue encodes one value; the errors are those of Marshal.
func MarshalValue(v any) (bson.RawValue, error) {
	t, dst, err := appendValue(nil, v, 0)
	if err != nil {
		return bson.RawValue{}, err
	}
	return bson.RawValue{Type: t, Value: dst}, checkSize(len(dst))
}

func checkSize(n int) error {
	if n > MaxSize {
		return errs.New(errs.TooLarge, "document_too_large", "the record takes %d bytes; %d is the limit", n, MaxSize)
	}
	return nil
}

// appendDocument writes doc, which is at the given level.
func appendDocument(dst []byte, doc bson.D, level int) ([]byte, error) {
	start, dst, err := open(dst, level)
	if err != nil {
		return nil, err
	}
	for i := range doc {
		name := doc[i].Key
		if strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
			return nil, errs.New(errs.Invalid, "bad_name", "the field name %q contains NUL or is not UTF-8", name)
		}
		at := len(dst)
		dst = append(append(append(dst, 0), name...), 0)
		if dst, err = appendElement(dst, at, doc[i].Value, level); err != nil {
			return nil, err
		}
	}
	return Close(dst, start), nil
}

func appendList[T any](dst []byte, list []T, level int) ([]byte, error) {
	start, dst, err := open(dst, level)
	if err != nil {
		return nil, err
	}
	for i := range list {
		at := len(dst)
		dst = append(strconv.AppendInt(append(dst, 0), int64(i), 10), 0)
		if dst, err = appendElement(dst, at, list[i], level); err != nil {
			return nil, err
		}
	}
	return Close(dst, start), nil
}

func open(dst []byte, level int) (int, []byte, error) {
	if level > maxNesting {
		return 0, nil, errs.New(errs.Invalid, "too_deep", "objects and lists are nested more than %d levels deep", maxNesting)
	}
	return len(dst), append(dst, 0, 0, 0, 0), nil
}

// appendElement writes the value of an element whose type byte is at dst[at].
func appendElement(dst []byte, at int, v any, level int) ([]byte, error) {
	t, dst, err := appendValue(dst, v, level)
	if err != nil {
		return nil, err
	}
	if len(dst) > MaxSize {
		return nil, checkSize(len(dst))
	}
	dst[at] = byte(t)
	return dst, nil
}

// appendValue writes v, which is in a container at the given level.
func appendValue(dst []byte, v any, level int) (bson.Type, []byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return bson.TypeNull, dst, nil
	case string:
		dst, err = appendString(dst, v)
		return bson.TypeString, dst, err
	case int64:
		return bson.TypeInt64, appendInt64(dst, v), nil
	case float64:
		return bson.TypeDouble, binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), nil
	case bool:
		return bson.TypeBoolean, appendBool(dst, v), nil
	case bson.D:
		dst, err = appendDocument(dst, v, level+1)
		return bson.TypeEmbeddedDocument, dst, err
	case bson.A:
		dst, err = appendList(dst, v, level+1)
		return bson.TypeArray, dst, err
	case bson.ObjectID:
		return bson.TypeObjectID, append(dst, v[:]...), nil
	case bson.DateTime:
		return bson.TypeDateTime, appendInt64(dst, int64(v)), nil
	case time.Time:
		return bson.TypeDateTime, appendInt64(dst, v.UnixMilli()), nil
	case int32:
		return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(v)), nil //nolint:gosec // the same bits
	case int:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case bson.RawValue:
		return appendRaw(dst, v, level)
	case bson.Raw:
		return appendRaw(dst, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: v}, level)
	default:
		return appendRareValue(dst, v, level)
	}
}

func appendRareValue(dst []byte, v any, level int) (bson.Type, []byte, error) {
	var err error
	switch v := v.(type) {
	case []any:
		dst, err = appendList(dst, v, level+1)
		return bson.TypeArray, dst, err
	case []string:
		dst, err = appendList(dst, v, level+1)
		return bson.TypeArray, dst, err
	case []bson.D:
		dst, err = appendList(dst, v, level+1)
		return bson.TypeArray, dst, err
	case bson.RawArray:
		return appendRaw(dst, bson.RawValue{Type: bson.TypeArray, Value: v}, level)
	case int8:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case int16:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case uint8:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case uint16:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case uint32:
		return bson.TypeInt64, appendInt64(dst, int64(v)), nil
	case uint:
		return appendUint64(dst, uint64(v))
	case uint64:
		return appendUint64(dst, v)
	case float32:
		return bson.TypeDouble, binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(v))), nil
	case []byte:
		return bson.TypeBinary, appendBinary(dst, 0, v), nil
	case bson.Binary:
		return bson.TypeBinary, appendBinary(dst, v.Subtype, v.Data), nil
	case bson.Decimal128:
		high, low := v.GetBytes()
		dst = binary.LittleEndian.AppendUint64(dst, low)
		return bson.TypeDecimal128, binary.LittleEndian.AppendUint64(dst, high), nil
	case bson.Regex:
		dst, err = appendRegex(dst, v)
		return bson.TypeRegex, dst, err
	case bson.Timestamp:
		return bson.TypeTimestamp, binary.LittleEndian.AppendUint64(dst, uint64(v.T)<<32|uint64(v.I)), nil
	case bson.Null:
		return bson.TypeNull, dst, nil
	case bson.Undefined:
		return bson.TypeUndefined, dst, nil
	case bson.MinKey:
		return bson.TypeMinKey, dst, nil
	case bson.MaxKey:
		return bson.TypeMaxKey, dst, nil
	case bson.Symbol:
		dst, err = appendString(dst, string(v))
		return bson.TypeSymbol, dst, err
	case bson.JavaScript:
		dst, err = appendString(dst, string(v))
		return bson.TypeJavaScript, dst, err
	default:
		return 0, nil, errs.Wrap(fmt.Errorf("a %T is no value of a document", v), "marshal")
	}
}

func appendInt64(dst []byte, i int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(i)) //nolint:gosec // the same bits
}

func appendUint64(dst []byte, u uint64) (bson.Type, []byte, error) {
	if u > math.MaxInt64 {
		return 0, nil, errs.New(errs.Invalid, "number_too_large", "the number %d is above the largest integer %d", u, int64(math.MaxInt64))
	}
	return bson.TypeInt64, appendInt64(dst, int64(u)), nil
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errs.New(errs.Invalid, "bad_text", "a text is not valid UTF-8")
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)+1)) //nolint:gosec // checked by checkSize
	return append(append(dst, s...), 0), nil
}

func appendBinary(dst []byte, subtype byte, data []byte) []byte {
	n := uint32(len(data)) //nolint:gosec // checked by checkSize
	if subtype == oldBinary {
		dst = append(binary.LittleEndian.AppendUint32(dst, n+4), subtype)
		return append(binary.LittleEndian.AppendUint32(dst, n), data...)
	}
	return append(append(binary.LittleEndian.AppendUint32(dst, n), subtype), data...)
}

func appendRegex(dst []byte, r bson.Regex) ([]byte, error) {
	text := r.Pattern + r.Options
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return nil, errs.New(errs.Invalid, "bad_text", "a regular expression contains NUL or is not UTF-8")
	}
	dst = append(append(dst, r.Pattern...), 0)
	return append(append(dst, r.Options...), 0), nil
}

func appendRaw(dst []byte, v bson.RawValue, level int) (bson.Type, []byte, error) {
	if !wellFormed(v, level+1) {
		return 0, nil, errs.Wrap(fmt.Errorf("raw value of type %#x is damaged or missing", byte(v.Type)), "marshal")
	}
	return v.Type, append(dst, v.Value...), nil
}

// Unmarshal decodes a document; objects inside become bson.D, lists bson.A, dates bson.DateTime. Nothing of the
// result aliases raw. Bytes that are not BSON are errs.Internal.
func Unmarshal(raw bson.Raw) (bson.D, error) {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
	if !WellFormed(v) {
		return nil, errs.Wrap(errors.New("the document is damaged"), "unmarshal")
	}
	return decode(v).(bson.D), nil //nolint:errcheck // the type follows from TypeEmbeddedDocument
}

func decode(v bson.RawValue) any {
	switch v.Type {
	case bson.TypeNull:
		return nil
	case bson.TypeString:
		return string(stringBytes(v.Value))
	case bson.TypeInt32:
		return int32Of(v.Value)
	case bson.TypeInt64:
		return int64Of(v.Value)
	case bson.TypeDouble:
		return doubleOf(v.Value)
	case bson.TypeBoolean:
		return v.Value[0] != 0
	case bson.TypeObjectID:
		return bson.ObjectID(v.Value)
	case bson.TypeDateTime:
		return bson.DateTime(int64Of(v.Value))
	case bson.TypeEmbeddedDocument:
		doc := bson.D{}
		for it := NewIter(v.Value); it.Next(); {
			doc = append(doc, bson.E{Key: string(it.key), Value: decode(it.val)})
		}
		return doc
	case bson.TypeArray:
		list := bson.A{}
		for it := NewIter(v.Value); it.Next(); {
			list = append(list, decode(it.val))
		}
		return list
	default:
		return decodeRare(v)
	}
}

func decodeRare(v bson.RawValue) any {
	switch v.Type {
	case bson.TypeDecimal128:
		return bson.NewDecimal128(binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value))
	case bson.TypeBinary:
		subtype, data := binaryParts(v.Value)
		return bson.Binary{Subtype: subtype, Data: append([]byte{}, data...)}
	case bson.TypeRegex:
		pattern, options := regexParts(v.Value)
		return bson.Regex{Pattern: string(pattern), Options: string(options)}
	case bson.TypeTimestamp:
		return bson.Timestamp{I: binary.LittleEndian.Uint32(v.Value), T: binary.LittleEndian.Uint32(v.Value[4:])}
	case bson.TypeUndefined:
		return bson.Undefined{}
	case bson.TypeMinKey:
		return bson.MinKey{}
	case bson.TypeMaxKey:
		return bson.MaxKey{}
	case bson.TypeSymbol:
		return bson.Symbol(stringBytes(v.Value))
	case bson.TypeJavaScript:
		return bson.JavaScript(stringBytes(v.Value))
	default: // DBPointer and code with scope are kept as they are
		return bson.RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)}
	}
}

// binaryParts is the subtype and content of a binary value.
func binaryParts(b []byte) (subtype byte, data []byte) {
	if len(b) < 5 {
		return 0, nil
	}
	if b[4] == oldBinary && len(b) >= 9 {
		return b[4], b[9:]
	}
	return b[4], b[5:]
}

// Decode decodes one encoded value to Go values as in Unmarshal. Damaged bytes give nil.
func Decode(v bson.RawValue) any {
	if !WellFormed(v) {
		return nil
	}
	return decode(v)
}
