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
	kids []updateKid  // sorted by before, once the update is compiled
	at   *updateNode  // where the position $ is
	each []updateEach // $[] and $[name]

	names *kidNames // of many kids, while the update is compiled
}

// kidNames finds kids by name and by index.
type kidNames struct {
	nodes   map[string]*updateNode
	indexes map[int]string
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

// kid gives the node of a name, made if need be; nil where that would be a conflict. twice says whether it has another
// name of the same index beside it.
func (n *updateNode) kid(name string) (node *updateNode, twice bool) {
	if n.op != nil || len(n.each) > 0 {
		return nil, false
	}
	index := updateIndex(name)
	node, twice = n.lookup(name, index)
	if node == nil {
		node = &updateNode{}
		n.kids = append(n.kids, updateKid{name, index, node})
		n.names.add(name, index, node)
	}
	return node, twice
}

func (n *updateNode) lookup(name string, index int) (node *updateNode, twice bool) {
	if n.names == nil && len(n.kids) >= fewNames {
		n.names = &kidNames{map[string]*updateNode{}, map[int]string{}}
		for _, k := range n.kids {
			n.names.add(k.name, k.index, k.node)
		}
	}
	if n.names != nil {
		other, ok := n.names.indexes[index]
		return n.names.nodes[name], ok && other != name
	}
	for _, k := range n.kids {
		if k.name == name {
			node = k.node
		} else if k.index == index && index >= 0 {
			twice = true
		}
	}
	return node, twice
}

func (s *kidNames) add(name string, index int, node *updateNode) {
	if s == nil {
		return
	}
	s.nodes[name] = node
	if index >= 0 {
		s.indexes[index] = name
	}
}

// sort puts the kids in order, at every depth.
func (n *updateNode) sort() {
	n.names = nil
	slices.SortFunc(n.kids, func(a, b updateKid) int { return before(a.name, b.name) })
	for _, kid := range n.kids {
		kid.node.sort()
	}
	if n.at != nil {
		n.at.sort()
	}
	for _, e := range n.each {
		e.node.sort()
	}
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
	n = &updateNode{at: a.at, each: slices.Clone(a.each)}
	if n.kids, ok = mergedKids(a.kids, b.kids); !ok {
		return nil, false
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

func mergedKids(a, b []updateKid) (kids []updateKid, ok bool) {
	kids = make([]updateKid, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := before(a[0].name, b[0].name); {
		case c < 0:
			kids, a = append(kids, a[0]), a[1:]
		case c > 0:
			kids, b = append(kids, b[0]), b[1:]
		default:
			kid := a[0]
			if kid.node, ok = merged(a[0].node, b[0].node); !ok {
				return nil, false
			}
			kids, a, b = append(kids, kid), a[1:], b[1:]
		}
	}
	return append(append(kids, a...), b...), true
}
