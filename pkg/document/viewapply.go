package document

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Apply gives the part of a record that the view shows, with the types of its values. nil gives doc itself.
func (v *View) Apply(doc bson.Raw) bson.Raw {
	if v == nil {
		return doc
	}
	dst := appendSeen(make([]byte, 0, len(doc)), doc, v.mask)
	if len(v.members) == 0 {
		return dst
	}
	dst = dst[:len(dst)-1]
	for _, m := range v.members {
		dst = m.With.AppendElement(dst, m.Name, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
	}
	return Close(dst, 0)
}

func appendSeen(dst, doc []byte, m mask) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for it := NewIter(doc); it.Next(); {
		sub, seen := m.field(it.key, isContainer(it.val.Type))
		if seen || start == 0 && string(it.key) == "_id" {
			before := len(dst)
			dst = appendSeenElement(dst, it.key, it.val, sub)
			if sub.bare() && len(dst)-before == len(it.key)+len("t\x00")+emptyObject {
				dst = dst[:before]
			}
		}
	}
	return Close(dst, start)
}

// emptyObject is the length of an object without members.
const emptyObject = 5

func appendSeenElement(dst, name []byte, v bson.RawValue, m mask) []byte {
	if m.inlay != nil && m.inlay.with != nil {
		return m.inlay.with.AppendElement(dst, string(name), v)
	}
	if m == (mask{}) || !isContainer(v.Type) {
		return AppendElement(dst, name, v)
	}
	dst = append(append(append(dst, byte(v.Type)), name...), 0)
	if v.Type == bson.TypeEmbeddedDocument {
		return appendSeen(dst, v.Value, m)
	}
	return appendSeenList(dst, v.Value, m)
}

func appendSeenList(dst, list []byte, m mask) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	n := 0
	for it := NewIter(list); it.Next(); {
		if m.element(isContainer(it.val.Type)) {
			dst = appendSeenElement(dst, strconv.AppendInt(nil, int64(n), 10), it.val, m)
			n++
		}
	}
	return Close(dst, start)
}
