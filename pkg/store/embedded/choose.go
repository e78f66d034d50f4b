package embedded

import (
	"slices"

	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// A trial runs a plan for as long as it takes to see how it fares beside others.
const (
	trialKeys    = 1000
	trialResults = 101
)

// choose gives the best plan. Where it can't be known, the likely ones are tried, and what came of it is remembered.
func (st *state) choose(r *read) (*plan.Plan, error) {
	plans := plan.Choose(&r.query, docPrefix(st.coll.id), st.planned())
	if len(plans) == 1 {
		return plans[0], nil
	}
	return r.try(plans, &st.indexes.plans)
}

// planned describes the indexes to the planner, but for those whose paths may mean a position or a field.
func (st *state) planned() []plan.Index {
	out := make([]plan.Index, 0, len(st.indexes.ready))
	for _, x := range st.indexes.ready {
		if !x.positional {
			out = append(out, plan.Index{
				ID: x.id, Def: &x.def, Prefix: indexPrefix(st.coll.id, x.id), Multikey: x.multikey.Load(),
			})
		}
	}
	return out
}

// try runs each of plans for a while, and gives the one that finds its results with the fewest keys.
func (r *read) try(plans []*plan.Plan, cache *plan.Cache) (*plan.Plan, error) {
	r.shape = plan.Shape(&r.query)
	r.cache = cache
	if id, ok := cache.Get(r.shape); ok {
		if i := slices.IndexFunc(plans, func(pl *plan.Plan) bool { return pl.ID == id }); i >= 0 {
			r.planID = id
			return plans[i], nil
		}
	}
	best, bestRate := 0, -1.0
	limit := int64(trialKeys)
	for i := 0; i < len(plans) && limit > 0; i++ {
		t := trial{read: r.copy()}
		t.maxKeys = limit
		if err := t.run(plans[i]); err != nil {
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
	r.planID = plans[best].ID
	return plans[best], nil
}

// trial is a plan's run for as long as it takes to see how it fares.
type trial struct {
	*read
	results int64
	done    bool
}

func (t *trial) run(pl *plan.Plan) (err error) {
	defer closeInto(&err, t.close)
	if err := t.start(pl); err != nil {
		return err
	}
	want := int64(trialResults)
	if t.query.Limit > 0 {
		want = min(want, atMost(t.query.Limit, t.skip))
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
