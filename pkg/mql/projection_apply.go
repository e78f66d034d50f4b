package mql

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Apply appends to dst what p leaves of doc, which f has matched, and gives the extended slice. It fails with
// errs.Invalid, code "projection_failed", where the position $ has no element. It does not allocate if dst has room,
// but for $elemMatch and $.
func (p *Projection) Apply(dst []byte, doc bson.Raw, f *Filter) ([]byte, error) {
	w := projecting{dst: dst, include: p.include}
	if p.position {
		w.at = f.positionAsGiven(doc)
	}
	start := w.open()
	w.fields(doc, p.root, nested{sliced: true, position: p.position})
	if w.err != nil {
		return dst, w.err
	}
	for _, last := range p.appends {
		if v, _ := document.Field(doc, last.name); v.Type == bson.TypeArray {
			w.elemMatch(last.name, v, last.elem)
		}
	}
	w.close(start)
	return w.dst, nil
}

// projecting writes one document.
type projecting struct {
	dst     []byte
	include bool
	at      string // the index that $ stands for, if there is one
	err     error
}

// nested is what still counts on the way down.
type nested struct {
	sliced   bool // $slice, which does not reach into lists that are elements of lists
	position bool // $, which is for the outermost list on its path
}

// open begins an object or a list; close ends it.
func (w *projecting) open() (start int) {
	w.dst = append(w.dst, 0, 0, 0, 0)
	return len(w.dst) - 4
}

func (w *projecting) close(start int) {
	w.dst = document.Close(w.dst, start)
}

func (w *projecting) name(t bson.Type, name []byte) {
	w.dst = append(w.dst, byte(t))
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, 0)
}

func (w *projecting) index(t bson.Type, i int64) {
	w.dst = append(w.dst, byte(t))
	w.dst = strconv.AppendInt(w.dst, i, 10)
	w.dst = append(w.dst, 0)
}

// fields writes what is left of an object's fields.
func (w *projecting) fields(doc []byte, parts partition, in nested) {
	for it := document.NewIter(doc); it.Next(); {
		v, part := it.Value(), parts.find(it.Key())
		switch {
		case part != nil && part.position && in.position && v.Type == bson.TypeArray:
			w.name(v.Type, it.Key())
			w.matched(v.Value, part, in)
		case part == nil:
			if !w.include {
				w.dst = document.AppendElement(w.dst, it.Key(), v)
			}
		case len(part.parts) > 0:
			if w.leaves(v) {
				w.name(v.Type, it.Key())
				w.inside(v, part.parts, nested{in.sliced, in.position && part.position})
			}
		case part.elem != nil:
			if v.Type == bson.TypeArray {
				w.elemMatch(part.name, v, part.elem)
			}
		case part.slice != nil && in.sliced && v.Type == bson.TypeArray:
			w.name(v.Type, it.Key())
			w.slice(v.Value, part.slice)
		case w.include || part.slice != nil:
			w.dst = document.AppendElement(w.dst, it.Key(), v)
		}
	}
}

// leaves says whether anything is left of a value of which paths below are named: of a scalar an inclusion leaves
// nothing.
func (w *projecting) leaves(v bson.RawValue) bool {
	return !w.include || v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray
}

// inside writes what is left of a value of which paths below are named.
func (w *projecting) inside(v bson.RawValue, parts partition, in nested) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		start := w.open()
		w.fields(v.Value, parts, in)
		w.close(start)
	case bson.TypeArray:
		w.elements(v.Value, parts, in)
	default:
		w.dst = append(w.dst, v.Value...)
	}
}

// elements does the same with each element of a list: a path leads into lists, and into lists in them.
func (w *projecting) elements(list []byte, parts partition, in nested) {
	start := w.open()
	n := int64(0)
	for it := document.NewIter(list); it.Next(); {
		v := it.Value()
		if !w.leaves(v) {
			continue
		}
		w.index(v.Type, n)
		w.inside(v, parts, nested{in.sliced && v.Type != bson.TypeArray, in.position})
		n++
	}
	w.close(start)
}

// matched writes the element of a list that the filter has matched, in a list of one.
func (w *projecting) matched(list []byte, p *part, in nested) {
	v, ok := document.Element(list, document.ListIndex(w.at))
	if !ok || len(p.parts) > 0 && !w.leaves(v) {
		w.err = coded(codeNoPosition, errs.New(errs.Invalid, "projection_failed",
			"projection: %s.$: the filter has matched no element of the list: it needs a condition on elements of it", p.name))
		return
	}
	start := w.open()
	w.index(v.Type, 0)
	if len(p.parts) > 0 {
		w.inside(v, p.parts, nested{in.sliced && v.Type != bson.TypeArray, false})
	} else {
		w.dst = append(w.dst, v.Value...)
	}
	w.close(start)
}

// slice writes a part of a list.
func (w *projecting) slice(list []byte, s *slice) {
	length := int64(0)
	for it := document.NewIter(list); it.Next(); {
		length++
	}
	from, to := s.bounds(length)
	start := w.open()
	i := int64(0)
	for it := document.NewIter(list); it.Next(); i++ {
		if from <= i && i < to {
			v := it.Value()
			w.index(v.Type, i-from)
			w.dst = append(w.dst, v.Value...)
		}
	}
	w.close(start)
}

// elemMatch writes the first element that matches as a list of one, or nothing.
func (w *projecting) elemMatch(name string, list bson.RawValue, p *ElemMatch) {
	for it := document.NewIter(list.Value); it.Next(); {
		v := it.Value()
		if !p.element(v) {
			continue
		}
		w.dst = append(w.dst, byte(bson.TypeArray))
		w.dst = append(append(w.dst, name...), 0)
		start := w.open()
		w.index(v.Type, 0)
		w.dst = append(w.dst, v.Value...)
		w.close(start)
		return
	}
}
