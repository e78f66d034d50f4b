package mql

import (
	"cmp"
	"slices"
)

// shape is what a MongoDB server sorts conditions by: their kind, their path, and then the conditions in them. Their
// constants do not count.
type shape struct {
	rank int
	path string
	kids []shape
}

// The order of kinds. Negations have none as long as rankOf is asked, for they never decide what $ is.
const (
	rankAnd = iota + 1
	rankOr
	rankElemMatchObject
	rankElemMatchValue
	rankSize
	rankEq
	rankLte
	rankLt
	rankGt
	rankGte
	rankRegex
	rankMod
	rankExists
	rankIn
	rankNot
	rankNor
	rankType
)

func compareShapes(a, b shape) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path), slices.CompareFunc(a.kids, b.kids, compareShapes))
}

func shapeOf(path string, p Pred) shape {
	switch p := p.(type) {
	case *ElemMatch:
		if p.Node != nil {
			return shape{rankElemMatchObject, path, []shape{shapeOfNode(p.Node)}}
		}
		return shape{rankElemMatchValue, path, shapesOf("", p.Preds)}
	case *All:
		return joined(shapesOf(path, p.Preds))
	case *Not:
		return shape{rankNot, "", []shape{joined(shapesOf(path, p.Preds))}}
	case *Exists:
		if !p.Want {
			return shape{rankNot, "", []shape{{rank: rankExists, path: path}}}
		}
	}
	return shape{rank: rankOf(p), path: path}
}

// shapesOf is sorted.
func shapesOf(path string, preds []Pred) []shape {
	shapes := make([]shape, 0, len(preds))
	for _, p := range preds {
		if s := shapeOf(path, p); s.rank == rankAnd {
			shapes = append(shapes, s.kids...)
		} else {
			shapes = append(shapes, s)
		}
	}
	slices.SortStableFunc(shapes, compareShapes)
	return shapes
}

func joined(shapes []shape) shape {
	if len(shapes) == 1 {
		return shapes[0]
	}
	return shape{rank: rankAnd, kids: shapes}
}

func shapeOfNode(n Node) shape {
	switch n := n.(type) {
	case *AndNode:
		var shapes []shape
		for _, child := range n.Nodes {
			if s := shapeOfNode(child); s.rank == rankAnd {
				shapes = append(shapes, s.kids...)
			} else {
				shapes = append(shapes, s)
			}
		}
		slices.SortStableFunc(shapes, compareShapes)
		return joined(shapes)
	case *OrNode:
		if in := decidersOfOr(n).list; len(in) == 1 && len(possible(n)) > 1 {
			return in[0].shape
		}
		branches := shapesOfNodes(possible(n))
		if len(branches) == 1 {
			return branches[0]
		}
		return shape{rank: rankOr, kids: branches}
	case *NorNode:
		return shape{rank: rankNor, kids: shapesOfNodes(n.Nodes)}
	case *Field:
		return joined(shapesOf(n.Path, n.Preds))
	default:
		return shape{}
	}
}

func shapesOfNodes(nodes []Node) []shape {
	shapes := make([]shape, len(nodes))
	for i, n := range nodes {
		shapes[i] = shapeOfNode(n)
	}
	slices.SortStableFunc(shapes, compareShapes)
	return shapes
}
