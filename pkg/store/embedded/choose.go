package embedded

import (
	"slices"

	"github.com/svcctl/svc/pkg/mql"
)

// A trial runs a plan for as long as it takes to see how it fares beside others.
const (
	trialKeys    = 1000
	trialResults = 101
)

// candidate is a plan that may be chosen.
type candidate struct {
	*plan
	id     planID
	bound  []string // paths that are bound
	points []string // those to single values
}

// planID names a plan among those for queries of one shape.
type planID struct {
	or    int    // 1 for the first $or, and so on; 0: not of an $or
	index uint32 // 0: the documents by _id
}

// candidates gives all plans that are of use. The first, of the documents by _id, always is.
func (p *planner) candidates(ready []*index) []candidate {
	out := []candidate{p.candidate(p.primary())}
	for _, x := range ready {
		if a, ok := p.secondary(x); ok && a.holdsAll() {
			if c := p.candidate(a); len(c.bound) > 0 || c.sorted {
				out = append(out, c)
			}
		}
	}
	for i, or := range p.conds.ors {
		if pl := p.either(or, ready); pl != nil {
			// No other plan binds what it binds.
			out = append(out, candidate{plan: pl, id: planID{or: i + 1}, bound: []string{"$or"}})
		}
	}
	return out
}

func (p *planner) candidate(a *access) candidate {
	c := candidate{plan: p.plan(a)}
	if a.index != nil {
		c.id.index = a.index.id
	}
	for i := range a.bound {
		c.bound = append(c.bound, a.keys[i].Path)
	}
	c.points = c.bound[:a.points:a.points]
	if a.index != nil && (a.index.def.Sparse || a.index.def.Partial != nil) {
		c.bound = append(c.bound, "index "+a.index.def.Name) // what it lacks is left out, too
	}
	return c
}

// either makes the plan for the branches of or, each with an index of its own; nil if one of them would read
// everything.
func (p *planner) either(or *mql.OrNode, ready []*index) *plan {
	out := &plan{repeats: true, sorted: len(p.query.Sort) > 0, seeked: true, order: inTurn}
	for _, node := range branches(or) {
		branch := &planner{coll: p.coll, query: p.query, conds: p.conds.with(node)}
		best := branch.best(ready)
		if len(best.bound) == 0 {
			return nil
		}
		out.scans = append(out.scans, best.scans...)
		out.sorted = out.sorted && best.sorted
		out.seeked = out.seeked && best.seeked
	}
	if len(out.scans) > maxMerge {
		return nil
	}
	if out.sorted {
		out.order = byValue
	}
	out.seeked = out.seeked && out.sorted
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

// best is the candidate that looks best.
func (p *planner) best(ready []*index) candidate {
	all := p.candidates(ready)
	return slices.MaxFunc(all, func(a, b candidate) int { return a.compare(&b, p.query.Limit > 0) })
}

// compare is above 0 if a likely costs less than b. A page needs the order more than narrow bounds, a whole result the
// other way round.
func (a *candidate) compare(b *candidate, page bool) int {
	criteria := []int{
		compareBool(a.empty(), b.empty()),
		compareBool(a.unique(), b.unique()),
		len(a.points) - len(b.points),
		compareBool(len(a.bound) > 0, len(b.bound) > 0),
	}
	if page {
		criteria = append(criteria, compareBool(a.sorted, b.sorted))
	}
	criteria = append(criteria,
		len(a.bound)-len(b.bound),
		compareBool(a.sorted, b.sorted),
		compareBool(a.exact, b.exact),
		compareBool(b.repeats, a.repeats),
		len(b.scans)-len(a.scans),
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
func (pl *plan) empty() bool {
	return !slices.ContainsFunc(pl.scans, func(s *scan) bool { return len(s.ranges) > 0 })
}

func (a *candidate) unique() bool {
	return len(a.scans) == 1 && a.scans[0].access.unique()
}

// beats says whether a is better than b whatever the documents are: it reads a part of the same keys, and has the
// order if b has it.
func (a *candidate) beats(b *candidate, page bool) bool {
	if c := a.compare(b, page); c < 0 || (a.id.or != b.id.or && len(b.bound) > 0) {
		return false
	}
	return (a.sorted || !b.sorted) && includes(a.bound, b.bound) && includes(a.points, b.points)
}

func includes(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// choose gives the best plan. Where it can't be known, the likely ones are tried, and what came of it is remembered.
func (st *state) choose(r *read) (*plan, error) {
	p := planner{coll: st.coll, query: &r.query, conds: conditionsOf(r.query.Filter.Root())}
	all := p.candidates(st.indexes.ready)
	page := r.query.Limit > 0
	slices.SortStableFunc(all, func(a, b candidate) int { return b.compare(&a, page) })
	if all[0].empty() || all[0].unique() {
		return all[0].plan, nil
	}
	var good []candidate
	for i := range all {
		if !slices.ContainsFunc(good, func(g candidate) bool { return g.beats(&all[i], page) }) {
			good = append(good, all[i])
		}
	}
	if len(good) == 1 {
		return good[0].plan, nil
	}
	return r.try(good, &st.indexes.plans)
}

// try runs each of plans for a while, and gives the one that finds its results with the fewest keys.
func (r *read) try(plans []candidate, cache *planCache) (*plan, error) {
	r.shape = shapeOf(&r.query)
	r.cache = cache
	if id, ok := cache.get(r.shape); ok {
		if i := slices.IndexFunc(plans, func(c candidate) bool { return c.id == id }); i >= 0 {
			r.planID = id
			return plans[i].plan, nil
		}
	}
	best, bestRate := 0, -1.0
	limit := int64(trialKeys)
	for i := 0; i < len(plans) && limit > 0; i++ {
		t := trial{read: r.copy()}
		t.maxKeys = limit
		if err := t.run(plans[i].plan); err != nil {
			return nil, err
		}
		switch {
		case t.done && t.keysRead < limit:
			best, bestRate, limit = i, 2, t.keysRead // more than any rate
		case t.done && bestRate < 2:
			best, bestRate = i, 2
		case bestRate < 2 && t.rate() > bestRate:
			best, bestRate = i, t.rate()
		}
	}
	r.planID = plans[best].id
	return plans[best].plan, nil
}

// trial is a plan's run for as long as it takes to see how it fares.
type trial struct {
	*read
	results int64
	done    bool
}

func (t *trial) run(pl *plan) (err error) {
	defer closeInto(&err, t.close)
	if err := t.start(pl); err != nil {
		return err
	}
	want := int64(trialResults)
	if t.query.Limit > 0 {
		want = min(want, t.query.Limit+t.skip)
	}
	sorts := t.needsSort()
	for {
		_, ok, err := t.next()
		if err != nil {
			return err
		}
		if !ok {
			t.done = !t.cut
			return nil
		}
		if t.results++; t.results == want && !sorts {
			t.done = true
			return nil
		}
	}
}

// rate is how much of what was read matched.
func (t *trial) rate() float64 { return float64(t.results) / float64(max(t.keysRead, 1)) }
