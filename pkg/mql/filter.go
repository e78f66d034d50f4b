package mql

import (
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Filter is a compiled condition on documents. It is immutable and safe for concurrent use; nil matches everything.
type Filter struct {
	root   Node
	states int                      // of its regular expressions, see pattern.Pattern
	raw    atomic.Pointer[bson.Raw] // nil until it is asked for: stores that need none are spared it
}

// newFilter makes the filter of a tree.
func newFilter(root Node) *Filter { return &Filter{root: root, states: states(root)} }

// Match says whether doc satisfies f, as MongoDB 6.0 would. It does not allocate, but for regular expressions.
func (f *Filter) Match(doc bson.Raw) bool {
	return f == nil || f.root.match(doc)
}

// Raw is the filter as a MongoDB server is sent it. It is made of what Compile understood, never copied from input.
// The caller must not change it.
func (f *Filter) Raw() bson.Raw {
	if f == nil {
		return encodeNode(&AndNode{})
	}
	if raw := f.raw.Load(); raw != nil {
		return *raw
	}
	raw := encodeNode(f.root)
	f.raw.Store(&raw)
	return raw
}

// Root is the tree, for planners. They must not change it.
func (f *Filter) Root() Node {
	if f == nil {
		return &AndNode{}
	}
	return f.root
}

// And holds where all of fs do. A nil filter holds everywhere; the result is nil if all are.
func And(fs ...*Filter) *Filter {
	var only *Filter
	nodes := make([]Node, 0, len(fs))
	for _, f := range fs {
		if f != nil {
			nodes = append(nodes, f.root)
			only = f
		}
	}
	if len(nodes) <= 1 {
		return only
	}
	return newFilter(allOf(nodes))
}

// Or holds where one of fs does: everywhere if one is nil, nowhere if there is none.
func Or(fs ...*Filter) *Filter {
	nodes := make([]Node, 0, len(fs))
	for _, f := range fs {
		if f == nil {
			return nil
		}
		nodes = append(nodes, f.root)
	}
	switch len(nodes) {
	case 0:
		return newFilter(&NorNode{Nodes: []Node{&AndNode{}}})
	case 1:
		return fs[0]
	default:
		return newFilter(&OrNode{Nodes: nodes})
	}
}

// EqualTo holds where path has one of values, as $in finds them, though regular expressions are values here and no
// patterns. Values have to be well-formed, and the filter keeps them; some Compile would not take, either.
func EqualTo(path string, values []bson.RawValue) (*Filter, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	plain := make([]bson.RawValue, 0, len(values))
	var patterns []*Filter
	for _, v := range values {
		if err := checkConstant(v, path, 0); err != nil {
			return nil, err
		}
		switch {
		case holdsOperators(v):
			return nil, bad("filter: %s: $in takes values, not operators", path)
		case v.Type == bson.TypeRegex:
			patterns = append(patterns, On(path, &Cmp{Op: Eq, Value: v}))
		default:
			plain = append(plain, v)
		}
	}
	return Or(append(patterns, OneOf(path, plain))...), nil
}

// allOf joins nodes, without an AndNode in an AndNode and without one around a single node.
func allOf(nodes []Node) Node {
	flat := make([]Node, 0, len(nodes))
	for _, n := range nodes {
		if and, ok := n.(*AndNode); ok {
			flat = append(flat, and.Nodes...)
		} else {
			flat = append(flat, n)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return &AndNode{Nodes: flat}
}
