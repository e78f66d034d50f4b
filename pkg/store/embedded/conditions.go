package embedded

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/mql"
)

// conditions are the parts of a filter that a document has to satisfy all, by path.
type conditions struct {
	paths    map[string][]condition
	ors      []*mql.OrNode // of which one branch each has to hold
	complete bool          // paths is the whole filter
	elems    int           // $elemMatch seen
}

// condition is one on the values of a path.
type condition struct {
	pred mql.Pred
	// elem numbers the $elemMatch that it stands in; 0: none. first is the first name of its path in there.
	elem  int
	first string
}

func conditionsOf(root mql.Node) conditions {
	c := conditions{paths: map[string][]condition{}, complete: true}
	c.add(root, "", 0)
	return c
}

// add takes up node, of the objects that prefix (with its dot) leads to, which are elements of a list if elem is set.
func (c *conditions) add(node mql.Node, prefix string, elem int) {
	switch n := node.(type) {
	case *mql.AndNode:
		for _, sub := range n.Nodes {
			c.add(sub, prefix, elem)
		}
	case *mql.Field:
		c.field(n.Path, n.Preds, prefix, elem)
	case *mql.NorNode:
		for _, sub := range n.Nodes {
			c.not(sub, prefix, elem)
		}
	case *mql.OrNode:
		switch {
		case len(n.Nodes) == 1:
			c.add(n.Nodes[0], prefix, elem)
		case elem == 0:
			c.ors = append(c.ors, n)
			c.complete = false
		default:
			c.complete = false
		}
	default:
		c.complete = false
	}
}

func (c *conditions) field(path string, preds []mql.Pred, prefix string, elem int) {
	first, _, _ := strings.Cut(path, ".")
	for _, p := range preds {
		c.paths[prefix+path] = append(c.paths[prefix+path], condition{pred: p, elem: elem, first: first})
		// An element that satisfies all of them satisfies each, so each holds for the joined path. That includes
		// negations, as far as bounds go: what an element does not satisfy, it has no entry of.
		if e, ok := p.(*mql.ElemMatch); ok && e.Node != nil {
			c.complete = false
			c.elems++
			c.add(e.Node, prefix+path+".", c.elems)
		}
	}
}

// not takes up that node does not hold.
func (c *conditions) not(node mql.Node, prefix string, elem int) {
	switch n := node.(type) {
	case *mql.Field:
		c.field(n.Path, []mql.Pred{&mql.Not{Preds: n.Preds}}, prefix, elem)
	case *mql.OrNode:
		for _, sub := range n.Nodes {
			c.not(sub, prefix, elem)
		}
	case *mql.NorNode:
		if len(n.Nodes) == 1 {
			c.add(n.Nodes[0], prefix, elem)
			return
		}
		c.complete = false
	default:
		c.complete = false
	}
}

// with gives the conditions of c and those of node.
func (c *conditions) with(node mql.Node) conditions {
	out := conditions{paths: make(map[string][]condition, len(c.paths)+1), elems: c.elems}
	for path, conds := range c.paths {
		out.paths[path] = slices.Clip(conds)
	}
	out.add(node, "", 0)
	out.ors = nil
	return out
}

// bounds joins the conditions on a path. Of those on a list that stand in different $elemMatch, or in none, only one
// counts, which is given as well.
func (k fieldKind) bounds(conds []condition) (bounds, *condition) {
	preds := make([]mql.Pred, len(conds))
	for i := range conds {
		preds[i] = conds[i].pred
	}
	b := k.all(preds)
	if !k.list || len(conds) == 0 {
		return b, nil
	}
	used := &conds[0]
	for i := range conds[1:] {
		if k.of(conds[i+1].pred).outer.tighter(k.of(used.pred).outer) {
			used = &conds[i+1]
		}
	}
	return b, used
}
