package embedded

import (
	"bytes"
	"slices"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxRanges = 10_000 // of keys, for one query; fields that would make it more are left to the filter
	probeKeys = 1000   // a range with no more keys than this is read and sorted rather than walking a sort order
)

// plan is one way to find the documents of a query. All ways find the same: what a plan leaves out is decided by
// matching the filter against each document.
type plan struct {
	index  *index     // nil: the documents themselves, by _id
	ranges []keyRange // sorted, disjoint, of whole engine keys
	prefix []byte     // what comes before the fields in a key

	multikey bool         // documents may come more than once
	bound    [][]interval // the leading fields that are bound, ascending
	points   int          // how many of them to single values
	full     bool         // every field is bound, and the index is unique
	exact    bool         // what is in the ranges is what matches
	sorted   bool         // documents come in the order asked for
	reverse  bool         // walk backwards
	seeked   bool         // the ranges begin behind Query.After
}

// keyRange is the engine's keys from lo to before hi.
type keyRange struct{ lo, hi []byte }

// conditions are the parts of a filter that a document has to satisfy all, by path.
type conditions struct {
	paths    map[string][]mql.Pred
	complete bool // they are the whole filter
}

func conditionsOf(f *mql.Filter) conditions {
	c := conditions{paths: map[string][]mql.Pred{}, complete: true}
	if f != nil {
		c.add("", f.Root())
	}
	return c
}

// add takes up node, of the objects that prefix (with its dot) leads to.
func (c *conditions) add(prefix string, node mql.Node) {
	switch n := node.(type) {
	case *mql.AndNode:
		for _, sub := range n.Nodes {
			c.add(prefix, sub)
		}
	case *mql.Field:
		path := prefix + n.Path
		c.paths[path] = append(c.paths[path], n.Preds...)
		for _, p := range n.Preds {
			// An element that satisfies all of them satisfies each, so each holds for the joined path.
			if e, ok := p.(*mql.ElemMatch); ok && e.Node != nil {
				c.complete = false
				c.add(path+".", e.Node)
			}
		}
	default:
		c.complete = false
	}
}

// planner finds plans for one query on one state of a collection.
type planner struct {
	coll  *collection
	query store.Query
	conds conditions
}

// choose gives the best plan. count tells how many keys ranges hold, up to probeKeys+1.
func (p *planner) choose(ready []*index, count func([]keyRange) (int, error)) (*plan, error) {
	best := p.primary()
	var sorted *plan // the best of those in sort order
	if best.sorted {
		sorted = best
	}
	for _, x := range ready {
		candidate, ok := p.secondary(x)
		if !ok {
			continue
		}
		if candidate.better(best, p.query) {
			best = candidate
		}
		if candidate.sorted && (sorted == nil || candidate.better(sorted, p.query)) {
			sorted = candidate
		}
	}
	// A page in sort order ends early, if what it walks over matches often; sorting reads the whole range, which
	// is quick if it is short. Neither is known in advance, but a short range can be counted.
	if sorted == nil || best == sorted || len(best.ranges) == 0 || best.points > 0 || len(best.bound) == 0 || p.query.Limit == 0 {
		return best, nil
	}
	n, err := count(best.ranges)
	if err != nil || n <= probeKeys {
		return best, err
	}
	return sorted, nil
}

// better says whether a likely costs less than b.
func (a *plan) better(b *plan, q store.Query) bool {
	if len(a.ranges) == 0 || len(b.ranges) == 0 {
		return len(a.ranges) < len(b.ranges)
	}
	if a.full != b.full {
		return a.full
	}
	if a.points != b.points {
		return a.points > b.points
	}
	if (len(a.bound) > 0) != (len(b.bound) > 0) {
		return len(a.bound) > 0
	}
	// A page needs the order more than narrow bounds, a whole result the other way round.
	if q.Limit > 0 && a.sorted != b.sorted {
		return a.sorted
	}
	if len(a.bound) != len(b.bound) {
		return len(a.bound) > len(b.bound)
	}
	if a.sorted != b.sorted {
		return a.sorted
	}
	if a.exact != b.exact {
		return a.exact
	}
	return len(a.ranges) < len(b.ranges)
}

// primary is the plan that walks the documents in _id order.
func (p *planner) primary() *plan {
	pl := &plan{prefix: docPrefix(p.coll.id)}
	keys := []store.IndexKey{{Path: "_id"}}
	p.bind(pl, keys, 0)
	pl.full = pl.points == 1
	p.order(pl, keys, 0)
	return pl
}

// secondary is the plan that walks x, if x is of any use.
func (p *planner) secondary(x *index) (*plan, bool) {
	if x.positional {
		return nil, false
	}
	multikey := x.multikey.Load()
	pl := &plan{index: x, prefix: indexPrefix(p.coll.id, x.id), multikey: multikey != 0}
	notNull := p.bind(pl, x.def.Keys, multikey)
	// A sparse index lacks documents; it will do if none of those can match.
	if x.def.Sparse && !notNull {
		return nil, false
	}
	pl.full = x.def.Unique && pl.points == len(x.def.Keys)
	p.order(pl, x.def.Keys, multikey)
	return pl, len(pl.bound) > 0 || pl.sorted
}

// bind turns conditions into the ranges of a plan, field by field as long as the bounds are single values. It says
// whether a document that matches can't lack all of the fields.
func (p *planner) bind(pl *plan, keys []store.IndexKey, multikey uint32) (notNull bool) {
	pl.ranges = []keyRange{{lo: pl.prefix, hi: keyAfter(pl.prefix)}}
	open, lists := true, false
	pl.exact = p.conds.complete && multikey == 0
	for i, key := range keys {
		preds := p.conds.paths[key.Path]
		if len(preds) == 0 {
			open = false
			continue
		}
		isList := multikey&(1<<i) != 0
		b, ok := allOf(preds, isList)
		notNull = notNull || (ok && b.notNull)
		// Two fields of one list may be satisfied by different elements, so only one of them may bind.
		if !ok || !open || (isList && lists) || b.isEverything() || len(pl.ranges)*len(b.intervals) > maxRanges {
			open = false
			continue
		}
		lists = lists || isList
		pl.exact = pl.exact && b.exact
		pl.bound = append(pl.bound, b.intervals)
		pl.ranges = extend(pl.ranges, b.intervals, key.Desc)
		if open = b.allPoints() && len(b.intervals) > 0; open {
			pl.points++
		}
	}
	pl.exact = pl.exact && len(pl.bound) == len(p.conds.paths)
	return notNull
}

// extend appends the intervals of one more field to ranges that are single values so far.
func extend(ranges []keyRange, ivs []interval, desc bool) []keyRange {
	out := make([]keyRange, 0, len(ranges)*len(ivs))
	for _, r := range ranges {
		for i := range ivs {
			iv := ivs[i]
			if desc {
				iv = ivs[len(ivs)-1-i].inverted()
			}
			next := keyRange{lo: join(r.lo, iv.lo), hi: r.hi}
			if iv.hi != nil {
				next.hi = join(r.lo, iv.hi)
			}
			out = append(out, next)
		}
	}
	return out
}

func join(a, b []byte) []byte { return append(slices.Clip(a), b...) }

// fixed gives the key of the one value that field i is bound to, or nil.
func (a *plan) fixed(i int, desc bool) []byte {
	if i >= a.points || len(a.bound[i]) != 1 {
		return nil
	}
	if desc {
		return a.bound[i][0].inverted().lo
	}
	return a.bound[i][0].lo
}

// order finds out whether the plan's keys are in the order of the query, and if so lets its ranges begin behind the
// query's position. A field that is bound to one value does not matter for the order, nor does anything behind _id,
// which every key ends with.
func (p *planner) order(pl *plan, keys []store.IndexKey, multikey uint32) {
	o := orderWalk{plan: pl, keys: keys, multikey: multikey, query: &p.query, seekable: len(p.query.After) > 0}
	if len(p.query.Sort) == 0 || !o.walk() {
		return
	}
	pl.sorted, pl.reverse = true, o.reverse
	if !o.seekable {
		return
	}
	pl.seeked = true
	position := join(pl.prefix, o.position)
	var rest []keyRange
	for _, r := range pl.ranges {
		if pl.reverse {
			r.hi = slices.MinFunc([][]byte{r.hi, position}, bytes.Compare)
		} else {
			r.lo = slices.MaxFunc([][]byte{r.lo, keyAfter(position)}, bytes.Compare)
		}
		if bytes.Compare(r.lo, r.hi) < 0 {
			rest = append(rest, r)
		}
	}
	pl.ranges = rest
}

// orderWalk goes through the fields of a sort and of an index side by side.
type orderWalk struct {
	plan     *plan
	keys     []store.IndexKey
	multikey uint32
	query    *store.Query

	next     int // field of the index
	matched  bool
	reverse  bool
	seekable bool
	position []byte // the query's position as a key
}

func (o *orderWalk) walk() bool {
	for i, f := range o.query.Sort {
		if o.constant(i) {
			continue
		}
		for o.next < len(o.keys) && o.keys[o.next].Path != f.Path {
			key := o.plan.fixed(o.next, o.keys[o.next].Desc)
			if key == nil {
				return false
			}
			o.position = append(o.position, key...)
			o.next++
		}
		desc := false // of the _id at the end
		if o.next < len(o.keys) {
			if o.multikey&(1<<o.next) != 0 {
				return false
			}
			desc = o.keys[o.next].Desc
		} else if f.Path != "_id" || o.plan.index == nil {
			return false
		}
		if !o.match(i, desc) {
			return false
		}
		if f.Path == "_id" {
			o.seekable = o.seekable && i == len(o.query.Sort)-1
			return true
		}
	}
	return true
}

// constant says whether all documents of the plan are equal in a field of the sort.
func (o *orderWalk) constant(i int) bool {
	for j, key := range o.keys {
		if key.Path != o.query.Sort[i].Path || o.multikey&(1<<j) != 0 {
			continue
		}
		value := o.plan.fixed(j, false)
		if value == nil {
			return false
		}
		if o.seekable && !bytes.Equal(value, document.AppendKey(nil, o.query.After[i], false)) {
			o.seekable = false // the position is in none of these documents: compare it with each
		}
		return true
	}
	return false
}

// match takes the next key of the index, or the _id at its end, for field i of the sort.
func (o *orderWalk) match(i int, desc bool) bool {
	reverse := o.query.Sort[i].Desc != desc
	if o.matched && reverse != o.reverse {
		return false
	}
	o.matched, o.reverse = true, reverse
	if o.seekable {
		o.position = document.AppendKey(o.position, o.query.After[i], desc)
	}
	o.next++
	return true
}
