package script

import (
	"math/big"
	"slices"
	"time"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// maxSafeInteger is the largest whole number that a JavaScript number holds without loss.
const maxSafeInteger = 1<<53 - 1

// js gives a BSON value to the script. Documents become objects that convert a member when it is first read; lists
// become arrays.
func (r *run) js(v any) goja.Value {
	switch v := v.(type) {
	case nil, bson.Null, bson.Undefined:
		return goja.Null()
	case bson.RawValue:
		return r.jsRaw(v)
	case string:
		return r.vm.ToValue(v)
	case bool:
		return r.vm.ToValue(v)
	case int:
		return r.jsInt(int64(v))
	case int32:
		return r.jsInt(int64(v))
	case int64:
		return r.jsInt(v)
	case float64:
		return r.vm.ToValue(v)
	case bson.D:
		return r.object(v, nil)
	case bson.Raw:
		return r.object(nil, v)
	case bson.A:
		return r.list(len(v), func(i int) any { return v[i] })
	case []any:
		return r.list(len(v), func(i int) any { return v[i] })
	case bson.DateTime:
		return r.jsDate(int64(v))
	case time.Time:
		return r.jsDate(v.UnixMilli())
	default:
		return r.jsRare(v)
	}
}

func (r *run) jsRare(v any) goja.Value {
	switch v := v.(type) {
	case []string:
		return r.list(len(v), func(i int) any { return v[i] })
	case []bson.D:
		return r.list(len(v), func(i int) any { return v[i] })
	case []bson.Raw:
		return r.list(len(v), func(i int) any { return v[i] })
	case bson.RawArray:
		return r.jsRaw(bson.RawValue{Type: bson.TypeArray, Value: v})
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		doc := make(bson.D, len(keys))
		for i, k := range keys {
			doc[i] = bson.E{Key: k, Value: v[k]}
		}
		return r.object(doc, nil)
	case int8:
		return r.jsInt(int64(v))
	case int16:
		return r.jsInt(int64(v))
	case uint8:
		return r.jsInt(int64(v))
	case uint16:
		return r.jsInt(int64(v))
	case uint32:
		return r.jsInt(int64(v))
	case float32:
		return r.vm.ToValue(float64(v))
	case bson.ObjectID:
		return r.box(v, objectIDClass)
	case bson.Decimal128:
		return r.box(v, decimalClass)
	case []byte:
		return r.jsBytes(v)
	case bson.Binary:
		return r.jsBytes(v.Data)
	case bson.Symbol:
		return r.vm.ToValue(string(v))
	case bson.JavaScript:
		return r.vm.ToValue(string(v))
	default: // regular expressions, timestamps, MinKey and the like: the script can hand them on
		return r.box(v, opaqueClass)
	}
}

// jsRaw converts an encoded value.
func (r *run) jsRaw(v bson.RawValue) goja.Value {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return r.object(nil, v.Value)
	case bson.TypeArray:
		var items []any
		for it := document.NewIter(v.Value); it.Next(); {
			items = append(items, it.Value())
		}
		return r.list(len(items), func(i int) any { return items[i] })
	default:
		return r.js(document.Decode(v))
	}
}

func (r *run) jsInt(n int64) goja.Value {
	if n > maxSafeInteger || n < -maxSafeInteger {
		return r.vm.ToValue(big.NewInt(n))
	}
	return r.vm.ToValue(n)
}

func (r *run) jsDate(ms int64) goja.Value {
	d, err := r.vm.New(r.vm.Get("Date"), r.vm.ToValue(ms))
	if err != nil {
		panic(err)
	}
	return d
}

func (r *run) jsBytes(b []byte) goja.Value {
	buffer := r.vm.NewArrayBuffer(slices.Clone(b))
	array, err := r.vm.New(r.vm.Get("Uint8Array"), r.vm.ToValue(buffer))
	if err != nil {
		panic(err)
	}
	return array
}

// list converts all items at once, for arrays of the language are faster than any of ours.
func (r *run) list(n int, at func(int) any) *goja.Object {
	items := make([]any, n)
	for i := range items {
		items[i] = r.js(at(i))
	}
	return r.vm.NewArray(items...)
}

// lazy is a document as the script sees it. A member is converted when the script first touches it; what it does not touch
// stays where it came from, costs nothing and changes nothing.
type lazy struct {
	r       *run
	doc     bson.D         // where it came from: doc or raw
	raw     bson.Raw       //
	whole   bson.D         // the members of raw, once it is known to have many
	index   map[string]int // of doc or whole, where there are many
	touched []lazyMember   // a name that was deleted and set again is there twice: the later one counts
	at      map[string]int // of touched, once there are many
	changed bool           // members were added or deleted
}

// lazyMember is a member that the script has touched.
type lazyMember struct {
	name string
	from any        // the value that came in; unset for what the script has added
	came bool       // from is set
	v    goja.Value // nil: it was deleted
}

// manyMembers is where an index beats a search.
const manyMembers = 24

func (r *run) object(doc bson.D, raw bson.Raw) *goja.Object {
	return r.vm.NewDynamicObject(&lazy{r: r, doc: doc, raw: raw})
}

// find finds a member that was touched.
func (l *lazy) find(name string) *lazyMember {
	if l.at != nil {
		if i, ok := l.at[name]; ok {
			return &l.touched[i]
		}
		return nil
	}
	for i := len(l.touched) - 1; i >= 0; i-- {
		if l.touched[i].name == name {
			return &l.touched[i]
		}
	}
	return nil
}

// touch notes a member that the script has touched.
func (l *lazy) touch(m lazyMember) {
	l.touched = append(l.touched, m)
	if l.at != nil {
		l.at[m.name] = len(l.touched) - 1
	} else if len(l.touched) > manyMembers {
		l.reindex()
	}
}

func (l *lazy) reindex() {
	l.at = make(map[string]int, 2*len(l.touched))
	for i := range l.touched {
		l.at[l.touched[i].name] = i
	}
}

// original finds a member of what came in.
func (l *lazy) original(name string) (from any, ok bool) {
	if l.raw != nil && l.whole == nil {
		n := 0
		for it := document.NewIter(l.raw); it.Next(); {
			if n++; n > manyMembers {
				break
			}
			if string(it.Key()) == name {
				return it.Value(), true
			}
		}
		if n <= manyMembers {
			return nil, false
		}
		l.whole = l.members()
	}
	doc := l.doc
	if l.raw != nil {
		doc = l.whole
	}
	if l.index == nil && len(doc) > manyMembers {
		l.index = make(map[string]int, len(doc))
		for i, e := range slices.Backward(doc) { // the first of a name counts
			l.index[e.Key] = i
		}
	}
	if l.index != nil {
		if i, ok := l.index[name]; ok {
			return doc[i].Value, true
		}
		return nil, false
	}
	for i := range doc {
		if doc[i].Key == name {
			return doc[i].Value, true
		}
	}
	return nil, false
}

// members are those that came in, in their order. Values of an encoded document are encoded, too.
func (l *lazy) members() bson.D {
	if l.raw == nil {
		return l.doc
	}
	if l.whole != nil {
		return l.whole
	}
	whole := bson.D{}
	for it := document.NewIter(l.raw); it.Next(); {
		whole = append(whole, bson.E{Key: string(it.Key()), Value: it.Value()})
	}
	return whole
}

// Get gives a member, nil if there is none. A record has id beside _id.
func (l *lazy) Get(name string) goja.Value {
	if m := l.find(name); m != nil {
		if m.v == nil && name == "id" {
			return l.id()
		}
		return m.v
	}
	from, ok := l.original(name)
	if !ok {
		if name == "id" {
			return l.id()
		}
		return nil
	}
	v := l.r.js(from)
	l.touch(lazyMember{name: name, from: from, came: true, v: v})
	return v
}

// id is the hex form of an _id that came as an ObjectID.
func (l *lazy) id() goja.Value {
	if m := l.find("_id"); m != nil && m.v == nil {
		return nil
	}
	from, ok := l.original("_id")
	if !ok {
		return nil
	}
	if raw, ok := from.(bson.RawValue); ok {
		from = document.Decode(raw)
	}
	if id, ok := from.(bson.ObjectID); ok {
		return l.r.vm.ToValue(id.Hex())
	}
	return nil
}

// Set sets a member.
func (l *lazy) Set(name string, v goja.Value) bool {
	m := l.find(name)
	if m != nil && m.v != nil {
		m.v = v
		return true
	}
	if m == nil {
		if from, ok := l.original(name); ok {
			l.touch(lazyMember{name: name, from: from, came: true, v: v})
			return true
		}
	}
	l.changed = true
	l.touch(lazyMember{name: name, v: v})
	return true
}

// Has says whether there is such a member.
func (l *lazy) Has(name string) bool {
	m := l.find(name)
	if m != nil && m.v != nil {
		return true
	}
	if m == nil {
		if _, ok := l.original(name); ok {
			return true
		}
	}
	return name == "id" && l.id() != nil
}

// Delete takes a member out.
func (l *lazy) Delete(name string) bool {
	m := l.find(name)
	switch {
	case m == nil:
		if from, ok := l.original(name); ok {
			l.changed = true
			l.touch(lazyMember{name: name, from: from, came: true})
		}
	case m.came:
		l.changed = true
		m.v = nil
	default:
		l.touched = slices.DeleteFunc(l.touched, func(m lazyMember) bool { return m.name == name && !m.came })
		if l.at != nil {
			l.reindex()
		}
	}
	return true
}

// each goes through the members, in their order. m is nil for one that was not touched, from is what it came as.
func (l *lazy) each(f func(name string, from any, m *lazyMember) error) error {
	for _, e := range l.members() {
		m := l.find(e.Key)
		if m != nil && (!m.came || m.v == nil) {
			continue
		}
		if err := f(e.Key, e.Value, m); err != nil {
			return err
		}
	}
	for i := 0; i < len(l.touched); i++ { // f may run the script, which may add and delete
		if m := &l.touched[i]; !m.came {
			if err := f(m.name, nil, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keys lists the members.
func (l *lazy) Keys() []string {
	keys := make([]string, 0, len(l.doc)+len(l.touched))
	_ = l.each(func(name string, _ any, _ *lazyMember) error { // it gives no error
		keys = append(keys, name)
		return nil
	})
	return keys
}
