package mql

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// condition is one predicate that all of a filter depends on.
type condition struct {
	shape
	field *Field
	pred  Pred
}

// position gives the name (the index) of the list element that f has matched in doc, "" if there is none: that of the
// last condition that an element satisfies. Applying tells which is the last.
func (f *Filter) position(doc []byte) string {
	if f == nil {
		return ""
	}
	conditions := conditionsOf(nil, f.root)
	slices.SortStableFunc(conditions, func(a, b condition) int { return compareShapes(a.shape, b.shape) })
	for _, c := range slices.Backward(conditions) {
		w := locator{pred: c.pred, spread: spreads(c.pred)}
		if at, ok := w.walk(doc, c.field.segments); ok && at >= 0 {
			return strconv.Itoa(at)
		}
	}
	return ""
}

// conditionsOf collects what holds wherever n does, but for negations.
func conditionsOf(dst []condition, n Node) []condition {
	switch n := n.(type) {
	case *AndNode:
		for _, child := range n.Nodes {
			dst = conditionsOf(dst, child)
		}
	case *OrNode:
		return conditionsOfOr(dst, n)
	case *Field:
		for _, p := range n.Preds {
			dst = appendCondition(dst, n, p)
		}
	}
	return dst
}

func appendCondition(dst []condition, f *Field, p Pred) []condition {
	if all, ok := p.(*All); ok {
		for _, child := range all.Preds {
			dst = appendCondition(dst, f, child)
		}
		return dst
	}
	if rankOf(p) > 0 {
		dst = append(dst, condition{shapeOf(f.Path, p), f, p})
	}
	return dst
}

// conditionsOfOr takes an $or that stands for something else: of one branch for the branch, of equalities and regular
// expressions on one path for an $in.
func conditionsOfOr(dst []condition, n *OrNode) []condition {
	branches := possible(n)
	if len(branches) == 1 {
		return conditionsOf(dst, branches[0])
	}
	in := &In{}
	var field *Field
	for _, child := range branches {
		branch := conditionsOf(nil, child)
		if len(branch) != 1 || negates(child) || field != nil && branch[0].field.Path != field.Path {
			return dst
		}
		field = branch[0].field
		switch p := branch[0].pred.(type) {
		case *Cmp:
			if p.Op != Eq || p.Value.Type == bson.TypeRegex {
				return dst
			}
			in.Values = append(in.Values, p.Value)
		case *Regex:
			in.Regexes = append(in.Regexes, p)
		case *In:
			if rankOf(p) == rankIn {
				return dst
			}
			in.Values = append(in.Values, p.Values...)
			in.Regexes = append(in.Regexes, p.Regexes...)
		default:
			return dst
		}
	}
	slices.SortStableFunc(in.Values, document.Compare)
	return append(dst, condition{shapeOf(field.Path, in), field, in})
}

// negates says whether there is something in n that conditionsOf leaves out.
func negates(n Node) bool {
	switch n := n.(type) {
	case *AndNode:
		return slices.ContainsFunc(n.Nodes, negates)
	case *OrNode:
		branches := possible(n)
		return len(branches) != 1 || negates(branches[0])
	case *Field:
		return slices.ContainsFunc(n.Preds, func(p Pred) bool {
			_, isAll := p.(*All)
			return !isAll && rankOf(p) == 0
		})
	default:
		return true
	}
}

// rankOf is the place of p in the order of kinds; 0 for negations.
func rankOf(p Pred) int {
	switch p := p.(type) {
	case *ElemMatch:
		if p.Node != nil {
			return rankElemMatchObject
		}
		return rankElemMatchValue
	case *Size:
		return rankSize
	case *Cmp:
		return [...]int{Eq: rankEq, Lte: rankLte, Lt: rankLt, Gt: rankGt, Gte: rankGte}[p.Op]
	case *Regex:
		return rankRegex
	case *Mod:
		return rankMod
	case *Exists:
		if p.Want {
			return rankExists
		}
	case *In:
		switch {
		case len(p.Values) == 1 && len(p.Regexes) == 0:
			return rankEq
		case len(p.Values) == 0 && len(p.Regexes) == 1:
			return rankRegex
		default:
			return rankIn
		}
	case *Type:
		return rankType
	}
	return 0
}

// spreads says whether p is offered the elements of a list at the end of its path.
func spreads(p Pred) bool {
	switch p.(type) {
	case *ElemMatch, *Size:
		return false
	default:
		return true
	}
}

// locator does what walk in match.go does, and finds the index of the element that satisfied pred in the outermost
// list that was gone through; -1 if there was none.
type locator struct {
	pred   Pred
	spread bool
}

func (w *locator) walk(doc []byte, path []segment) (at int, ok bool) {
	v := field(doc, path[0].name)
	if len(path) == 1 {
		return w.leaf(v)
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return w.walk(v.Value, path[1:])
	case bson.TypeArray:
		return w.list(v.Value, path[1:])
	default:
		return -1, w.pred.one(bson.RawValue{})
	}
}

func (w *locator) list(list []byte, path []segment) (at int, ok bool) {
	it := document.NewIter(list)
	for i := 0; it.Next(); i++ {
		v := it.Value()
		if v.Type == bson.TypeEmbeddedDocument {
			if _, ok := w.walk(v.Value, path); ok {
				return i, true
			}
		}
		if path[0].index != i {
			continue
		}
		at, ok = -1, false
		switch {
		case len(path) == 1:
			at, ok = w.whole(v)
		case v.Type == bson.TypeEmbeddedDocument:
			at, ok = w.walk(v.Value, path[1:])
		case v.Type == bson.TypeArray:
			at, ok = w.list(v.Value, path[1:])
		}
		if ok {
			return at, true
		}
	}
	return -1, false
}

func (w *locator) leaf(v bson.RawValue) (at int, ok bool) {
	if w.spread && v.Type == bson.TypeArray {
		it := document.NewIter(v.Value)
		for i := 0; it.Next(); i++ {
			if w.pred.one(it.Value()) {
				return i, true
			}
		}
	}
	return w.whole(v)
}

// whole offers a value as it is. An $elemMatch finds its element in it.
func (w *locator) whole(v bson.RawValue) (at int, ok bool) {
	p, isElemMatch := w.pred.(*ElemMatch)
	if !isElemMatch || v.Type != bson.TypeArray {
		return -1, w.pred.one(v)
	}
	it := document.NewIter(v.Value)
	for i := 0; it.Next(); i++ {
		if p.element(it.Value()) {
			return i, true
		}
	}
	return -1, false
}
