package plan

import (
	"bytes"
	"slices"

	"github.com/svcctl/svc/pkg/document"
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
		out.hi = document.KeyAfter(document.InvertKey(slices.Clone(iv.lo)))
	}
	if iv.hi != nil {
		out.lo = document.KeyAfter(document.InvertKey(slices.Clone(iv.hi)))
	}
	if iv.point {
		out.lo = document.InvertKey(slices.Clone(iv.lo))
	}
	return out
}

// intervals are sorted and disjoint.
type intervals []interval

func everything() intervals { return intervals{{}} }

func (ivs intervals) isEverything() bool {
	return len(ivs) == 1 && len(ivs[0].lo) == 0 && ivs[0].hi == nil
}

func (ivs intervals) allPoints() bool {
	return !slices.ContainsFunc(ivs, func(iv interval) bool { return !iv.point })
}

// has says whether key is in one of them.
func (ivs intervals) has(key []byte) bool {
	return slices.ContainsFunc(ivs, func(iv interval) bool {
		return bytes.Compare(key, iv.lo) >= 0 && (iv.hi == nil || bytes.Compare(key, iv.hi) < 0)
	})
}

// tighter says whether a likely holds fewer keys than b.
func (ivs intervals) tighter(than intervals) bool {
	if ivs.isEverything() || than.isEverything() {
		return !ivs.isEverything()
	}
	if ivs.allPoints() != than.allPoints() {
		return ivs.allPoints()
	}
	return len(ivs) < len(than)
}

// complement is all keys that are in none of ivs.
func complement(ivs intervals) intervals {
	out := intervals{}
	var lo []byte
	for _, iv := range ivs {
		if bytes.Compare(lo, iv.lo) < 0 {
			out = append(out, interval{lo: lo, hi: iv.lo})
		}
		if iv.hi == nil {
			return out
		}
		lo = iv.hi
	}
	return append(out, interval{lo: lo})
}

// union sorts intervals, joins those that overlap, and drops empty ones.
func union(ivs intervals) intervals {
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
func intersect(a, b intervals) intervals {
	var out intervals
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
