package embedded

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxRanges = 10_000 // of keys, for one query; fields that would make it more are left to the filter
	maxMerge  = 200    // ranges that are read side by side, to have their keys in one order
)

// plan is one way to find the documents of a query. All ways find the same: what a plan leaves out is decided by
// matching the filter against each document.
type plan struct {
	scans []*scan
	order order
	// sorted: documents come in the order asked for.
	sorted bool
	// seeked: scans begin behind Query.After. Else each document has to be compared with it.
	seeked bool
	// exact: each key of the scans is a document that matches.
	exact bool
	// repeats: documents may come more than once.
	repeats bool
}

// order is how the scans of a plan are put together.
type order uint8

const (
	inTurn  order = iota // one after the other
	byKey                // merged by what is behind scan.fixed in their keys
	byValue              // merged by the sort key of their documents
)

// scan walks the keys of one index, or the documents by _id.
type scan struct {
	*access
	ranges  []keyRange
	reverse bool // walk backwards
}

// keyRange is the engine's keys from lo to before hi. The first fixed bytes are the same for all of them: the fields
// that are bound to single values.
type keyRange struct {
	lo, hi []byte
	fixed  int
}

// access is an index with what a filter says about its keys.
type access struct {
	index    *index // nil: the documents themselves, by _id
	keys     []store.IndexKey
	prefix   []byte     // what comes before the fields in a key
	multikey uint32     // fields that may lead to lists
	ranges   []keyRange // sorted, disjoint, of whole engine keys

	bound   []intervals // the leading fields that are bound, in ascending order
	points  int         // how many of them to single values
	lists   []*condition
	present bool // a document that matches does not lack all of the fields
	exact   bool // what is in the ranges is what matches
}

// planner finds plans for one query on one state of a collection.
type planner struct {
	coll  *collection
	query *store.Query
	conds conditions
}

// primary is the documents, by _id.
func (p *planner) primary() *access {
	a := &access{keys: []store.IndexKey{{Path: "_id"}}, prefix: docPrefix(p.coll.id)}
	a.bind(&p.conds)
	return a
}

// secondary is x, if it can be used and has all documents that match, but for those that lack all of its fields.
func (p *planner) secondary(x *index) (*access, bool) {
	if x.positional || (x.def.Partial != nil && !mql.Implies(p.query.Filter, x.def.Partial)) {
		return nil, false
	}
	a := &access{index: x, keys: x.def.Keys, prefix: indexPrefix(p.coll.id, x.id), multikey: x.multikey.Load()}
	a.bind(&p.conds)
	return a, true
}

// holdsAll says whether an index that lacks documents lacks none that matches.
func (a *access) holdsAll() bool { return !a.index.def.Sparse || a.present }

// unique says whether at most one document is found.
func (a *access) unique() bool {
	if a.points < len(a.keys) || len(a.ranges) != 1 {
		return false
	}
	return a.index == nil || a.index.def.Unique
}

// bind turns conditions into ranges, field by field as long as the bounds are single values.
func (a *access) bind(conds *conditions) {
	a.ranges = []keyRange{{lo: a.prefix, hi: keyAfter(a.prefix), fixed: len(a.prefix)}}
	exact := conds.complete && a.multikey == 0
	sparse := a.index != nil && a.index.def.Sparse
	open := true
	for i, key := range a.keys {
		on := conds.paths[key.Path]
		if open = open && on != nil; !open && !sparse {
			break
		}
		if on == nil {
			continue
		}
		kind := fieldKind{list: a.isList(i), dotted: strings.Contains(key.Path, ".")}
		b := kind.on(on)
		a.present = a.present || b.present
		if kind.list && len(a.lists) > 0 {
			part := kind.bounds(a.usable(on.all))
			b = &part
		}
		if open = open && !b.outer.isEverything() && len(a.ranges)*len(b.outer) <= maxRanges; !open {
			continue
		}
		exact = exact && b.exact
		if b.used != nil {
			a.lists = append(a.lists, b.used)
		}
		a.bound = append(a.bound, b.outer)
		a.extend(b.outer, key.Desc)
		if open = b.outer.allPoints() && len(b.outer) > 0; open {
			a.points++
		}
	}
	a.exact = exact && len(a.bound) == len(conds.paths)
}

func (a *access) isList(i int) bool { return a.multikey&(1<<i) != 0 }

// usable gives the conditions that may bind a field that leads to lists together with those that are bound already. Two
// fields of one list may be satisfied by different elements, unless the conditions are of one $elemMatch and lead apart
// at once.
func (a *access) usable(conds []condition) []condition {
	return slices.DeleteFunc(slices.Clone(conds), func(c condition) bool {
		return c.elem == 0 || slices.ContainsFunc(a.lists, func(o *condition) bool {
			return o.elem != c.elem || o.first == c.first
		})
	})
}

// extend appends the intervals of one more field to ranges that are single values so far.
func (a *access) extend(ivs intervals, desc bool) {
	out := make([]keyRange, 0, len(a.ranges)*len(ivs))
	for _, r := range a.ranges {
		for i := range ivs {
			iv := ivs[i]
			if desc {
				iv = ivs[len(ivs)-1-i].inverted()
			}
			next := keyRange{lo: join(r.lo, iv.lo), hi: r.hi, fixed: len(r.lo)}
			if iv.hi != nil {
				next.hi = join(r.lo, iv.hi)
			}
			if iv.point {
				next.fixed = len(next.lo)
			}
			out = append(out, next)
		}
	}
	a.ranges = out
}

func join(a, b []byte) []byte { return append(slices.Clip(a), b...) }

// fixed gives the key of the one value that field i is bound to, or nil.
func (a *access) fixed(i int, desc bool) []byte {
	if i >= a.points || len(a.bound[i]) != 1 {
		return nil
	}
	if desc {
		return a.bound[i][0].inverted().lo
	}
	return a.bound[i][0].lo
}

// repeats says whether a document may have several keys in the ranges. It has no two that are equal in all fields.
func (a *access) repeats() bool {
	for i := range a.keys {
		if a.isList(i) && a.fixed(i, false) == nil {
			return true
		}
	}
	return false
}

// listBound says whether a field that may lead to lists is bound, so that a document may have other keys than those in
// the ranges.
func (a *access) listBound() bool { return len(a.lists) > 0 }
