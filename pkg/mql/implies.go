package mql

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Implies says whether g matches whatever f does. True is proven; false may only mean that no proof was found. It
// finds those for what a partial index may have as g (see CheckPartial), and where g says what f says. A nil filter
// matches everything.
func Implies(f, g *Filter) bool { return implies(f.Root(), g.Root()) }

func implies(f, g Node) bool {
	if and, ok := g.(*AndNode); ok {
		return every(and.Nodes, func(child Node) bool { return implies(f, child) })
	}
	if or, ok := f.(*OrNode); ok {
		return every(or.Nodes, func(branch Node) bool { return implies(branch, g) })
	}
	if or, ok := g.(*OrNode); ok && slices.ContainsFunc(or.Nodes, func(branch Node) bool { return implies(f, branch) }) {
		return true
	}
	switch f := f.(type) {
	case *AndNode:
		return slices.ContainsFunc(f.Nodes, func(child Node) bool { return implies(child, g) })
	case *Field:
		return f.implies(g)
	default:
		return bytes.Equal(encodeNode(f), encodeNode(g))
	}
}

func every[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !holds(item) })
}

func (f *Field) implies(g Node) bool {
	switch g := g.(type) {
	case *Field:
		return f.Path == g.Path && every(g.Preds, func(q Pred) bool {
			return slices.ContainsFunc(f.Preds, func(p Pred) bool { return predImplies(p, q, f.segments) })
		})
	case *OrNode: // {a: {$in: [1, 2]}} is {$or: [{a: 1}, {a: 2}]}
		return slices.ContainsFunc(f.Preds, func(p Pred) bool {
			in, ok := p.(*In)
			return ok && len(in.Regexes) == 0 && every(in.Values, func(v bson.RawValue) bool {
				equal := &Field{Path: f.Path, Preds: []Pred{&Cmp{Op: Eq, Value: v}}, segments: f.segments}
				return implies(equal, g)
			})
		})
	default:
		return false
	}
}

// predImplies proves that where p holds for a path, q does.
func predImplies(p, q Pred, path []segment) bool {
	if samePred(p, q) {
		return true
	}
	single := len(path) == 1 // then a value that is missing is always looked at
	switch p := p.(type) {
	case *All:
		return len(p.Preds) == 0 || slices.ContainsFunc(p.Preds, func(child Pred) bool { return predImplies(child, q, path) })
	case *Not: // {$ne: null} says that there is something
		exists, ok := q.(*Exists)
		return ok && exists.Want && single && len(p.Preds) == 1 && p.Preds[0].one(bson.RawValue{})
	case *Exists:
		if !p.Want {
			return single && isPointwise(q) && q.one(bson.RawValue{})
		}
	case *ElemMatch:
		// An element that a name of the path picks is not looked into by other operators.
		byName := !slices.ContainsFunc(path, func(s segment) bool { return s.index >= 0 })
		if byName && slices.ContainsFunc(p.Preds, func(child Pred) bool { return valueImplies(child, q) }) {
			return true
		}
	}
	return valueImplies(p, q)
}

func samePred(p, q Pred) bool {
	a, b := encodePred(p), encodePred(q)
	return a.name == b.name && a.value.Type == b.value.Type && bytes.Equal(a.value.Value, b.value.Value)
}

// isPointwise is true for what holds for a path if it holds for one of the values there, elements of a list at its end
// being among them.
func isPointwise(p Pred) bool {
	switch p.(type) {
	case *Cmp, *In, *Type, *Mod, *Regex:
		return true
	default:
		return false
	}
}

// valueImplies proves that q holds for each value that p holds for. It is enough for the path as a whole, as a value
// of which p holds is among those that q is asked about.
func valueImplies(p, q Pred) bool {
	if exists, ok := q.(*Exists); ok {
		return exists.Want && !mayHold(p, 0)
	}
	if !isPointwise(q) {
		return false
	}
	switch p := p.(type) {
	case *Cmp:
		return cmpImplies(p, q)
	case *In:
		return every(p.Values, func(v bson.RawValue) bool { return equalImplies(v, q) }) &&
			every(p.Regexes, func(re *Regex) bool { return kindsImply(re, q) })
	default:
		return kindsImply(p, q)
	}
}

// equalImplies is for whatever is equal to v: numbers of all types, and what $eq takes for a null.
func equalImplies(v bson.RawValue, q Pred) bool {
	if v.Type == bson.TypeNull {
		return q.one(v) && q.one(bson.RawValue{}) && q.one(bson.RawValue{Type: bson.TypeUndefined})
	}
	if _, ok := q.(*Type); ok {
		return kindsImply(&Cmp{Op: Eq, Value: v}, q)
	}
	return q.one(v)
}

func cmpImplies(p *Cmp, q Pred) bool {
	if p.Op == Eq || p.Op != Gt && p.Op != Lt && (p.Value.Type == bson.TypeNull || isNaN(p.Value)) {
		return equalImplies(p.Value, q)
	}
	within, ok := q.(*Cmp)
	if !ok || document.TypeOrder(p.Value.Type) != document.TypeOrder(within.Value.Type) || isEnd(p.Value) {
		return kindsImply(p, q)
	}
	if isNaN(p.Value) || isNaN(within.Value) {
		return false
	}
	order := document.Compare(p.Value, within.Value)
	switch within.Op {
	case Gt:
		return p.Op == Gt && order >= 0 || p.Op == Gte && order > 0
	case Gte:
		return (p.Op == Gt || p.Op == Gte) && order >= 0
	case Lt:
		return p.Op == Lt && order <= 0 || p.Op == Lte && order < 0
	case Lte:
		return (p.Op == Lt || p.Op == Lte) && order <= 0
	default:
		return false
	}
}

// isEnd is true for MinKey and MaxKey, with which everything compares.
func isEnd(v bson.RawValue) bool { return v.Type == bson.TypeMinKey || v.Type == bson.TypeMaxKey }

// kindsImply proves it by types alone: whatever type p may hold for, q holds for each value of it.
func kindsImply(p, q Pred) bool {
	return every(allTypes(), func(t bson.Type) bool { return !mayHold(p, t) || mustHold(q, t) })
}

// allTypes begins with that of a missing value.
func allTypes() []bson.Type {
	types := []bson.Type{0, bson.TypeMinKey, bson.TypeMaxKey}
	for t := bson.TypeDouble; t <= bson.TypeDecimal128; t++ {
		types = append(types, t)
	}
	return types
}

// mayHold is false only if p never holds for a value of type t.
func mayHold(p Pred, t bson.Type) bool {
	switch p := p.(type) {
	case *Cmp:
		return document.TypeOrder(p.Value.Type) == document.TypeOrder(t) || p.otherKind(bson.RawValue{Type: t})
	case *In:
		return slices.ContainsFunc(p.Values, func(v bson.RawValue) bool { return mayHold(&Cmp{Op: Eq, Value: v}, t) }) ||
			slices.ContainsFunc(p.Regexes, func(re *Regex) bool { return mayHold(re, t) })
	case *Type:
		return p.one(bson.RawValue{Type: t})
	case *All:
		return every(p.Preds, func(child Pred) bool { return mayHold(child, t) }) && len(p.Preds) > 0
	case *Exists:
		return p.one(bson.RawValue{Type: t})
	case *ElemMatch, *Size:
		return t == bson.TypeArray
	case *Mod:
		return isNumber(t)
	case *Regex:
		return t == bson.TypeString || t == bson.TypeSymbol || t == bson.TypeRegex
	default:
		return true
	}
}

// mustHold is true only if p holds for every value of type t.
func mustHold(p Pred, t bson.Type) bool {
	switch p := p.(type) {
	case *Cmp:
		return p.otherKind(bson.RawValue{Type: t}) && document.TypeOrder(p.Value.Type) != document.TypeOrder(t) ||
			isEnd(p.Value) && p.Value.Type == t && p.Op != Gt && p.Op != Lt
	case *Type:
		return p.one(bson.RawValue{Type: t})
	default:
		return false
	}
}

// maxPartialDepth is that of a MongoDB server.
const maxPartialDepth = 4

// CheckPartial refuses what a partial index can't have for its filter in MongoDB 6.0. It takes $eq, $gt, $gte, $lt,
// $lte, $in, $type, $exists: true, $and and $or, the latter two up to four levels deep; the rest is errs.Invalid with
// code "bad_partial_filter". So are regular expressions in $in, which MongoDB takes. A nil filter is none, and fine.
func CheckPartial(f *Filter) error { return checkPartial(f.Root(), 1) }

func badPartial(format string, args ...any) error {
	return errs.New(errs.Invalid, "bad_partial_filter", format, args...)
}

func checkPartial(n Node, depth int) error {
	if depth > maxPartialDepth {
		return badPartial("a partial filter can't be nested deeper than %d levels", maxPartialDepth)
	}
	var nodes []Node
	switch n := n.(type) {
	case *AndNode:
		nodes = n.Nodes
	case *OrNode:
		nodes = n.Nodes
	case *Field:
		return checkPartialField(n, depth)
	default:
		return badPartial("a partial filter can't have $nor")
	}
	for _, child := range nodes {
		inAnd := 0
		if f, ok := child.(*Field); ok && len(f.Preds) > 1 && isAnd(n) {
			inAnd = 1 // its conditions are further ones of the $and
		}
		if err := checkPartial(child, depth+1-inAnd); err != nil {
			return err
		}
	}
	return nil
}

func isAnd(n Node) bool {
	_, ok := n.(*AndNode)
	return ok
}

// checkPartialField counts several conditions on a path as the $and that they are.
func checkPartialField(f *Field, depth int) error {
	if len(f.Preds) > 1 && depth == maxPartialDepth {
		return badPartial("a partial filter can't be nested deeper than %d levels", maxPartialDepth)
	}
	for _, p := range f.Preds {
		switch p := p.(type) {
		case *Cmp, *Type:
			continue
		case *In:
			// As a server is sent it, it could not be read again: the filter of an index is stored.
			if len(p.Regexes) == 0 {
				continue
			}
			return badPartial("%s: the $in of a partial filter can't have regular expressions", f.Path)
		case *Exists:
			if p.Want {
				continue
			}
		}
		return badPartial("%s: a partial filter can have $eq, $gt, $gte, $lt, $lte, $in, $type, $exists: true, $and and $or only",
			f.Path)
	}
	return nil
}
