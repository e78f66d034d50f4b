package plan

import (
	"slices"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Choose gives the plans for q of which none is known to be worse than another one, the likely best first: there is
// always one, and if there are more, only running them can tell. docs begins the keys of the documents, whose rest is the
// key of the _id.
func Choose(q *store.Query, docs []byte, indexes []Index) []*Plan {
	p := newPlanner(q, docs, indexes)
	all := p.plans()
	page := q.Limit > 0
	slices.SortStableFunc(all, func(a, b *Plan) int { return b.compare(a, page) })
	if all[0].empty() || all[0].unique {
		return all[:1]
	}
	var good []*Plan
	for _, pl := range all {
		if !slices.ContainsFunc(good, func(g *Plan) bool { return g.beats(pl, page) }) {
			good = append(good, pl)
		}
	}
	return good
}

// planner finds plans for one query, or one branch of it.
type planner struct {
	query   *store.Query
	docs    []byte
	indexes []Index
	conds   conditions
}

func newPlanner(q *store.Query, docs []byte, indexes []Index) *planner {
	return &planner{query: q, docs: docs, indexes: indexes, conds: conditionsOf(q.Filter.Root())}
}

// plans gives all plans that are of use. The first, of the documents by _id, always is.
func (p *planner) plans() []*Plan {
	out := []*Plan{p.plan(p.primary())}
	for i := range p.indexes {
		if a, ok := p.secondary(&p.indexes[i]); ok && a.holdsAll() {
			if pl := p.plan(a); len(pl.bound) > 0 || pl.Sorted {
				out = append(out, pl)
			}
		}
	}
	for i, or := range p.conds.ors[:min(len(p.conds.ors), maxOrs)] {
		if pl := p.either(or); pl != nil {
			pl.ID.or = i + 1
			out = append(out, pl)
		}
	}
	return out
}

// plan makes the plan that walks a: in the order of the query, if its keys can be had so.
func (p *planner) plan(a *access) *Plan {
	pl := &Plan{Exact: a.exact, Repeats: a.repeats(), unique: a.unique()}
	for i := range a.bound {
		pl.bound = append(pl.bound, a.keys[i].Path)
	}
	pl.points = pl.bound[:a.points:a.points]
	if a.index != nil {
		pl.ID.index = a.index.ID
		if a.index.Def.Sparse || a.index.Def.Partial != nil {
			pl.bound = append(pl.bound, "index "+a.index.Def.Name) // what it lacks is left out, too
		}
	}
	if !p.inOrder(pl, a) {
		pl.Scans = []*Scan{a.scan(a.ranges, false)}
	}
	return pl
}

// either makes the plan for the branches of or, each with an index of its own; nil if one of them would read
// everything.
func (p *planner) either(or *mql.OrNode) *Plan {
	out := &Plan{Repeats: true, Sorted: len(p.query.Sort) > 0, Seeked: true, bound: []string{"$or"}} // no other plan binds it
	for _, node := range branches(or) {
		branch := &planner{query: p.query, docs: p.docs, indexes: p.indexes, conds: p.conds.with(node)}
		best := slices.MaxFunc(branch.plans(), func(a, b *Plan) int { return a.compare(b, p.query.Limit > 0) })
		if len(best.bound) == 0 {
			return nil
		}
		if out.Scans = append(out.Scans, best.Scans...); len(out.Scans) > maxMerge {
			return nil
		}
		out.Sorted = out.Sorted && best.Sorted
		out.Seeked = out.Seeked && best.Seeked
	}
	if out.Sorted {
		out.Order = ByValue
	}
	out.Seeked = out.Seeked && out.Sorted
	return out
}

// branches are those of an $or and of each $or in it.
func branches(or *mql.OrNode) []mql.Node {
	var out []mql.Node
	for _, n := range or.Nodes {
		if inner, ok := n.(*mql.OrNode); ok {
			out = append(out, branches(inner)...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// compare is above 0 if a likely costs less than b. A page needs the order more than narrow bounds, a whole result the
// other way round.
func (a *Plan) compare(b *Plan, page bool) int {
	criteria := []int{
		compareBool(a.empty(), b.empty()),
		compareBool(a.unique, b.unique),
		len(a.points) - len(b.points),
		compareBool(len(a.bound) > 0, len(b.bound) > 0),
	}
	if page {
		criteria = append(criteria, compareBool(a.Sorted, b.Sorted))
	}
	criteria = append(criteria,
		len(a.bound)-len(b.bound),
		compareBool(a.Sorted, b.Sorted),
		compareBool(a.Exact, b.Exact),
		compareBool(b.Repeats, a.Repeats),
		len(b.Scans)-len(a.Scans),
	)
	for _, c := range criteria {
		if c != 0 {
			return c
		}
	}
	return 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// empty says whether it is known that nothing matches.
func (a *Plan) empty() bool {
	return !slices.ContainsFunc(a.Scans, func(s *Scan) bool { return len(s.Ranges) > 0 })
}

// beats says whether a is better than b whatever the documents are: it reads a part of the same keys, and has the
// order if b has it.
func (a *Plan) beats(b *Plan, page bool) bool {
	if c := a.compare(b, page); c < 0 || (a.ID.or != b.ID.or && len(b.bound) > 0) {
		return false
	}
	return (a.Sorted || !b.Sorted) && includes(a.bound, b.bound) && includes(a.points, b.points)
}

func includes(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
