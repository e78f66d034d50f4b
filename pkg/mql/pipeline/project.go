package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// project is $project, $addFields and $unset.
type project struct {
	mode mode
	root *branch
}

// mode is what a projection does with the fields that it names, and with the others.
type mode uint8

const (
	including mode = iota // only what is named stays
	excluding             // what is named goes
	adding                // everything stays, what is named is computed
)

// branch is the named fields of an object.
type branch struct {
	fields   []*named // in the order in which they were first named
	at       map[string]int
	computed bool // there is an expression in it or below
}

// named is a field: a branch, an expression, or neither if it is just taken or left out.
type named struct {
	name  string
	below *branch
	value *expr.Expr
}

func (b *branch) find(name []byte) int {
	if len(b.fields) <= 8 {
		for i, f := range b.fields {
			if f.name == string(name) {
				return i
			}
		}
		return -1
	}
	if i, ok := b.at[string(name)]; ok {
		return i
	}
	return -1
}

func (s *project) open(r *run, next sink) sink { return &projecting{project: s, r: r, next: next} }

// projecting writes documents.
type projecting struct {
	*project
	r    *run
	next sink
	out  []byte
	done []bool // which fields of the branches that are open have been written in place
}

func (p *projecting) push(doc bson.Raw) error {
	p.r.env.Reset(doc)
	p.out, p.done = reuse(p.out), p.done[:0]
	if err := p.object(doc, p.root); err != nil {
		return err
	}
	return p.r.give(p.next, p.out)
}

func (p *projecting) end() error { return p.next.end() }

// object writes what becomes of an object.
func (p *projecting) object(doc []byte, b *branch) error {
	start, out := openDoc(p.out)
	p.out = out
	mark := len(p.done)
	for range b.fields {
		p.done = append(p.done, false)
	}
	for it := document.NewIter(doc); it.Next(); {
		i := b.find(it.Key())
		if i < 0 {
			if p.mode != including {
				p.out = document.AppendElement(p.out, it.Key(), it.Value())
			}
			continue
		}
		if err := p.present(b.fields[i], it.Value(), &p.done[mark+i]); err != nil {
			return err
		}
	}
	for i, f := range b.fields {
		if p.done[mark+i] {
			continue
		}
		if err := p.absent(f); err != nil {
			return err
		}
	}
	p.done = p.done[:mark]
	p.out = document.Close(p.out, start)
	return nil
}

// present writes a named field that is in the document. done is set if nothing of it is left to be written.
func (p *projecting) present(f *named, v bson.RawValue, done *bool) error {
	switch {
	case f.below != nil:
		*done = true
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return p.scalar(f, v)
		}
		p.out = appendName(p.out, v.Type, f.name)
		return p.inside(v, f.below)
	case f.value != nil:
		if p.mode == including { // computed fields come behind those that are taken
			return nil
		}
		*done = true
		return p.compute(f)
	case p.mode == including:
		p.out = document.AppendElement(p.out, f.name, v)
	}
	*done = true
	return nil
}

// scalar writes a field that was to have fields below: computed ones take its place.
func (p *projecting) scalar(f *named, v bson.RawValue) error {
	switch {
	case f.below.computed:
		p.out = appendName(p.out, bson.TypeEmbeddedDocument, f.name)
		return p.object(emptyDoc(), f.below)
	case p.mode != including:
		p.out = document.AppendElement(p.out, f.name, v)
	}
	return nil
}

// absent writes a named field that is not in the document.
func (p *projecting) absent(f *named) error {
	switch {
	case f.value != nil:
		return p.compute(f)
	case f.below != nil && f.below.computed:
		p.out = appendName(p.out, bson.TypeEmbeddedDocument, f.name)
		return p.object(emptyDoc(), f.below)
	}
	return nil
}

func (p *projecting) compute(f *named) error {
	v, err := f.value.Eval(p.r.env)
	if err != nil {
		return err
	}
	if v.Type != 0 {
		p.out = document.AppendElement(p.out, f.name, v)
	}
	return nil
}

// inside writes an object, or a list of which each element is treated so.
func (p *projecting) inside(v bson.RawValue, b *branch) error {
	if v.Type == bson.TypeEmbeddedDocument {
		return p.object(v.Value, b)
	}
	start, out := openDoc(p.out)
	p.out = out
	i := 0
	for it := document.NewIter(v.Value); it.Next(); {
		v := it.Value()
		switch {
		case v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray:
		case b.computed:
			v = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: emptyDoc()}
		case p.mode == including:
			continue
		default:
			p.out = append(appendIndex(p.out, v.Type, i), v.Value...)
			i++
			continue
		}
		p.out = appendIndex(p.out, v.Type, i)
		i++
		if err := p.inside(v, b); err != nil {
			return err
		}
	}
	p.out = document.Close(p.out, start)
	return nil
}

func emptyDoc() []byte { return []byte{5, 0, 0, 0, 0} }
