package mql

import (
	"cmp"
	"slices"
	"strings"
)

// updateNode is what an update does with one value. At the end of a path it has op and nothing else; a node for the
// fields of an object (or elements of a list by index) has kids or at; one for the elements of a list has each.
type updateNode struct {
	op   *updateOp
	kids []updateKid  // sorted by before
	at   *updateNode  // where the position $ is
	each []updateEach // $[] and $[name]
}

type updateKid struct {
	name  string
	index int // the name read as a list index, or -1
	node  *updateNode
}

type updateEach struct {
	name   string  // "" for $[]
	filter *Filter // of documents that have the element as their only field, called name; nil for all
	node   *updateNode
}

// before is the order in which a MongoDB server applies changes to the fields of an object, and so appends new ones:
// by name, but for numbers by their length first.
func before(a, b string) int {
	if startsNumber(a) && startsNumber(b) && len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}

func startsNumber(name string) bool { return name != "" && name[0] >= '1' && name[0] <= '9' }

// updateIndex reads a name as the index of a list element: digits, with leading zeros or without. -1 if it is none.
func updateIndex(name string) int {
	if name == "" || len(name) > 18 {
		return -1
	}
	n := 0
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
		n = n*10 + int(name[i]-'0')
	}
	return n
}

func (n *updateNode) isEmpty() bool {
	return n.op == nil && n.at == nil && len(n.kids) == 0 && len(n.each) == 0
}

// find is the place of a name among the kids.
func (n *updateNode) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n.kids, name, func(k updateKid, name string) int { return before(k.name, name) })
}

// kid gives the node of a name, made if need be; nil where that would be a conflict.
func (n *updateNode) kid(name string) *updateNode {
	if n.op != nil || len(n.each) > 0 {
		return nil
	}
	i, ok := n.find(name)
	if !ok {
		n.kids = slices.Insert(n.kids, i, updateKid{name, updateIndex(name), &updateNode{}})
	}
	return n.kids[i].node
}

// position gives the node of $.
func (n *updateNode) position() *updateNode {
	if n.op != nil || len(n.each) > 0 {
		return nil
	}
	if n.at == nil {
		n.at = &updateNode{}
	}
	return n.at
}

// elements gives the node of $[name].
func (n *updateNode) elements(name string, f *Filter) *updateNode {
	if n.op != nil || n.at != nil || len(n.kids) > 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.each, name, func(e updateEach, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		n.each = slices.Insert(n.each, i, updateEach{name, f, &updateNode{}})
	}
	return n.each[i].node
}

// merged joins what two positions do with one value. ok is false if they are in conflict.
func merged(a, b *updateNode) (n *updateNode, ok bool) {
	if a.op != nil || b.op != nil || (len(a.each) > 0) != (len(b.each) > 0) {
		return nil, false
	}
	n = &updateNode{kids: slices.Clone(a.kids), at: a.at, each: slices.Clone(a.each)}
	for _, kid := range b.kids {
		i, exists := n.find(kid.name)
		if !exists {
			n.kids = slices.Insert(n.kids, i, kid)
		} else if n.kids[i].node, ok = merged(n.kids[i].node, kid.node); !ok {
			return nil, false
		}
	}
	for _, e := range b.each {
		i := slices.IndexFunc(n.each, func(o updateEach) bool { return o.name == e.name })
		if i < 0 {
			n.each = append(n.each, e)
		} else if n.each[i].node, ok = merged(n.each[i].node, e.node); !ok {
			return nil, false
		}
	}
	if n.at == nil {
		n.at = b.at
	} else if b.at != nil {
		n.at, ok = merged(a.at, b.at)
		return n, ok
	}
	return n, true
}
