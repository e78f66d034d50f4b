package embedded

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// entries are the keys that one document has in one index: the joined keys of its fields, without the prefix of the
// index and without the _id; sorted, none twice.
type entries struct {
	keys     [][]byte
	multikey uint32 // which key paths led to or through a list
	size     int    // bytes of the keys before those that come twice are taken out
}

// has says whether key is one of them.
func (e entries) has(key []byte) bool {
	_, found := slices.BinarySearchFunc(e.keys, key, bytes.Compare)
	return found
}

// entriesOf makes the entries of a document as MongoDB does: a missing field counts as null, an empty list as
// undefined (before null), and a list gives one entry for each element. Two keys of an index may lead to or through
// the same list, which is then walked once for both, but not to two different lists. A document that a partial index
// leaves out has none.
func (x *index) entriesOf(doc bson.Raw) (entries, error) {
	if !x.def.Partial.Match(doc) {
		return entries{}, nil
	}
	w := entryWalk{index: x}
	fields := make([]entryField, len(x.paths))
	for i, path := range x.paths {
		fields[i].rest = path
	}
	if err := w.walk(doc, fields); err != nil {
		return entries{}, err
	}
	if len(w.out.keys) > 1 {
		slices.SortFunc(w.out.keys, bytes.Compare)
		w.out.keys = slices.CompactFunc(w.out.keys, bytes.Equal)
	}
	return w.out, nil
}

// entryField is what is known of one key field: its value, or the path that is left.
type entryField struct {
	rest  []string
	done  bool
	value bson.RawValue // missing: zero
	empty bool          // the value is an empty list's
}

type entryWalk struct {
	index *index
	out   entries
	room  []byte // of the keys so far, and for more
}

// maxEntries bounds the bytes of the keys that a document has in one index, and in all of them when it is written: a long
// text beside a long list would have gigabytes.
const maxEntries = 64 << 20

// walk resolves the fields that are not done from doc on, and adds an entry for each combination found.
func (w *entryWalk) walk(doc []byte, fields []entryField) error {
	var list []byte // the list that some fields lead to
	var inList uint32
	for i := range fields {
		f := &fields[i]
		if f.done {
			continue
		}
		value, rest, err := w.descend(i, doc, f.rest)
		if err != nil {
			return err
		}
		if value.Type != bson.TypeArray {
			f.value, f.done = value, true
			continue
		}
		if len(list) > 0 && &list[0] != &value.Value[0] {
			return store.ErrParallelLists
		}
		list, f.rest = value.Value, rest
		inList |= 1 << i
	}
	if list == nil {
		return w.emit(fields)
	}
	w.out.multikey |= inList
	return w.expand(list, inList, fields)
}

// expand walks on from each element of list, for the fields whose bits are set.
func (w *entryWalk) expand(list []byte, inList uint32, fields []entryField) error {
	elements := 0
	for it := document.NewIter(list); it.Next(); elements++ {
		if err := w.element(it.Value(), false, inList, fields); err != nil {
			return err
		}
	}
	if elements > 0 {
		return nil
	}
	return w.element(bson.RawValue{}, true, inList, fields)
}

func (w *entryWalk) element(v bson.RawValue, empty bool, inList uint32, fields []entryField) error {
	next := slices.Clone(fields)
	for i := range next {
		if inList&(1<<i) != 0 && len(next[i].rest) == 0 {
			next[i].value, next[i].empty, next[i].done = v, empty, true
		}
	}
	var doc []byte // of anything but an object, all fields are missing
	if v.Type == bson.TypeEmbeddedDocument {
		doc = v.Value
	}
	return w.walk(doc, next)
}

// descend follows path until it ends or meets a list, which it gives together with the path that is left. A number as
// a name picks an element of a list; if there is none at that position, it is the name of a field of the elements.
func (w *entryWalk) descend(field int, doc []byte, path []string) (bson.RawValue, []string, error) {
	for {
		v, found := document.Field(doc, path[0])
		if !found {
			return bson.RawValue{}, nil, nil
		}
		path = path[1:]
		for v.Type == bson.TypeArray && len(path) > 0 && isPosition(path[0]) {
			w.out.multikey |= 1 << field
			item, found := document.Element(v.Value, document.ListIndex(path[0]))
			if !found { // it can only be a name then
				return v, path, nil
			}
			if ambiguous(v.Value, path[0]) {
				return bson.RawValue{}, nil, store.ErrAmbiguousPath
			}
			v, path = item, path[1:]
		}
		if v.Type == bson.TypeArray || len(path) == 0 {
			return v, path, nil
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return bson.RawValue{}, nil, nil
		}
		doc = v.Value
	}
}

// ambiguous says whether an element of list has a field of that name.
func ambiguous(list []byte, name string) bool {
	for it := document.NewIter(list); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeEmbeddedDocument {
			if _, found := document.Field(v.Value, name); found {
				return true
			}
		}
	}
	return false
}

// emit adds the entry of one combination of values.
func (w *entryWalk) emit(fields []entryField) error {
	missing := 0
	// The keys of a document share memory. What it grows out of is still that of the keys before.
	key := w.room
	if key == nil {
		key = make([]byte, 0, 32+32*len(fields))
	}
	start := len(key)
	for i, f := range fields {
		desc := w.index.def.Keys[i].Desc
		switch {
		case f.empty:
			key = document.AppendUndefinedKey(key, desc)
			continue
		case f.value.Type == 0:
			missing++
		case f.value.Type == bson.TypeUndefined:
			// Equal to null for filters, but with a key of its own: without lists there must be none.
			w.out.multikey |= 1 << i
		}
		key = document.AppendKey(key, f.value, desc)
	}
	if w.index.def.Sparse && missing == len(fields) {
		return nil
	}
	w.room = key
	w.out.keys = append(w.out.keys, key[start:len(key):len(key)])
	if w.out.size += len(key) - start; w.out.size > maxEntries {
		return errEntries
	}
	return nil
}
