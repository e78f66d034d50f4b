package mql

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// What is asked of records by the names of their fields is asked of a store by what these are stored as. The methods called
// Stored translate; with nil names they give what they were called on.

// Stored is the filter by what fields are stored as.
func (f *Filter) Stored(names *document.Names) *Filter {
	if f == nil || names == nil {
		return f
	}
	return newFilter(storedNode(f.root, names))
}

func storedNode(n Node, names *document.Names) Node {
	if names == nil {
		return n
	}
	switch n := n.(type) {
	case *AndNode:
		return &AndNode{Nodes: storedNodes(n.Nodes, names)}
	case *OrNode:
		return &OrNode{Nodes: storedNodes(n.Nodes, names)}
	case *NorNode:
		return &NorNode{Nodes: storedNodes(n.Nodes, names)}
	case *Field:
		return newField(names.Path(n.Path), storedPreds(n.Preds, names.At(n.Path))...)
	default:
		return n
	}
}

func storedNodes(nodes []Node, names *document.Names) []Node {
	out := make([]Node, len(nodes))
	for i, n := range nodes {
		out[i] = storedNode(n, names)
	}
	return out
}

// storedPreds translates conditions on values that names are the names in.
func storedPreds(preds []Pred, names *document.Names) []Pred {
	if names == nil {
		return preds
	}
	out := make([]Pred, len(preds))
	for i, p := range preds {
		out[i] = storedPred(p, names)
	}
	return out
}

func storedPred(p Pred, names *document.Names) Pred {
	switch p := p.(type) {
	case *Cmp:
		return &Cmp{Op: p.Op, Value: names.Value(p.Value)}
	case *In:
		values := storedValues(p.Values, names)
		slices.SortFunc(values, document.Compare)
		return &In{Values: values, Regexes: p.Regexes}
	case *Not:
		return &Not{Preds: storedPreds(p.Preds, names)}
	case *All:
		return &All{Preds: storedPreds(p.Preds, names)}
	case *ElemMatch:
		return storedElemMatch(p, names)
	default:
		return p
	}
}

func storedElemMatch(p *ElemMatch, names *document.Names) *ElemMatch {
	switch {
	case p == nil || names == nil:
		return p
	case p.Node != nil:
		return &ElemMatch{Node: storedNode(p.Node, names)}
	default:
		return &ElemMatch{Preds: storedPreds(p.Preds, names)}
	}
}

func storedValues(values []bson.RawValue, names *document.Names) []bson.RawValue {
	out := make([]bson.RawValue, len(values))
	for i, v := range values {
		out[i] = names.Value(v)
	}
	return out
}

// Stored is the order by what fields are stored as.
func (s Sort) Stored(names *document.Names) Sort {
	if names == nil {
		return s
	}
	out := slices.Clone(s)
	for i := range out {
		out[i].Path = names.Path(out[i].Path)
	}
	return out
}

// Stored is the projection by what fields are stored as.
func (p *Projection) Stored(names *document.Names) *Projection {
	if p == nil || names == nil {
		return p
	}
	named := slices.Clone(p.named)
	for i, n := range named {
		named[i].path, named[i].elem = names.Path(n.path), storedElemMatch(n.elem, names.At(n.path))
	}
	return newProjection(named)
}

// Stored is the update by what fields are stored as. Its errors name fields as u does. A $rename between fields in which
// different fields were renamed, and an array filter of elements of which that is so, are errs.Invalid (code "bad_update").
func (u *Update) Stored(names *document.Names) (*Update, error) {
	if u == nil || names == nil {
		return u, nil
	}
	return compileUpdate(u.source, u.sourceFilters, names)
}

// ofElements gives the names for array filters: those of the elements that $[name] stands for, below that name.
func ofElements(update bson.D, names *document.Names) (*document.Names, error) {
	if names == nil {
		return nil, nil //nolint:nilnil // nil names are names, by the contract of document.Names
	}
	below := map[string]*document.Names{}
	for _, operator := range update {
		fields, _ := operator.Value.(bson.D)
		for _, f := range fields {
			segments := strings.Split(f.Key, ".")
			for i, segment := range segments {
				name, each := eachName(segment)
				if !each || name == "" {
					continue
				}
				at := names.At(strings.Join(segments[:i], "."))
				if other, is := below[name]; is && other != at {
					return nil, badUpdate("update: the array filter %q is of elements of two lists whose fields were renamed: use two filters", cut(name))
				}
				below[name] = at
			}
		}
	}
	return document.NewNames(nil, below), nil
}
