package plan

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// bounds is what a condition on a path says about the index keys of that path.
type bounds struct {
	// outer: a document that matches has an entry in them. None: nothing matches.
	outer intervals
	// inner: a document that has an entry in them matches.
	inner intervals
	// exact: outer and inner are the same.
	exact bool
	// present: a document that matches does not lack the path.
	present bool
}

// unbound is for conditions that say nothing about keys.
func unbound(present bool) bounds { return bounds{outer: everything(), present: present} }

// within is for conditions that hold for the values of ivs, for all of them if exact.
func within(exact bool, ivs ...interval) bounds {
	b := bounds{outer: union(ivs), exact: exact, present: true}
	if exact {
		b.inner = b.outer
	}
	return b
}

// nothing is for conditions that no document meets.
func nothing() bounds { return bounds{exact: true, present: true} }

// fieldKind is what the planner knows of a path in an index.
type fieldKind struct {
	list   bool // the path has led to or through a list
	dotted bool // it has more than one name
}

func pointOf(v bson.RawValue) interval {
	iv, _ := appendPoint(make([]byte, 0, 2*len(v.Value)+16), v)
	return iv
}

// appendPoint is pointOf with the keys appended to dst. No key is of 0xFF alone, so there always is one after it.
func appendPoint(dst []byte, v bson.RawValue) (iv interval, _ []byte) {
	start := len(dst)
	dst = document.AppendKey(dst, v, false)
	end := len(dst)
	dst = document.AppendKeyAfter(dst, dst[start:end])
	return interval{lo: dst[start:end:end], hi: dst[end:len(dst):len(dst)], point: true}, dst
}

// kindOf is all keys of values that compare with those of type t.
func kindOf(t bson.Type) interval {
	order := byte(document.TypeOrder(t)) //nolint:gosec // a rank is the first byte of a key
	return interval{lo: []byte{order}, hi: []byte{order + 1}}
}

func nullPoint() interval { return pointOf(bson.RawValue{Type: bson.TypeNull}) }

// emptyPoint is the key of an empty list, which sorts just before null. A value of the type undefined has it, too.
func emptyPoint() interval { return pointOf(bson.RawValue{Type: bson.TypeUndefined}) }

// of gives what pred says about the keys of a path.
func (k fieldKind) of(pred mql.Pred) bounds {
	switch p := pred.(type) {
	case *mql.Cmp:
		return k.compare(p.Op, p.Value)
	case *mql.In:
		return k.in(p)
	case *mql.Not:
		return k.not(p.Preds)
	case *mql.Exists:
		return k.exists(p.Want)
	case *mql.Type:
		return k.types(p)
	case *mql.All:
		if len(p.Preds) == 0 {
			return nothing()
		}
		return k.all(p.Preds)
	case *mql.ElemMatch:
		return k.elemMatch(p)
	case *mql.Size:
		return k.size(p.N)
	case *mql.Mod:
		return within(false, kindOf(bson.TypeInt32))
	case *mql.Regex:
		return k.regex(p)
	default:
		return unbound(false)
	}
}

// ordered says that a value of the type t has a key of its own, which nothing but what equals it has.
func ordered(t bson.Type) bool {
	switch t {
	case bson.TypeMinKey, bson.TypeMaxKey, bson.TypeUndefined, bson.TypeNull, 0, bson.TypeArray:
		return false
	default:
		return true
	}
}

func (k fieldKind) compare(op mql.Op, v bson.RawValue) bounds {
	switch v.Type {
	case bson.TypeMinKey, bson.TypeMaxKey:
		return k.compareEnd(op, v)
	case bson.TypeUndefined:
		return unbound(false)
	case bson.TypeNull, 0:
		if op == mql.Gt || op == mql.Lt {
			return nothing()
		}
		return k.null()
	case bson.TypeArray:
		switch {
		case !k.list:
			return nothing()
		case op == mql.Eq:
			return listBounds(v)
		default: // the whole list is compared, and an entry has only one element of it
			return unbound(true)
		}
	default: // ordered by value
	}
	if op == mql.Eq {
		return within(true, pointOf(v))
	}
	return rangeBounds(op, v)
}

// null is what has null, or nothing. A path through an empty list, or one of scalars, has an entry of null without
// being one.
func (k fieldKind) null() bounds {
	if !k.list {
		b := within(true, nullPoint())
		b.present = false
		return b
	}
	b := bounds{outer: intervals{{lo: emptyPoint().lo, hi: nullPoint().hi}}}
	if !k.dotted {
		b.inner = intervals{nullPoint()}
	}
	return b
}

// compareEnd is for MinKey and MaxKey, with which values of all types compare, missing ones and whole lists, too.
func (k fieldKind) compareEnd(op mql.Op, v bson.RawValue) bounds {
	point, isMin := pointOf(v), v.Type == bson.TypeMinKey
	switch {
	case op == mql.Eq, isMin && op == mql.Lte, !isMin && op == mql.Gte:
		return within(true, point)
	case isMin && op == mql.Lt, !isMin && op == mql.Gt:
		return nothing()
	case k.list:
		return unbound(false)
	}
	b := bounds{outer: everything(), exact: true}
	switch op {
	case mql.Gt:
		b.outer = intervals{{lo: point.hi}}
	case mql.Lt:
		b.outer = intervals{{hi: point.lo}}
	default: // all there is
	}
	b.inner = b.outer
	return b
}

// listBounds is for equality with a list: it may be the whole value, of which the first element has an entry, or an
// element itself.
func listBounds(v bson.RawValue) bounds {
	first := emptyPoint()
	if it := document.NewIter(v.Value); it.Next() {
		first = pointOf(it.Value())
	}
	return within(false, first, pointOf(v))
}

// plain is the types whose ranges the matcher and the keys agree on to the letter.
func plain(t bson.Type) bool {
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeString,
		bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime:
		return true
	default:
		return false
	}
}

func rangeBounds(op mql.Op, v bson.RawValue) bounds {
	out, point := kindOf(v.Type), pointOf(v)
	if bytes.Equal(out.lo, kindOf(bson.TypeDouble).lo) {
		nan := pointOf(nan())
		if bytes.Equal(point.lo, nan.lo) {
			return nanBounds(op, nan)
		}
		out.lo = nan.hi // NaN is the smallest number, and less than none
	}
	switch op {
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
	return within(plain(v.Type), out)
}

func nanBounds(op mql.Op, nan interval) bounds {
	if op == mql.Gte || op == mql.Lte {
		return within(true, nan)
	}
	return nothing()
}

func nan() bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))}
}

// in is for one of several values or regular expressions.
func (k fieldKind) in(p *mql.In) bounds {
	out := bounds{exact: true, present: true}
	add := func(b bounds) {
		out.outer = append(out.outer, b.outer...)
		out.inner = append(out.inner, b.inner...)
		out.exact = out.exact && b.exact
		out.present = out.present && b.present
	}
	size := 0
	for _, v := range p.Values {
		size += 2*len(v.Value) + 16
	}
	points, keys := make(intervals, 0, len(p.Values)), make([]byte, 0, size) // in one piece: a lookup has thousands
	for _, v := range p.Values {
		if !ordered(v.Type) {
			add(k.compare(mql.Eq, v))
			continue
		}
		var point interval
		point, keys = appendPoint(keys, v)
		points = append(points, point)
	}
	out.outer = append(out.outer, points...)
	for _, re := range p.Regexes {
		add(k.regex(re))
	}
	out.outer = union(out.outer)
	if out.exact {
		out.inner = out.outer
	} else {
		out.inner = union(append(out.inner, points...))
	}
	return out
}

// regex is for texts with the prefix that a regular expression begins with, and for regular expressions as values.
func (k fieldKind) regex(p *mql.Regex) bounds {
	prefix, exact := p.Prefix()
	texts := textsWith(prefix)
	b := within(false, texts, kindOf(bson.TypeRegex))
	if exact {
		b.inner = intervals{texts}
	}
	return b
}

// textsWith is the keys of texts that begin with prefix.
func textsWith(prefix string) interval {
	lo := kindOf(bson.TypeString).lo
	lo = append(lo, strings.ReplaceAll(prefix, "\x00", "\x00\xff")...) // as document.AppendKey does
	return interval{lo: lo, hi: document.KeyAfter(lo)}
}

func (k fieldKind) exists(want bool) bounds {
	if !want {
		return bounds{outer: intervals{nullPoint()}}
	}
	b := unbound(true)
	b.inner = complement(intervals{{lo: emptyPoint().lo, hi: nullPoint().hi}})
	return b
}

func (k fieldKind) types(p *mql.Type) bounds {
	exact := true
	var ivs []interval
	if p.Number {
		ivs = append(ivs, kindOf(bson.TypeInt32))
	}
	for _, t := range p.Types {
		switch t {
		case bson.TypeArray:
			if k.list {
				return unbound(true) // entries are of the elements
			}
		case bson.TypeEmbeddedDocument, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime,
			bson.TypeTimestamp, bson.TypeRegex, bson.TypeMinKey:
			ivs = append(ivs, kindOf(t))
		default: // one of several with the same rank
			exact = false
			ivs = append(ivs, kindOf(t))
		}
	}
	return within(exact, ivs...)
}

func (k fieldKind) size(n int64) bounds {
	switch {
	case !k.list:
		return nothing()
	case n == 0:
		return within(false, emptyPoint())
	default:
		return unbound(true)
	}
}

// elemMatch is for lists with an element of which several conditions hold. Those on fields of elements have paths of
// their own: see conditions.
func (k fieldKind) elemMatch(p *mql.ElemMatch) bounds {
	if !k.list {
		return nothing()
	}
	if p.Node != nil {
		return within(false, kindOf(bson.TypeEmbeddedDocument), kindOf(bson.TypeArray))
	}
	return bounds{outer: k.element(p.Preds), present: true}
}

// element is the keys of single elements that preds hold for, all of them together, so they do intersect.
func (k fieldKind) element(preds []mql.Pred) intervals {
	out := everything()
	for _, pred := range preds {
		var ivs intervals
		switch p := pred.(type) {
		case *mql.Size, *mql.ElemMatch: // of a list in the list, which has one key
			ivs = intervals{kindOf(bson.TypeArray)}
		case *mql.All:
			ivs = k.element(p.Preds)
		case *mql.Not:
			ivs = k.notElement(p.Preds)
		default:
			ivs = k.of(pred).outer
		}
		if next := intersect(out, ivs); len(next) <= max(maxSplit, len(out), len(ivs)) {
			out = next
		}
	}
	return out
}

// notElement is the keys of single elements that not all of preds hold for.
func (k fieldKind) notElement(preds []mql.Pred) intervals {
	var out intervals
	for _, pred := range preds {
		switch pred.(type) {
		case *mql.Cmp, *mql.In:
			out = append(out, complement(k.of(pred).inner)...)
		default:
			return everything()
		}
	}
	return union(out)
}

// all joins conditions that all hold for one path. Of a path with lists, different elements may satisfy them, so only
// one counts, the tightest.
func (k fieldKind) all(preds []mql.Pred) bounds {
	if len(preds) == 1 {
		return k.of(preds[0])
	}
	out := bounds{outer: everything(), inner: everything(), exact: true}
	for _, p := range preds {
		b := k.of(p)
		switch {
		case !k.list:
			out.narrow(b)
		case b.outer.tighter(out.outer):
			out.outer = b.outer
		}
		if out.inner = intersect(out.inner, b.inner); len(out.inner) > maxSplit {
			out.inner = nil // less than what matches is right, too, and what is left out comes to nothing here
		}
		out.present = out.present || b.present
		out.exact = out.exact && b.exact
	}
	out.exact = out.exact && (!k.list || len(preds) == 1)
	return out
}

// narrow takes up another condition on the same value. One that would only cut what is there into more pieces is left to
// the filter: each of thousands of $ne would cost as much as all before it.
func (b *bounds) narrow(by bounds) {
	outer := intersect(b.outer, by.outer)
	if len(outer) > maxSplit && len(outer) > len(b.outer) && len(outer) > len(by.outer) {
		b.exact = false
		return
	}
	b.outer = outer
}

// not is for documents of which not all of preds hold. Where there are lists, a document that preds don't hold for has
// no entry at all that they would hold with.
func (k fieldKind) not(preds []mql.Pred) bounds {
	if !k.list {
		b := k.all(preds)
		out := bounds{outer: complement(b.inner), inner: complement(b.outer), exact: b.exact}
		out.present = b.inner.has(nullPoint().lo)
		return out
	}
	out := bounds{present: true}
	for _, p := range preds {
		b := k.of(p)
		out.outer = append(out.outer, complement(b.inner)...)
		out.present = out.present && b.inner.has(nullPoint().lo)
	}
	out.outer = union(out.outer)
	return out
}
