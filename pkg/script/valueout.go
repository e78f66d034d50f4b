package script

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/script/guard"
)

// maxOutDepth is how deep a value that comes back may be nested: what a document can hold.
const maxOutDepth = 90

// out takes values back from the script.
type out struct {
	r    *run
	left int // bytes that may still come
	// filter says that a filter comes. What is left out of other values would make it match more than it says, so it is
	// refused: members that are undefined, and what objects of classes hold elsewhere than in members.
	filter bool
}

// errUndefined is a member of a filter that has no value.
var errUndefined = errors.New("is undefined, which a filter can't have: without that member it would match more")

func (o *out) spend(n int) error {
	o.left -= n + 8
	if o.left < 0 {
		return errors.New("what the script gives back is too large")
	}
	return o.r.stopped()
}

// value converts v back. from is the value that it came from, if any, and same says that v still is that value: then
// its type is kept.
func (o *out) value(v goja.Value, from any, came bool, depth int) (result any, same bool, err error) {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		if err := o.spend(0); err != nil {
			return nil, false, err
		}
		return nil, came && isNull(from), nil
	}
	if depth > maxOutDepth {
		return nil, false, errors.New("what the script gives back is nested too deep, or contains itself")
	}
	if obj, ok := v.(*goja.Object); ok {
		return o.object(obj, from, came, depth)
	}
	if _, ok := v.(*goja.Symbol); ok {
		return nil, false, errors.New("a symbol can't be given back")
	}
	if raw, ok := from.(bson.RawValue); ok {
		from = document.Decode(raw)
	}
	switch x := v.Export().(type) {
	case string:
		if err := o.spend(len(x)); err != nil {
			return nil, false, err
		}
		old, ok := from.(string)
		return x, ok && old == x, nil
	case bool:
		old, ok := from.(bool)
		return x, ok && old == x, o.spend(0)
	case int64:
		result, same = wholeNumber(x, from)
		return result, same, o.spend(0)
	case float64:
		result, same = floatNumber(x, from)
		return result, same, o.spend(0)
	case *big.Int:
		if !x.IsInt64() {
			return nil, false, errors.New("a BigInt that is too large for 64 bits can't be stored: " + shorten(x.String()))
		}
		old, ok := from.(int64)
		return x.Int64(), ok && old == x.Int64(), o.spend(0)
	default:
		return nil, false, fmt.Errorf("a %s can't be given back", kindOf(v))
	}
}

func isNull(v any) bool {
	if raw, ok := v.(bson.RawValue); ok {
		return raw.Type == bson.TypeNull
	}
	_, null := v.(bson.Null)
	return v == nil || null
}

// wholeNumber keeps the type of an unchanged number; new ones are int32 where they fit, as in JSON.
func wholeNumber(n int64, from any) (v any, same bool) {
	switch old := from.(type) {
	case int32:
		if int64(old) == n {
			return old, true
		}
	case int64:
		if old == n {
			return old, true
		}
		return n, false // a field of 64 bits stays one
	case int:
		if int64(old) == n {
			return old, true
		}
	case float64:
		if old == float64(n) && !(n == 0 && math.Signbit(old)) {
			return old, true
		}
	}
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return int32(n), false
	}
	return n, false
}

func floatNumber(f float64, from any) (v any, same bool) {
	if old, ok := from.(float64); ok && (old == f || old != old && f != f) && math.Signbit(old) == math.Signbit(f) {
		return old, true
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxSafeInteger && !(f == 0 && math.Signbit(f)) {
		return wholeNumber(int64(f), from)
	}
	return f, false
}

func (o *out) object(obj *goja.Object, from any, came bool, depth int) (result any, same bool, err error) {
	switch obj.ClassName() {
	case "Array":
		return o.list(obj, from, came, depth)
	case "Function", "AsyncFunction", "GeneratorFunction":
		return nil, false, errors.New("a function can't be given back")
	}
	switch x := guard.Exported(obj).(type) {
	case *lazy:
		result, changed, err := o.document(x, depth)
		return result, !changed && came && x.is(from), err
	case *boxed:
		if raw, ok := from.(bson.RawValue); ok {
			from = document.Decode(raw)
		}
		return x.v, came && sameScalar(x.v, from), o.spend(16)
	case time.Time:
		return o.date(x, from)
	case goja.ArrayBuffer:
		return o.binary(x.Bytes(), from)
	case *goja.Promise:
		return nil, false, errors.New("a promise can't be given back: await it")
	}
	if b, ok := bytesOf(obj); ok {
		return o.binary(b, from)
	}
	switch obj.ClassName() {
	case "Number", "String", "Boolean":
		return o.value(o.r.vm.ToValue(obj.Export()), from, came, depth+1)
	}
	result, err = o.plain(obj, depth)
	return result, false, err
}

func (o *out) date(t time.Time, from any) (result any, same bool, err error) {
	if raw, ok := from.(bson.RawValue); ok {
		from = document.Decode(raw)
	}
	ms := t.UnixMilli()
	if old, ok := from.(time.Time); ok && old.UnixMilli() == ms {
		return bson.DateTime(ms), true, o.spend(0)
	}
	old, ok := from.(bson.DateTime)
	return bson.DateTime(ms), ok && int64(old) == ms, o.spend(0)
}

func (o *out) binary(b []byte, from any) (result any, same bool, err error) {
	if err := o.spend(len(b)); err != nil {
		return nil, false, err
	}
	if raw, ok := from.(bson.RawValue); ok {
		from = document.Decode(raw)
	}
	switch old := from.(type) {
	case bson.Binary:
		if bytes.Equal(old.Data, b) {
			return old, true, nil
		}
		return bson.Binary{Subtype: old.Subtype, Data: bytes.Clone(b)}, false, nil
	case []byte:
		if bytes.Equal(old, b) {
			return bson.Binary{Data: old}, true, nil
		}
	}
	return bson.Binary{Data: bytes.Clone(b)}, false, nil
}

// bytesOf gives the content of a Uint8Array.
func bytesOf(obj *goja.Object) ([]byte, bool) {
	b, ok := guard.Exported(obj).([]byte)
	return b, ok
}

func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case bson.ObjectID:
		old, ok := b.(bson.ObjectID)
		return ok && old == a
	case bson.Decimal128:
		old, ok := b.(bson.Decimal128)
		return ok && old == a
	default:
		return fmt.Sprint(a) == fmt.Sprint(b)
	}
}

// list converts an array; items at the same place as in the list it came from are compared with those.
func (o *out) list(obj *goja.Object, from any, came bool, depth int) (result any, same bool, err error) {
	olds, isList := listItems(from)
	n := int(obj.Get("length").ToInteger())
	if n > o.left {
		return nil, false, errors.New("what the script gives back is too large")
	}
	items := make(bson.A, 0, min(n, 1024))
	same = came && isList && len(olds) == n
	for i := range n {
		var old any
		has := i < len(olds)
		if has {
			old = olds[i]
		}
		v := obj.Get(strconv.Itoa(i))
		if o.filter && (v == nil || goja.IsUndefined(v)) {
			return nil, false, inMember(strconv.Itoa(i), errUndefined)
		}
		item, unchanged, err := o.value(v, old, has, depth+1)
		if err != nil {
			return nil, false, err
		}
		same = same && unchanged
		items = append(items, item)
	}
	return items, same, nil
}

func listItems(from any) ([]any, bool) {
	switch v := from.(type) {
	case bson.A:
		return v, true
	case []any:
		return v, true
	case []string:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return items, true
	case []bson.D:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return items, true
	case bson.RawValue:
		if v.Type != bson.TypeArray {
			return nil, false
		}
		items := []any{}
		for it := document.NewIter(v.Value); it.Next(); {
			items = append(items, it.Value())
		}
		return items, true
	}
	return nil, false
}

// is says whether from is the very document that l was made of.
func (l *lazy) is(from any) bool {
	switch v := from.(type) {
	case bson.D:
		return len(v) == len(l.doc) && l.raw == nil && (len(v) == 0 || &v[0] == &l.doc[0])
	case bson.Raw:
		return len(v) == len(l.raw) && len(v) > 0 && &v[0] == &l.raw[0]
	case bson.RawValue:
		return v.Type == bson.TypeEmbeddedDocument && len(v.Value) == len(l.raw) && len(v.Value) > 0 && &v.Value[0] == &l.raw[0]
	}
	return false
}

// document converts a document back. What the script did not touch is taken from where it came from.
func (o *out) document(l *lazy, depth int) (result any, changed bool, err error) {
	if len(l.touched) == 0 {
		if l.raw == nil {
			return l.doc, false, o.spend(0)
		}
		return document.Decode(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: l.raw}), false, o.spend(len(l.raw))
	}
	changed = l.changed
	doc := make(bson.D, 0, len(l.doc)+len(l.touched))
	err = l.each(func(name string, from any, m *lazyMember) error {
		if m == nil {
			doc = append(doc, bson.E{Key: name, Value: untouched(from)})
			return nil
		}
		if goja.IsUndefined(m.v) {
			if o.filter {
				return inMember(name, errUndefined)
			}
			changed = true
			return nil
		}
		if err := o.spend(len(name)); err != nil {
			return err
		}
		v, same, err := o.value(m.v, m.from, m.came, depth+1)
		if err != nil {
			return inMember(name, err)
		}
		changed = changed || !same
		doc = append(doc, bson.E{Key: name, Value: v})
		return nil
	})
	return doc, changed, err
}

func untouched(from any) any {
	if raw, ok := from.(bson.RawValue); ok {
		return document.Decode(raw)
	}
	return from
}

// plain converts an object that the script has made: its own enumerable members, or what toJSON gives.
func (o *out) plain(obj *goja.Object, depth int) (any, error) {
	if toJSON, ok := goja.AssertFunction(obj.Get("toJSON")); ok {
		v, err := toJSON(obj)
		if err != nil {
			return nil, err
		}
		if v == goja.Value(obj) {
			return nil, errors.New("toJSON gives the object itself")
		}
		result, _, err := o.value(v, nil, false, depth+1)
		return result, err
	}
	if proto := obj.Prototype(); o.filter && proto != nil && proto != o.r.vm.NewObject().Prototype() {
		return nil, errors.New("a filter consists of plain objects: what a Map, or an object of a class, holds would be left out")
	}
	doc := bson.D{}
	for _, name := range obj.Keys() {
		if err := o.spend(len(name)); err != nil {
			return nil, err
		}
		v := obj.Get(name)
		if goja.IsUndefined(v) {
			if o.filter {
				return nil, inMember(name, errUndefined)
			}
			continue
		}
		member, _, err := o.value(v, nil, false, depth+1)
		if err != nil {
			return nil, inMember(name, err)
		}
		doc = append(doc, bson.E{Key: name, Value: member})
	}
	return doc, nil
}

func inMember(name string, err error) error {
	return fmt.Errorf("%s: %w", shorten(name), err)
}

func kindOf(v goja.Value) string {
	if t := v.ExportType(); t != nil {
		return t.String()
	}
	return "value of this kind"
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
