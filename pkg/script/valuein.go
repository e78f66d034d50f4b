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

// lazy is a document as the script sees it. Members are converted when they are first read, and kept as they came
// until then, so that what a script does not touch costs nothing and changes nothing.
type lazy struct {
	r       *run
	doc     bson.D   // where it came from: doc or raw
	raw     bson.Raw //
	open    bool     // members is filled
	members []lazyMember
	index   map[string]int // of members, once there are many
	changed bool           // members were added or deleted
}

type lazyMember struct {
	name string
	from any        // the value that came in; unset for what the script has added
	came bool       // from is set
	v    goja.Value // nil: not converted yet
}

// manyMembers is where an index beats a search.
const manyMembers = 24

func (r *run) object(doc bson.D, raw bson.Raw) *goja.Object {
	return r.vm.NewDynamicObject(&lazy{r: r, doc: doc, raw: raw})
}

func (l *lazy) load() {
	if l.open {
		return
	}
	l.open = true
	if l.doc != nil {
		l.members = make([]lazyMember, len(l.doc), len(l.doc)+2)
		for i, e := range l.doc {
			l.members[i] = lazyMember{name: e.Key, from: e.Value, came: true}
		}
	} else {
		for it := document.NewIter(l.raw); it.Next(); {
			l.members = append(l.members, lazyMember{name: string(it.Key()), from: it.Value(), came: true})
		}
	}
	l.reindex()
}

func (l *lazy) reindex() {
	if len(l.members) <= manyMembers {
		l.index = nil
		return
	}
	l.index = make(map[string]int, len(l.members))
	for i := range l.members {
		l.index[l.members[i].name] = i
	}
}

func (l *lazy) find(name string) int {
	l.load()
	if l.index != nil {
		if i, ok := l.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range l.members {
		if l.members[i].name == name {
			return i
		}
	}
	return -1
}

// Get gives a member, nil if there is none. A record has id beside _id.
func (l *lazy) Get(name string) goja.Value {
	i := l.find(name)
	if i < 0 {
		if name == "id" {
			return l.id()
		}
		return nil
	}
	m := &l.members[i]
	if m.v == nil {
		m.v = l.r.js(m.from)
	}
	return m.v
}

// id is the hex form of an _id that is an ObjectID.
func (l *lazy) id() goja.Value {
	i := l.find("_id")
	if i < 0 {
		return nil
	}
	from := l.members[i].from
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
	if i := l.find(name); i >= 0 {
		l.members[i].v = v
		return true
	}
	l.changed = true
	l.members = append(l.members, lazyMember{name: name, v: v})
	if l.index != nil {
		l.index[name] = len(l.members) - 1
	} else if len(l.members) > manyMembers {
		l.reindex()
	}
	return true
}

// Has says whether there is such a member.
func (l *lazy) Has(name string) bool {
	return l.find(name) >= 0 || name == "id" && l.id() != nil
}

// Delete takes a member out.
func (l *lazy) Delete(name string) bool {
	if i := l.find(name); i >= 0 {
		l.changed = true
		l.members = slices.Delete(l.members, i, i+1)
		l.reindex()
	}
	return true
}

// Keys lists the members.
func (l *lazy) Keys() []string {
	l.load()
	keys := make([]string, len(l.members))
	for i := range l.members {
		keys[i] = l.members[i].name
	}
	return keys
}
