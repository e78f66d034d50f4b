package mql

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// decider is one predicate that all of a filter depends on, so that it may decide what $ is.
type decider struct {
	shape
	field *Field
	pred  Pred
}

// deciders is what has to hold together: the deciders among it, in a MongoDB server's order before it sorts them.
type deciders struct {
	list  []decider
	count int // of expressions, negations included; what has several is moved behind what stands beside it
}

// position gives the name (the index) of the list element that f has matched in doc, "" if there is none: that of the
// last condition that an element satisfies. Applying tells which is the last.
func (f *Filter) position(doc []byte) string {
	if f == nil {
		return ""
	}
	all := decidersOf(f.root).list
	slices.SortStableFunc(all, func(a, b decider) int { return compareShapes(a.shape, b.shape) })
	return lastElement(doc, all)
}

// positionAsGiven is position for a projection, for which the conditions are not sorted first: the last one in the
// filter counts.
func (f *Filter) positionAsGiven(doc []byte) string {
	if f == nil {
		return ""
	}
	return lastElement(doc, decidersOf(f.root).list)
}

func lastElement(doc []byte, all []decider) string {
	for _, c := range slices.Backward(all) {
		w := locator{pred: c.pred, spread: spreads(c.pred)}
		if at, ok := w.walk(doc, c.field.segments); ok && at >= 0 {
			return strconv.Itoa(at)
		}
	}
	return ""
}

// decidersOf reads n as a server reads what encodeNode makes of it: as one object, or where a name comes twice, as an
// $and of objects with one member each.
func decidersOf(n Node) deciders {
	members := membersOf(nil, n)
	var names []clause
	for _, m := range members {
		names = append(names, clause{name: m.name})
	}
	twice := repeats(names)
	var parts []deciders
	for _, m := range members {
		if twice {
			parts = append(parts, together(m.parts))
		} else {
			parts = append(parts, m.parts...)
		}
	}
	return together(parts)
}

// together joins parts: those of one expression, and then those of several.
func together(parts []deciders) deciders {
	var all deciders
	for _, several := range []bool{false, true} {
		for _, part := range parts {
			if (part.count > 1) == several {
				all.list = append(all.list, part.list...)
				all.count += part.count
			}
		}
	}
	return all
}

// filterMember is one member of an encoded filter.
type filterMember struct {
	name  string
	parts []deciders
}

func membersOf(dst []filterMember, n Node) []filterMember {
	switch n := n.(type) {
	case *AndNode:
		for _, child := range n.Nodes {
			dst = membersOf(dst, child)
		}
		return dst
	case *OrNode:
		return append(dst, filterMember{"$or", []deciders{decidersOfOr(n)}})
	case *Field:
		return membersOfField(dst, n)
	default:
		return append(dst, filterMember{"$nor", []deciders{{count: 1}}})
	}
}

// membersOfField splits as encodeField does.
func membersOfField(dst []filterMember, f *Field) []filterMember {
	var ops []clause
	member := filterMember{name: f.Path}
	for _, p := range f.Preds {
		op := encodePred(p)
		if repeats(append(slices.Clip(ops), op)) {
			dst = append(dst, member)
			member, ops = filterMember{name: f.Path}, nil
		}
		ops = append(ops, op)
		member.parts = append(member.parts, decidersOfPred(f, p))
	}
	return append(dst, member)
}

func decidersOfPred(f *Field, p Pred) deciders {
	if all, ok := p.(*All); ok {
		var parts []deciders
		for _, child := range all.Preds {
			parts = append(parts, decidersOfPred(f, child))
		}
		return together(parts)
	}
	c := deciders{count: 1}
	if rankOf(p) > 0 {
		c.list = []decider{{shapeOf(f.Path, p), f, p}}
	}
	return c
}

// decidersOfOr takes an $or that stands for something else: of one branch for the branch, of equalities and regular
// expressions on one path for an $in.
func decidersOfOr(n *OrNode) deciders {
	none := deciders{count: 1}
	branches := possible(n)
	if len(branches) == 1 {
		return decidersOf(branches[0])
	}
	in := &In{}
	var field *Field
	for _, child := range branches {
		branch := decidersOf(child)
		if branch.count != 1 || len(branch.list) != 1 || field != nil && branch.list[0].field.Path != field.Path {
			return none
		}
		field = branch.list[0].field
		switch p := branch.list[0].pred.(type) {
		case *Cmp:
			if p.Op != Eq || p.Value.Type == bson.TypeRegex {
				return none
			}
			in.Values = append(in.Values, p.Value)
		case *Regex:
			in.Regexes = append(in.Regexes, p)
		case *In:
			if rankOf(p) == rankIn {
				return none
			}
			in.Values = append(in.Values, p.Values...)
			in.Regexes = append(in.Regexes, p.Regexes...)
		default:
			return none
		}
	}
	if field == nil {
		return none
	}
	slices.SortStableFunc(in.Values, document.Compare)
	return deciders{[]decider{{shapeOf(field.Path, in), field, in}}, 1}
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
	v, _ := document.Field(doc, path[0].name)
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
