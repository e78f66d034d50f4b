package mql

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Replacement gives what holds in place of a condition on a path, or nil to keep it. around is the path of the list whose
// element is looked at inside an $elemMatch, else ""; path, and those of the result, go on from there.
type Replacement func(around, path string, p Pred) (*Filter, error)

// Replace copies a filter with other conditions in the place of some. fn sees each condition on a path; those of a $not or
// an $all come one by one. An $elemMatch comes first as a whole, and if it is kept, what is inside it comes, too.
func (f *Filter) Replace(fn Replacement) (*Filter, error) {
	if f == nil {
		return nil, nil //nolint:nilnil // a nil filter holds everywhere, by the contract of the package
	}
	root, err := fn.node(f.root, "")
	if err != nil {
		return nil, err
	}
	return newFilter(root), nil
}

func (fn Replacement) node(n Node, around string) (Node, error) {
	switch n := n.(type) {
	case *AndNode:
		nodes, err := fn.nodes(n.Nodes, around)
		return allOf(nodes), err
	case *OrNode:
		nodes, err := fn.nodes(n.Nodes, around)
		return &OrNode{Nodes: nodes}, err
	case *NorNode:
		nodes, err := fn.nodes(n.Nodes, around)
		return &NorNode{Nodes: nodes}, err
	case *Field:
		nodes, _, err := fn.preds(n.Preds, around, n.Path)
		return allOf(nodes), err
	default:
		return n, nil
	}
}

func (fn Replacement) nodes(list []Node, around string) ([]Node, error) {
	out := make([]Node, len(list))
	for i, n := range list {
		var err error
		if out[i], err = fn.node(n, around); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// preds gives what holds in place of the conditions on a path, and says whether any is a replacement.
func (fn Replacement) preds(list []Pred, around, path string) (nodes []Node, replaced bool, err error) {
	for _, p := range list {
		n, other, err := fn.pred(p, around, path)
		if err != nil {
			return nil, false, err
		}
		nodes, replaced = append(nodes, n), replaced || other
	}
	return nodes, replaced, nil
}

func (fn Replacement) pred(p Pred, around, path string) (n Node, replaced bool, err error) {
	switch p := p.(type) {
	case *Not: // holds where not all do
		nodes, replaced, err := fn.preds(p.Preds, around, path)
		if !replaced {
			return newField(path, &Not{Preds: predsOf(nodes)}), false, err
		}
		return &NorNode{Nodes: []Node{allOf(nodes)}}, true, err
	case *All:
		nodes, replaced, err := fn.preds(p.Preds, around, path)
		if !replaced {
			return newField(path, &All{Preds: predsOf(nodes)}), false, err
		}
		return allOf(nodes), true, err
	}
	other, err := fn(around, path, p)
	if other != nil || err != nil {
		return other.Root(), true, err
	}
	if em, ok := p.(*ElemMatch); ok {
		p, err = fn.elemMatch(em, join(around, path))
	}
	return newField(path, p), false, err
}

// predsOf is the conditions of fields with one condition each.
func predsOf(nodes []Node) []Pred {
	out := make([]Pred, 0, len(nodes))
	for _, n := range nodes {
		if f, ok := n.(*Field); ok {
			out = append(out, f.Preds...)
		}
	}
	return out
}

func (fn Replacement) elemMatch(p *ElemMatch, path string) (Pred, error) {
	if p.Node != nil {
		n, err := fn.node(p.Node, path)
		return &ElemMatch{Node: n}, err
	}
	preds, err := fn.ofElements(p.Preds, path)
	return &ElemMatch{Preds: preds}, err
}

// ofElements looks inside conditions on the elements of a list, which are on no path themselves.
func (fn Replacement) ofElements(list []Pred, path string) ([]Pred, error) {
	out := slices.Clone(list)
	for i, p := range list {
		var err error
		switch p := p.(type) {
		case *ElemMatch:
			out[i], err = fn.elemMatch(p, path)
		case *Not:
			var inner []Pred
			inner, err = fn.ofElements(p.Preds, path)
			out[i] = &Not{Preds: inner}
		case *All:
			var inner []Pred
			inner, err = fn.ofElements(p.Preds, path)
			out[i] = &All{Preds: inner}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Of is the filter of a condition that is part of another filter.
func Of(n Node) *Filter { return newFilter(n) }

// On is the filter of one condition on a path.
func On(path string, p Pred) *Filter { return newFilter(newField(path, p)) }

// OneOf holds where path has one of values. It takes the list over.
func OneOf(path string, values []bson.RawValue) *Filter {
	slices.SortFunc(values, document.Compare)
	values = slices.CompactFunc(values, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 })
	return On(path, &In{Values: values})
}

// Negate holds where f does not.
func Negate(f *Filter) *Filter { return newFilter(&NorNode{Nodes: []Node{f.Root()}}) }
