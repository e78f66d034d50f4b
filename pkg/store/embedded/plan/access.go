package plan

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// access is an index with what a filter says about its keys.
type access struct {
	index    *Index // nil: the documents themselves, by _id
	keys     []store.IndexKey
	prefix   []byte  // what comes before the fields in a key
	multikey uint32  // fields that may lead to lists
	ranges   []Range // sorted, disjoint, of whole keys

	bound   []intervals // the leading fields that are bound, in ascending order
	points  int         // how many of them to single values
	lists   []*condition
	present bool // a document that matches does not lack all of the fields
	exact   bool // what is in the ranges is what matches
}

// primary is the documents, by _id.
func (p *planner) primary() *access {
	a := &access{keys: []store.IndexKey{{Path: "_id"}}, prefix: p.docs}
	a.bind(&p.conds)
	return a
}

// secondary is x, if it has all documents that match, but for those that lack all of its fields.
func (p *planner) secondary(x *Index) (*access, bool) {
	if x.Def.Partial != nil && !mql.Implies(p.query.Filter, x.Def.Partial) {
		return nil, false
	}
	a := &access{index: x, keys: x.Def.Keys, prefix: x.Prefix, multikey: x.Multikey}
	a.bind(&p.conds)
	return a, true
}

// scan walks ranges of a.
func (a *access) scan(ranges []Range, reverse bool) *Scan {
	return &Scan{Index: a.index, Prefix: a.prefix, Ranges: ranges, Reverse: reverse, Bounded: len(a.bound) > 0}
}

// holdsAll says whether an index that lacks documents lacks none that matches.
func (a *access) holdsAll() bool { return !a.index.Def.Sparse || a.present }

// unique says whether at most one document is found.
func (a *access) unique() bool {
	if a.points < len(a.keys) || len(a.ranges) != 1 {
		return false
	}
	return a.index == nil || a.index.Def.Unique
}

// bind turns conditions into ranges, field by field as long as the bounds are single values.
func (a *access) bind(conds *conditions) {
	a.ranges = []Range{{Lo: a.prefix, Hi: document.KeyAfter(a.prefix), Fixed: len(a.prefix)}}
	exact := conds.complete && a.multikey == 0
	sparse := a.index != nil && a.index.Def.Sparse
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
	out := make([]Range, 0, len(a.ranges)*len(ivs))
	size := 0
	for i := range ivs {
		size += len(ivs[i].lo) + len(ivs[i].hi) + 2*len(a.ranges[0].Lo)
	}
	keys := make([]byte, 0, size*len(a.ranges)) // in one piece: there may be thousands
	join := func(a, b []byte) []byte {
		start := len(keys)
		keys = append(append(keys, a...), b...)
		return keys[start:len(keys):len(keys)]
	}
	for _, r := range a.ranges {
		for i := range ivs {
			iv := ivs[i]
			if desc {
				iv = ivs[len(ivs)-1-i].inverted()
			}
			next := Range{Lo: join(r.Lo, iv.lo), Hi: r.Hi, Fixed: len(r.Lo)}
			if iv.hi != nil {
				next.Hi = join(r.Lo, iv.hi)
			}
			if iv.point {
				next.Fixed = len(next.Lo)
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
