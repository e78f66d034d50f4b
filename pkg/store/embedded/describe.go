package embedded

import (
	"bytes"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// maxDescription is how many bytes of what an update has changed the feed keeps, where it does not keep the documents.
const maxDescription = 16 << 10

// The names of the fields of an entry's details.
const (
	detailUpdate = "u"
	detailBefore = "b"
	detailAfter  = "a"
)

// details is what the feed keeps of an edit besides the _id: what an update has changed, and, of a collection that keeps
// images, the documents before and after. nil: nothing.
func (w *writer) details(e *edit) bson.Raw {
	images := w.coll.images
	if e.old == nil || !images && !e.patched || store.IsBookkeeping(w.coll.name.collection) {
		return nil
	}
	out := make([]byte, 4, 64)
	add := func(name string, doc bson.Raw) {
		if doc != nil {
			out = document.AppendElement(out, name, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
		}
	}
	if len(e.changes) <= maxDescription || images {
		add(detailUpdate, e.changes)
	}
	if images {
		add(detailBefore, e.old)
		add(detailAfter, e.new)
	}
	if len(out) == 4 {
		return nil
	}
	return document.Close(out, 0)
}

// detail takes one of an entry's details out; nil if it is not there.
func (c *change) detail(name string) bson.Raw {
	if c.details == nil {
		return nil
	}
	doc, _ := c.details.Lookup(name).DocumentOK()
	return doc
}

// describe tells what makes after of before, as MongoDB does: {updatedFields, removedFields, truncatedArrays}. It is nil where paths
// can't tell it. In which order the fields stand is not told.
func describe(before, after bson.Raw) bson.Raw {
	d := description{updated: make([]byte, 4, 64), removed: make([]byte, 4, 16), truncated: make([]byte, 4, 16)}
	if !d.objects(nil, before, after) {
		return nil
	}
	out := make([]byte, 4, len(d.updated)+len(d.removed)+len(d.truncated)+64)
	out = document.AppendElement(out, "updatedFields", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document.Close(d.updated, 0)})
	out = document.AppendElement(out, "removedFields", bson.RawValue{Type: bson.TypeArray, Value: document.Close(d.removed, 0)})
	out = document.AppendElement(out, "truncatedArrays", bson.RawValue{Type: bson.TypeArray, Value: document.Close(d.truncated, 0)})
	return document.Close(out, 0)
}

// description is one in the making: the lists are open.
type description struct {
	updated, removed, truncated []byte
	removals, truncations       int
}

// objects tells two objects apart, and says whether paths can: of names with dots they can't.
func (d *description) objects(path []byte, before, after []byte) bool {
	a, b := document.NewIter(before), document.NewIter(after)
	moreA, moreB := a.Next(), b.Next()
	for ; moreA && moreB && bytes.Equal(a.Key(), b.Key()); moreA, moreB = a.Next(), b.Next() {
		if !plainName(a.Key()) {
			return false
		}
		d.values(join(path, a.Key()), a.Value(), b.Value())
	}
	rest := map[string]bson.RawValue{}
	for it := a; moreA; moreA = it.Next() {
		if !plainName(it.Key()) {
			return false
		}
		rest[string(it.Key())] = it.Value()
	}
	for ; moreB; moreB = b.Next() {
		if !plainName(b.Key()) {
			return false
		}
		was, had := rest[string(b.Key())]
		delete(rest, string(b.Key()))
		if had {
			d.values(join(path, b.Key()), was, b.Value())
		} else {
			d.set(join(path, b.Key()), b.Value())
		}
	}
	for it := document.NewIter(before); len(rest) > 0 && it.Next(); { // in their order
		if _, gone := rest[string(it.Key())]; gone {
			delete(rest, string(it.Key()))
			d.remove(join(path, it.Key()))
		}
	}
	return true
}

// values tells two values of one path apart: lists by what is in them only where that is shorter than the new one.
func (d *description) values(path []byte, before, after bson.RawValue) {
	if before.Type == after.Type && bytes.Equal(before.Value, after.Value) {
		return
	}
	mark := *d
	told := false
	switch {
	case before.Type != after.Type:
	case after.Type == bson.TypeEmbeddedDocument:
		told = d.objects(path, before.Value, after.Value)
	case after.Type == bson.TypeArray:
		d.lists(path, before.Value, after.Value)
		told = d.size()-mark.size() <= len(path)+len(after.Value)
	}
	if !told {
		*d = mark
		d.set(path, after)
	}
}

func (d *description) size() int { return len(d.updated) + len(d.removed) + len(d.truncated) }

func (d *description) lists(path []byte, before, after []byte) {
	a, b := document.NewIter(before), document.NewIter(after)
	moreA, moreB, n := a.Next(), b.Next(), 0
	for ; moreA && moreB; moreA, moreB, n = a.Next(), b.Next(), n+1 {
		d.values(join(path, strconv.AppendInt(nil, int64(n), 10)), a.Value(), b.Value())
	}
	for ; moreB; moreB, n = b.Next(), n+1 {
		d.set(join(path, strconv.AppendInt(nil, int64(n), 10)), b.Value())
	}
	if moreA {
		d.truncate(path, n)
	}
}

func (d *description) set(path []byte, v bson.RawValue) {
	d.updated = document.AppendElement(d.updated, path, v)
}

func (d *description) remove(path []byte) {
	d.removed = document.AppendElement(d.removed, strconv.Itoa(d.removals), textValue(path))
	d.removals++
}

func (d *description) truncate(path []byte, size int) {
	one := document.AppendElement(make([]byte, 4, 32), "field", textValue(path))
	kind, n, _ := bson.MarshalValue(int32(size)) //nolint:gosec // a list has 16 MiB at most
	one = document.Close(document.AppendElement(one, "newSize", bson.RawValue{Type: kind, Value: n}), 0)
	d.truncated = document.AppendElement(d.truncated, strconv.Itoa(d.truncations), bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: one})
	d.truncations++
}

func textValue(s []byte) bson.RawValue {
	kind, text, _ := bson.MarshalValue(string(s)) // a string always encodes
	return bson.RawValue{Type: kind, Value: text}
}

func plainName(name []byte) bool { return len(name) > 0 && bytes.IndexByte(name, '.') < 0 }

func join(path, name []byte) []byte {
	if len(path) == 0 {
		return name
	}
	return bytes.Join([][]byte{path, name}, []byte{'.'})
}
