package mql

import (
	"encoding/binary"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// After is the filter for the documents that sort behind key, which Key made. It is exact for values of different
// types, for missing ones and for lists, in memory and on a server. Not exact are two fields of the sort inside the
// same list, paths with a list index in them, and fields that hold regular expressions or code.
//
// A document sorts behind k in a field if none of the values it has there sorts before or with k. Put so, it needs
// no element chosen from a list, and a server still finds index bounds in it.
func (s Sort) After(key []bson.RawValue) *Filter {
	if len(s) == 0 {
		return Or() // nothing is behind
	}
	var behind Node
	for i, f := range slices.Backward(s) {
		if s[:i].has(f.Path) { // equal whenever the earlier one is
			continue
		}
		past := none(f, key[i], true)
		if behind == nil {
			behind = past
			continue
		}
		// Not before k, and either past it or, being equal, decided by the fields that follow.
		behind = allOf([]Node{none(f, key[i], false), &OrNode{Nodes: []Node{past, behind}}})
	}
	return newFilter(behind)
}

func (s Sort) has(path string) bool {
	return slices.ContainsFunc(s, func(f SortField) bool { return f.Path == path })
}

// none holds where path has no value that sorts before k, or, with orEqual, equal to it.
func none(f SortField, k bson.RawValue, orEqual bool) Node {
	if k.Type == 0 {
		k.Type = bson.TypeNull
	}
	k.Value = slices.Clone(k.Value) // the filter may outlive the document that k is part of
	var nodes []Node
	others := &Type{} // refused whatever the value
	rank := document.TypeOrder(k.Type)
	for _, b := range brackets() {
		other := document.TypeOrder(b.types[0])
		switch {
		case other == rank:
			nodes = append(nodes, refuseWithin(f, b, k, orEqual)...)
		case (other < rank) == f.Desc:
		case b.shape:
			nodes = append(nodes, refuseShape(f.Path, b)...)
		case b.number:
			others.Number = true
		default:
			others.Types = append(others.Types, b.types...)
		}
	}
	if others.Number || len(others.Types) > 0 {
		nodes = append(nodes, refuse(f.Path, others))
	}
	return allOf(nodes)
}

// bracket is the types that compare with each other by value.
type bracket struct {
	types  []bson.Type
	whole  bool // values of it are not told apart
	number bool
	shape  bool // $type does not ask for what it means in a sort
}

// brackets is in the order of values.
func brackets() []bracket {
	one := func(t ...bson.Type) bracket { return bracket{types: t} }
	whole := func(t ...bson.Type) bracket { return bracket{types: t, whole: true} }
	return []bracket{
		whole(bson.TypeMinKey),
		{types: []bson.Type{bson.TypeUndefined}, whole: true, shape: true},
		{types: []bson.Type{bson.TypeNull}, whole: true, shape: true},
		{types: []bson.Type{bson.TypeInt32}, number: true},
		one(bson.TypeString, bson.TypeSymbol),
		one(bson.TypeEmbeddedDocument),
		{types: []bson.Type{bson.TypeArray}, shape: true},
		one(bson.TypeBinary),
		one(bson.TypeObjectID),
		one(bson.TypeBoolean),
		one(bson.TypeDateTime),
		one(bson.TypeTimestamp),
		whole(bson.TypeRegex),
		whole(bson.TypeDBPointer),
		whole(bson.TypeJavaScript),
		whole(bson.TypeCodeWithScope),
		whole(bson.TypeMaxKey),
	}
}

// refuseAll holds where path has no value of the bracket.
func refuseAll(path string, b bracket) []Node {
	if b.shape {
		return refuseShape(path, b)
	}
	return []Node{refuse(path, &Type{Types: b.types, Number: b.number})}
}

// refuseShape is refuseAll for what a sort sees in lists.
func refuseShape(path string, b bracket) []Node {
	switch b.types[0] {
	case bson.TypeUndefined: // the key of an empty list
		return []Node{refuse(path, &Size{N: 0}), refuse(path, &Type{Types: b.types})}
	case bson.TypeNull:
		return refuseNull(path)
	default:
		return []Node{refuse(path, &ElemMatch{Preds: []Pred{&Type{Types: b.types}}})}
	}
}

// refuseWithin holds where path has no value of k's own bracket that sorts before it, or with orEqual equal to it.
func refuseWithin(f SortField, b bracket, k bson.RawValue, orEqual bool) []Node {
	switch {
	case b.whole:
		if orEqual {
			return refuseAll(f.Path, b)
		}
		return nil
	case b.number:
		return refuseNumbers(f, k, orEqual)
	}
	p := Pred(comparison(f.Desc, orEqual, k))
	if k.Type == bson.TypeArray {
		p = &ElemMatch{Preds: []Pred{p}}
	}
	return []Node{refuse(f.Path, p)}
}

// refuseNumbers sees to NaN, which sorts before all numbers but which filters compare with itself only.
func refuseNumbers(f SortField, k bson.RawValue, orEqual bool) []Node {
	nan, lowest := float(math.NaN()), float(math.Inf(-1))
	equalsNaN := &Cmp{Op: Eq, Value: nan}
	switch {
	case !isNumber(k.Type):
		return nil
	case !isNaN(k) && !f.Desc:
		return []Node{refuse(f.Path, comparison(false, orEqual, k)), refuse(f.Path, equalsNaN)}
	case !isNaN(k):
		return []Node{refuse(f.Path, comparison(true, orEqual, k))}
	case !f.Desc && !orEqual:
		return nil
	case !f.Desc:
		return []Node{refuse(f.Path, equalsNaN)}
	case orEqual:
		return []Node{refuse(f.Path, &Type{Number: true})}
	default:
		return []Node{refuse(f.Path, &Cmp{Op: Gte, Value: lowest})}
	}
}

func comparison(desc, orEqual bool, k bson.RawValue) *Cmp {
	switch {
	case desc && orEqual:
		return &Cmp{Op: Gte, Value: k}
	case desc:
		return &Cmp{Op: Gt, Value: k}
	case orEqual:
		return &Cmp{Op: Lte, Value: k}
	default:
		return &Cmp{Op: Lt, Value: k}
	}
}

// refuseNull also sees to lists on the way that are empty or hold something other than objects: a sort takes null for
// what is not there, a filter passes by.
func refuseNull(path string) []Node {
	nodes := []Node{refuse(path, &Cmp{Op: Eq, Value: bson.RawValue{Type: bson.TypeNull}})}
	for i := range path {
		if path[i] != '.' {
			continue
		}
		prefix := path[:i]
		object := &Type{Types: []bson.Type{bson.TypeEmbeddedDocument}}
		nodes = append(nodes,
			refuse(prefix, &ElemMatch{Preds: []Pred{&Not{Preds: []Pred{object}}}}),
			refuse(prefix, &Size{N: 0}))
	}
	return nodes
}

func refuse(path string, p Pred) Node { return newField(path, &Not{Preds: []Pred{p}}) }

func float(f float64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}
