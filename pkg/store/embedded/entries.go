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
// undefined (before null), and a list gives one entry for each element, unless the path ends at its position in another list. Two keys of an index may lead to or through
// the same list, which is then walked once for both, but not to two different lists. A document that a partial index
// leaves out has none.
func (x *index) entriesOf(doc bson.Raw) (entries, error) {
	if !x.def.Partial.Match(doc) {
		return entries{}, nil
	}
	w := entryWalk{index: x}
	fields := make([]entryField, len(x.paths))
	for i, path := range x.paths {
		fields[i] = entryField{from: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, rest: path}
	}
	if err := w.walk(fields); err != nil {
		return entries{}, err
	}
	if len(w.out.keys) > 1 {
		slices.SortFunc(w.out.keys, bytes.Compare)
		w.out.keys = slices.CompactFunc(w.out.keys, bytes.Equal)
	}
	return w.out, nil
}

// entryField is what is known of one key field: its value, or the path that is left, from a value on.
type entryField struct {
	from   bson.RawValue
	rest   []string
	picked bool // from is the element of a list at a position that the path names
	done   bool
	value  bson.RawValue // missing: zero
	empty  bool          // the value is an empty list's
}

type entryWalk struct {
	index *index
	out   entries
	room  []byte // of the keys so far, and for more
}

// maxEntries bounds the bytes of the keys that a document has in one index, and in all of them when it is written: a long
// text beside a long list would have gigabytes.
const maxEntries = 64 << 20

// walk resolves the fields that are not done, and adds an entry for each combination found.
func (w *entryWalk) walk(fields []entryField) error {
	var list []byte // the list that some fields lead to
	var inList uint32
	for i := range fields {
		f := &fields[i]
		if f.done {
			continue
		}
		value, rest := descend(f.from, f.rest)
		if value.Type != bson.TypeArray {
			f.value, f.done = value, true
			continue
		}
		if len(list) > 0 && &list[0] != &value.Value[0] {
			return store.ErrParallelLists
		}
		f.picked = f.picked && len(f.rest) == 0 // it is the list that was picked
		list, f.rest = value.Value, rest
		inList |= 1 << i
	}
	if list == nil {
		return w.emit(fields)
	}
	w.out.multikey |= inList
	return w.expand(list, inList, fields)
}

// expand walks on from each element of list, for the fields whose bits are set. Those that go by a position have the
// same element each time: where there are no others, once is enough.
func (w *entryWalk) expand(list []byte, inList uint32, fields []entryField) error {
	for i := range fields {
		f := &fields[i]
		if inList&(1<<i) == 0 {
			continue
		}
		found, err := f.pick(list)
		if err != nil {
			return err
		}
		if found {
			inList &^= 1 << i
		}
	}
	if inList == 0 {
		return w.walk(fields)
	}
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

// pick says whether a field that leads to a list goes on by a position in it, or ends at it after it was picked itself:
// it is a value of its own then. A number as a name is that of a field of the elements if there is none at that position.
func (f *entryField) pick(list []byte) (bool, error) {
	if len(f.rest) == 0 {
		if !f.picked {
			return false, nil
		}
		it := document.NewIter(list)
		f.value, f.empty, f.done = bson.RawValue{Type: bson.TypeArray, Value: list}, !it.Next(), true
		return true, nil
	}
	if !isPosition(f.rest[0]) {
		return false, nil
	}
	item, found := document.Element(list, document.ListIndex(f.rest[0]))
	if !found {
		return false, nil
	}
	if ambiguous(list, f.rest[0]) {
		return false, store.ErrAmbiguousPath
	}
	f.from, f.rest, f.picked = item, f.rest[1:], true
	return true, nil
}

func (w *entryWalk) element(v bson.RawValue, empty bool, inList uint32, fields []entryField) error {
	next := slices.Clone(fields)
	for i := range next {
		f := &next[i]
		switch {
		case inList&(1<<i) == 0:
		case len(f.rest) == 0:
			f.value, f.empty, f.done = v, empty, true
		case v.Type == bson.TypeEmbeddedDocument:
			f.from, f.picked = v, false
		default: // of anything but an object, all fields are missing
			f.done = true
		}
	}
	return w.walk(next)
}

// descend follows path until it ends or meets a list, which it gives together with the path that is left.
func descend(v bson.RawValue, path []string) (bson.RawValue, []string) {
	for len(path) > 0 && v.Type != bson.TypeArray {
		if v.Type != bson.TypeEmbeddedDocument {
			return bson.RawValue{}, nil
		}
		next, found := document.Field(v.Value, path[0])
		if !found {
			return bson.RawValue{}, nil
		}
		v, path = next, path[1:]
	}
	return v, path
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
