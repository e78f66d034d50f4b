package plan

import (
	"bytes"
	"slices"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// inOrder fills in the scans of pl that walk a in the order of the query, if there are such: beginning behind the
// query's position.
func (p *planner) inOrder(pl *Plan, a *access) bool {
	if len(p.query.Sort) == 0 {
		return false
	}
	for _, order := range []Order{InTurn, ByKey} {
		w := orderWalk{access: a, query: p.query, order: order, seekable: len(p.query.After) > 0}
		if w.walk() {
			w.apply(pl)
			return true
		}
	}
	return false
}

// orderWalk goes through the fields of a sort and of an index side by side. A field that is bound to one value does
// not matter for the order, nor does anything behind _id, which every key ends with. By key, each range of single
// values is a scan of its own, and the fields behind them have to give the order.
type orderWalk struct {
	*access
	query *store.Query
	order Order

	next     int // field of the index
	matched  bool
	reverse  bool
	lists    bool // an order of lists
	seekable bool
	position []byte // the query's position as a key, behind the fixed fields if by key
}

func (o *orderWalk) walk() bool {
	if o.order == ByKey {
		if len(o.ranges) > maxMerge || o.points == 0 {
			return false
		}
		o.next = o.points
	}
	for i, f := range o.query.Sort {
		if o.constant(i) {
			continue
		}
		for o.next < len(o.keys) && o.keys[o.next].Path != f.Path {
			key := o.fixed(o.next, o.keys[o.next].Desc)
			if key == nil {
				return false
			}
			o.position = append(o.position, key...)
			o.next++
		}
		desc, ok := o.direction(f.Path)
		if !ok || !o.match(i, desc) {
			return false
		}
		if f.Path == "_id" {
			o.seekable = o.seekable && i == len(o.query.Sort)-1
			return true
		}
	}
	return true
}

// direction is that of the next field of the index, or of the _id behind the last. Of a field that may lead to lists,
// a document's first key is that of the element it is sorted by, if it has all its keys in the ranges.
func (o *orderWalk) direction(path string) (desc, ok bool) {
	if o.next == len(o.keys) {
		return false, path == "_id" && o.index != nil
	}
	if o.isList(o.next) {
		if o.listBound() || o.lists {
			return false, false
		}
		o.lists = true
	}
	return o.keys[o.next].Desc, true
}

// constant says whether all documents of the plan are equal in a field of the sort.
func (o *orderWalk) constant(i int) bool {
	for j, key := range o.keys {
		if key.Path != o.query.Sort[i].Path || o.isList(j) {
			continue
		}
		value := o.fixed(j, false)
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

// apply fills in the plan that o has found.
func (o *orderWalk) apply(pl *Plan) {
	pl.Sorted, pl.Order = true, o.order
	ranges := o.ranges
	if o.seekable {
		// Of several keys of a document, some may be behind the position though the document is not.
		pl.Seeked = !o.lists
		ranges = o.behind()
	}
	if o.order == InTurn {
		pl.Scans = []*Scan{o.scan(ranges, o.reverse)}
		return
	}
	for i := range ranges {
		pl.Scans = append(pl.Scans, o.scan(ranges[i:i+1], o.reverse))
	}
}

// behind is what is left of the ranges behind the position.
func (o *orderWalk) behind() []Range {
	var rest []Range
	for _, r := range o.ranges {
		position := join(o.prefix, o.position)
		if o.order == ByKey {
			position = join(r.Lo[:r.Fixed], o.position)
		}
		if o.reverse {
			r.Hi = slices.MinFunc([][]byte{r.Hi, position}, bytes.Compare)
		} else {
			r.Lo = slices.MaxFunc([][]byte{r.Lo, document.KeyAfter(position)}, bytes.Compare)
		}
		if bytes.Compare(r.Lo, r.Hi) < 0 {
			rest = append(rest, r)
		}
	}
	return rest
}
