package mql

import (
	"regexp"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Node is a condition on a whole document: *AndNode, *OrNode, *NorNode or *Field. Nodes are immutable.
type Node interface {
	match(doc []byte) bool
}

// AndNode holds if all of Nodes do; with none it always holds. Compile never nests one in another.
type AndNode struct{ Nodes []Node }

// OrNode holds if one of Nodes does.
type OrNode struct{ Nodes []Node }

// NorNode holds if none of Nodes does.
type NorNode struct{ Nodes []Node }

// Field is conditions on the values that a path leads to. Each of Preds has to hold by itself: on a list, different
// elements may satisfy them.
type Field struct {
	Path  string // dotted
	Preds []Pred // at least one

	segments []segment
}

// segment is one name of a dotted path.
type segment struct {
	name  string
	index int // the name read as a list index, or -1
}

// Pred is a condition on the values of a path: *Cmp, *In, *Not, *Exists, *Type, *All, *ElemMatch, *Size, *Mod or
// *Regex. Preds are immutable.
type Pred interface {
	// holds decides for the path from doc on.
	holds(doc []byte, path []segment) bool
	// one decides for a single value, an element of $elemMatch for example. The zero RawValue is a missing one.
	one(v bson.RawValue) bool
}

// Op is a comparison.
type Op uint8

// The comparisons. There is none for $ne: it is a *Not of an Eq.
const (
	Eq Op = iota
	Gt
	Gte
	Lt
	Lte
)

// String is the operator as filters spell it.
func (o Op) String() string { return [...]string{"$eq", "$gt", "$gte", "$lt", "$lte"}[o] }

// Cmp holds for a value that compares so with Value. But for MinKey and MaxKey, only values of the same kind compare
// (all numbers are one kind, a missing value is a null).
type Cmp struct {
	Op    Op
	Value bson.RawValue
}

// In holds for a value that equals one of Values or matches one of Regexes. $nin is a *Not of it.
type In struct {
	Values  []bson.RawValue // sorted by document.Compare, none twice; empty matches nothing
	Regexes []*Regex
}

// Not holds where not all of Preds do; it also stands for $ne and $nin.
type Not struct{ Preds []Pred }

// Exists holds if the path leads to a value (null counts), or with Want false if it does not.
type Exists struct{ Want bool }

// Type holds for a value of one of Types.
type Type struct {
	Types  []bson.Type
	Number bool // the alias "number": every numeric type
}

// All holds if each of Preds does (*Cmp with Eq, *Regex or *ElemMatch). With none it holds for nothing.
type All struct{ Preds []Pred }

// ElemMatch holds for a list with an element that satisfies everything in it.
type ElemMatch struct {
	Node  Node   // conditions on elements that are objects; nil if Preds is set
	Preds []Pred // conditions on elements themselves
}

// Size holds for a list of N elements.
type Size struct{ N int64 }

// Mod holds for a number that leaves Remainder when its integer part is divided by Divisor.
type Mod struct{ Divisor, Remainder int64 }

// Regex holds for a text that Pattern matches, and for the same regular expression as a value.
type Regex struct {
	Pattern string // RE2, as given
	Options string // of "ims", sorted

	re  *regexp.Regexp
	raw string // what MongoDB is sent, without options: PCRE of the same meaning

	states int // of re, see pattern.Pattern
}
