package pipeline

import (
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// integer is an int32 if n fits, else an int64.
func integer(n int64) bson.RawValue {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return bson.RawValue{Type: bson.TypeInt32, Value: binary.LittleEndian.AppendUint32(nil, uint32(n))} //nolint:gosec // the same bits
	}
	return long(n)
}

func long(n int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt64, Value: binary.LittleEndian.AppendUint64(nil, uint64(n))} //nolint:gosec // the same bits
}

//nolint:gochecknoglobals // a constant
var null = bson.RawValue{Type: bson.TypeNull}

// isNull is true of null, undefined and what is missing.
func isNull(t bson.Type) bool { return t == bson.TypeNull || t == 0 || t == bson.TypeUndefined }

// openDoc begins an object or a list; document.Close ends it.
func openDoc(dst []byte) (start int, out []byte) {
	return len(dst), append(dst, 0, 0, 0, 0)
}

func appendName[S ~string | ~[]byte](dst []byte, t bson.Type, name S) []byte {
	dst = append(append(dst, byte(t)), name...)
	return append(dst, 0)
}

func appendIndex(dst []byte, t bson.Type, i int) []byte {
	dst = strconv.AppendInt(append(dst, byte(t)), int64(i), 10)
	return append(dst, 0)
}

// appendSet appends doc with a value at a path. What is no object on the way becomes one; a missing value takes the field
// away. The field keeps its place; a new one comes last.
func appendSet(dst []byte, doc []byte, path []string, v bson.RawValue) []byte {
	if len(path) == 1 {
		if _, found := document.Field(doc, path[0]); !found { // as mostly
			start := len(dst)
			dst = appendField(append(dst, doc[:len(doc)-1]...), bson.RawValue{}, path, v)
			return document.Close(dst, start)
		}
	}
	start, dst := openDoc(dst)
	found := false
	for it := document.NewIter(doc); it.Next(); {
		if found || string(it.Key()) != path[0] {
			dst = document.AppendElement(dst, it.Key(), it.Value())
			continue
		}
		found = true
		dst = appendField(dst, it.Value(), path, v)
	}
	if !found {
		dst = appendField(dst, bson.RawValue{}, path, v)
	}
	return document.Close(dst, start)
}

// appendField appends the field path[0], whose value was old.
func appendField(dst []byte, old bson.RawValue, path []string, v bson.RawValue) []byte {
	if len(path) == 1 {
		if v.Type == 0 {
			return dst
		}
		return document.AppendElement(dst, path[0], v)
	}
	inner := []byte{5, 0, 0, 0, 0}
	if old.Type == bson.TypeEmbeddedDocument {
		inner = old.Value
	}
	dst = appendName(dst, bson.TypeEmbeddedDocument, path[0])
	return appendSet(dst, inner, path[1:], v)
}

// fieldAt follows a path through objects only.
func fieldAt(doc []byte, path []string) bson.RawValue {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	for _, name := range path {
		if v.Type != bson.TypeEmbeddedDocument {
			return bson.RawValue{}
		}
		v, _ = document.Field(v.Value, name)
	}
	return v
}

// docList is a list of documents that is being written.
type docList struct {
	list []byte
	n    int
}

// newDocList begins a list in a buffer, whose bytes it may overwrite.
func newDocList(buffer []byte) docList { return docList{list: append(reuse(buffer), 0, 0, 0, 0)} }

func (l *docList) add(doc bson.Raw) {
	l.list = append(appendIndex(l.list, bson.TypeEmbeddedDocument, l.n), doc...)
	l.n++
}

// close gives the bytes of the whole list.
func (l *docList) close() []byte {
	l.list = document.Close(l.list, 0)
	return l.list
}
