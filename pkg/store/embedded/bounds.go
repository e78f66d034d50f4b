package embedded

import (
	"bytes"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// interval is the keys from lo to before hi, of one field in ascending order. A nil hi is no end.
type interval struct {
	lo, hi []byte
	point  bool // holds the keys of one value only
}

// inverted is the interval for a descending field. It relies on no key being a beginning of another.
func (iv interval) inverted() interval {
	out := interval{point: iv.point}
	if len(iv.lo) > 0 {
		out.hi = keyAfter(invert(slices.Clone(iv.lo)))
	}
	if iv.hi != nil {
		out.lo = keyAfter(invert(slices.Clone(iv.hi)))
	}
	if iv.point {
		out.lo = invert(slices.Clone(iv.lo))
	}
	return out
}

// bounds is what a condition on a path says about the index keys of that path.
type bounds struct {
	intervals []interval // sorted, disjoint; none: nothing matches
	exact     bool       // without lists, keys within and matching documents are the same
	notNull   bool       // what matches is not missing
}

func everything() []interval { return []interval{{}} }

func (b bounds) isEverything() bool {
	return len(b.intervals) == 1 && len(b.intervals[0].lo) == 0 && b.intervals[0].hi == nil
}

func (b bounds) allPoints() bool {
	return !slices.ContainsFunc(b.intervals, func(iv interval) bool { return !iv.point })
}

func pointOf(v bson.RawValue) interval {
	key := document.AppendKey(nil, v, false)
	return interval{lo: key, hi: keyAfter(key), point: true}
}

// kindOf is all keys of values that compare with v.
func kindOf(v bson.RawValue) interval {
	order := byte(document.TypeOrder(v.Type)) //nolint:gosec // a rank is the first byte of a key
	return interval{lo: []byte{order}, hi: []byte{order + 1}}
}

// nulls is the keys of what {path: null} may match. An empty list's key lies just before null's; where there are no
// lists, it is null alone.
func nulls(multikey bool) interval {
	null := pointOf(bson.RawValue{Type: bson.TypeNull})
	if !multikey {
		return null
	}
	return interval{lo: document.AppendUndefinedKey(nil, false), hi: null.hi}
}

// boundsOf gives what pred says about the keys of its path; false if nothing.
func boundsOf(pred mql.Pred, multikey bool) (bounds, bool) {
	switch p := pred.(type) {
	case *mql.Cmp:
		return compareBounds(p, multikey)
	case *mql.In:
		if len(p.Regexes) > 0 {
			return bounds{}, false
		}
		return anyOf(p.Values, multikey)
	case *mql.Exists:
		return bounds{intervals: everything(), notNull: p.Want}, p.Want
	case *mql.All:
		if len(p.Preds) == 0 {
			return bounds{}, true
		}
		return allOf(p.Preds, multikey)
	case *mql.ElemMatch:
		if p.Node != nil {
			return bounds{}, false // its fields have paths of their own: see conditions
		}
		b, ok := elementBounds(p.Preds)
		return b, ok
	default:
		return bounds{}, false
	}
}

func compareBounds(p *mql.Cmp, multikey bool) (bounds, bool) {
	switch p.Value.Type {
	case bson.TypeMinKey, bson.TypeMaxKey, bson.TypeUndefined:
		return bounds{}, false
	case bson.TypeNull, 0:
		return bounds{intervals: []interval{nulls(multikey)}, exact: p.Op != mql.Gt && p.Op != mql.Lt}, true
	case bson.TypeArray:
		if p.Op != mql.Eq {
			return bounds{}, false
		}
		return listBounds(p.Value), true
	default: // ordered by value
	}
	if p.Op == mql.Eq {
		return bounds{intervals: []interval{pointOf(p.Value)}, exact: plain(p.Value.Type), notNull: true}, true
	}
	return rangeBounds(p), true
}

// listBounds is for equality with a list: it may be the whole value, of which the first element has an entry, or an
// element itself.
func listBounds(v bson.RawValue) bounds {
	first := interval{lo: document.AppendUndefinedKey(nil, false)}
	if it := document.NewIter(v.Value); it.Next() {
		first = pointOf(it.Value())
	} else {
		first.hi, first.point = keyAfter(first.lo), true
	}
	return bounds{intervals: union([]interval{first, pointOf(v)}), notNull: true}
}

// plain is the types whose order the matcher and the keys agree on to the letter, ranges included.
func plain(t bson.Type) bool {
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeString,
		bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime:
		return true
	default:
		return false
	}
}

func rangeBounds(p *mql.Cmp) bounds {
	kind, point := kindOf(p.Value), pointOf(p.Value)
	if !plain(p.Value.Type) {
		return bounds{intervals: []interval{kind}, notNull: true}
	}
	out := kind
	if kind.lo[0] == byte(document.TypeOrder(bson.TypeDouble)) { //nolint:gosec // a rank is the first byte of a key
		nan := pointOf(doubleValue(math.NaN()))
		if bytes.Equal(point.lo, nan.lo) {
			return nanBounds(p.Op, nan)
		}
		out.lo = nan.hi // NaN is the smallest number, and less than none
	}
	switch p.Op {
	case mql.Gt:
		out.lo = point.hi
	case mql.Gte:
		out.lo = point.lo
	case mql.Lt:
		out.hi = point.lo
	case mql.Lte:
		out.hi = point.hi
	case mql.Eq: // not a range
	}
	return bounds{intervals: union([]interval{out}), exact: true, notNull: true}
}

func nanBounds(op mql.Op, nan interval) bounds {
	b := bounds{exact: true, notNull: true}
	if op == mql.Gte || op == mql.Lte {
		b.intervals = []interval{nan}
	}
	return b
}

func doubleValue(f float64) bson.RawValue {
	t, v, _ := bson.MarshalValue(f) // can't fail: a double always encodes
	return bson.RawValue{Type: t, Value: v}
}

// anyOf is for equality with one of values.
func anyOf(values []bson.RawValue, multikey bool) (bounds, bool) {
	out := bounds{exact: true, notNull: true}
	for _, v := range values {
		b, ok := compareBounds(&mql.Cmp{Op: mql.Eq, Value: v}, multikey)
		if !ok {
			return bounds{}, false
		}
		out.intervals = append(out.intervals, b.intervals...)
		out.exact = out.exact && b.exact
		out.notNull = out.notNull && b.notNull
	}
	out.intervals = union(out.intervals)
	return out, true
}

// allOf joins conditions on one path that all hold. Of a path with lists, different elements may satisfy them, so
// only one counts: the one with the fewest intervals, points first.
func allOf(preds []mql.Pred, multikey bool) (bounds, bool) {
	out := bounds{intervals: everything(), exact: true}
	some := false
	for _, p := range preds {
		b, ok := boundsOf(p, multikey)
		if !ok {
			out.exact = false
			continue
		}
		some = true
		notNull := out.notNull || b.notNull
		exact := out.exact && b.exact
		switch {
		case !multikey:
			out.intervals = intersect(out.intervals, b.intervals)
		case tighter(b, out):
			out.intervals = b.intervals
		}
		out.notNull, out.exact = notNull, exact && !multikey
	}
	return out, some
}

// tighter says whether a likely holds fewer keys than b.
func tighter(a, b bounds) bool {
	if a.isEverything() || b.isEverything() {
		return !a.isEverything()
	}
	if a.allPoints() != b.allPoints() {
		return a.allPoints()
	}
	return len(a.intervals) < len(b.intervals)
}

// elementBounds is for conditions that one element of a list has to satisfy together, so they do intersect.
func elementBounds(preds []mql.Pred) (bounds, bool) {
	out := bounds{intervals: everything(), notNull: true}
	some := false
	for _, p := range preds {
		if b, ok := boundsOf(p, true); ok {
			some = true
			out.intervals = intersect(out.intervals, b.intervals)
		}
	}
	return out, some
}

// union sorts intervals, joins those that touch, and drops empty ones. Points stay apart.
func union(ivs []interval) []interval {
	ivs = slices.DeleteFunc(slices.Clone(ivs), func(iv interval) bool {
		return iv.hi != nil && bytes.Compare(iv.lo, iv.hi) >= 0
	})
	slices.SortFunc(ivs, func(a, b interval) int {
		if c := bytes.Compare(a.lo, b.lo); c != 0 {
			return c
		}
		return compareEnds(b.hi, a.hi) // the longer one first
	})
	out := ivs[:0]
	for _, iv := range ivs {
		if n := len(out); n > 0 && (out[n-1].hi == nil || bytes.Compare(iv.lo, out[n-1].hi) < 0) {
			if compareEnds(iv.hi, out[n-1].hi) > 0 {
				out[n-1].hi, out[n-1].point = iv.hi, false
			}
			continue
		}
		out = append(out, iv)
	}
	return out
}

// intersect gives what is in both of two sorted, disjoint lists.
func intersect(a, b []interval) []interval {
	var out []interval
	for len(a) > 0 && len(b) > 0 {
		iv := interval{lo: a[0].lo, hi: a[0].hi, point: a[0].point || b[0].point}
		if bytes.Compare(b[0].lo, iv.lo) > 0 {
			iv.lo = b[0].lo
		}
		if compareEnds(b[0].hi, iv.hi) < 0 {
			iv.hi = b[0].hi
		}
		if iv.hi == nil || bytes.Compare(iv.lo, iv.hi) < 0 {
			out = append(out, iv)
		}
		if compareEnds(a[0].hi, b[0].hi) < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// compareEnds compares upper ends, of which nil is the greatest.
func compareEnds(a, b []byte) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return bytes.Compare(a, b)
	}
}
