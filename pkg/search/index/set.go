package index

import "sync/atomic"

// numbers is a bitmap of numbers of records. One goroutine at a time adds, while others read.
type numbers struct{ words atomic.Pointer[[]uint64] }

// bits is what is in a bitmap.
type bits []uint64

func (n *numbers) bits() bits {
	if w := n.words.Load(); w != nil {
		return *w
	}
	return nil
}

func (b bits) has(number uint32) bool {
	w := int(number >> 6)
	return w < len(b) && atomic.LoadUint64(&b[w])>>(number&63)&1 != 0
}

func (n *numbers) add(number uint32) {
	words := n.bits()
	w := int(number >> 6)
	if w >= len(words) {
		grown := make([]uint64, w+1+w/2)
		copy(grown, words) // nobody else writes
		n.words.Store(&grown)
		words = grown
	}
	atomic.StoreUint64(&words[w], words[w]|1<<(number&63))
}

// totals counts records that are alive, and how long their fields are.
type totals struct {
	records int
	fields  map[Field]fieldTotal
}

type fieldTotal struct {
	records int    // that have the field
	terms   uint64 // in all of them
}

func (t *totals) count(ix *Index, number uint32, sign int) {
	t.records += sign
	for f, l := range ix.lengths {
		if int(number) < len(l) && l[number] > 0 {
			ft := t.fields[f]
			ft.records += sign
			ft.terms += uint64(sign * int(l[number]))
			t.fields[f] = ft
		}
	}
}

// A Set is those versions of an Index's records that someone may see. The Index keeps it up to date.
type Set struct {
	Name string

	in     numbers
	totals totals        // of those that are alive; guarded by the Index's mu
	filled chan struct{} // closed when err is known
	err    error
}
