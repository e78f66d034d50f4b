package plan

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/mql"
)

// conditions are the parts of a filter that a document has to satisfy all, by path.
type conditions struct {
	paths    map[string]*pathConditions
	ors      []*mql.OrNode // of which one branch each has to hold
	complete bool          // paths is the whole filter
	elems    int           // $elemMatch seen
}

// pathConditions are those on one path, with the bounds that were worked out from all of them: without lists and with.
type pathConditions struct {
	all    []condition
	bounds [2]*pathBounds
}

// condition is one on the values of a path.
type condition struct {
	pred mql.Pred
	// elem numbers the $elemMatch that it stands in; 0: none. first is the first name of its path in there.
	elem  int
	first string
}

func conditionsOf(root mql.Node) conditions {
	c := conditions{paths: map[string]*pathConditions{}, complete: true}
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
	on := c.paths[prefix+path]
	if on == nil {
		on = &pathConditions{}
		c.paths[prefix+path] = on
	}
	for _, p := range preds {
		on.all = append(on.all, condition{pred: p, elem: elem, first: first})
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
	out := conditions{paths: make(map[string]*pathConditions, len(c.paths)+1), elems: c.elems}
	for path, on := range c.paths {
		out.paths[path] = &pathConditions{all: slices.Clip(on.all)}
	}
	out.add(node, "", 0)
	out.ors = nil
	return out
}

// pathBounds is what several conditions say about a path. Of a path with lists, used is the one that counts.
type pathBounds struct {
	bounds
	used *condition
}

// on gives the bounds of all conditions on a path.
func (k fieldKind) on(c *pathConditions) *pathBounds {
	i := 0
	if k.list {
		i = 1
	}
	if c.bounds[i] == nil {
		b := k.bounds(c.all)
		c.bounds[i] = &b
	}
	return c.bounds[i]
}

// bounds joins conditions on a path. Of those on a list that stand in different $elemMatch, or in none, only one counts.
func (k fieldKind) bounds(conds []condition) pathBounds {
	preds := make([]mql.Pred, len(conds))
	for i := range conds {
		preds[i] = conds[i].pred
	}
	out := pathBounds{bounds: k.all(preds)}
	if !k.list || len(conds) == 0 {
		return out
	}
	var tightest intervals
	for i := range conds {
		if outer := k.of(conds[i].pred).outer; i == 0 || outer.tighter(tightest) {
			out.used, tightest = &conds[i], outer
		}
	}
	return out
}
