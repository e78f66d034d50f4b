package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// numbers is a bitmap of numbers of records. One goroutine at a time adds, while others read.
type numbers struct{ words atomic.Pointer[[]uint64] }

// words is what is in a bitmap.
type words []uint64

func (n *numbers) now() words {
	if w := n.words.Load(); w != nil {
		return *w
	}
	return nil
}

func (b words) has(number uint32) bool {
	w := int(number >> 6)
	return w < len(b) && atomic.LoadUint64(&b[w])>>(number&63)&1 != 0
}

func (n *numbers) add(number uint32) {
	words := n.now()
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
	Data any // of who made it, for Change.In

	in     numbers
	totals totals        // of those that are alive; guarded by the Index's mu
	gone   bool          // likewise: it is not kept up to date any more
	users  int           // likewise: views, and who fills it
	used   atomic.Int64  // the DB's uses when it was asked for last
	filled chan struct{} // closed when err is known
	err    error
	ended  bool // err is there because the context of who filled it has ended
}

// add takes a version in, which is alive. The caller holds ix.mu.
func (s *Set) add(ix *Index, number uint32) {
	if !s.in.now().has(number) {
		s.in.add(number)
		s.totals.count(ix, number, 1)
	}
}

func (s *Set) bytes() int { return 8*len(s.in.now()) + 64*len(s.totals.fields) + 256 }

// A Fill calls add with the id and the revision of each record that belongs to a set, as the records are now.
type Fill func(ctx context.Context, add func(id []byte, rev int64) error) error

// errForgotten is for a set that is not kept up to date any more.
var errForgotten = errors.New("the set was forgotten")

// ViewSet gives the records of a set as they are now. A set that is not there is made: fill gives what is in it, while Change.In
// decides what changes meanwhile. Others who ask for it wait; if the context of the one that fills it ends, the next one does.
func (ix *Index) ViewSet(ctx context.Context, name string, data any, fill Fill) (*View, error) {
	if err := ix.acquire(); err != nil {
		return nil, err
	}
	v, err := ix.viewSet(ctx, name, data, fill)
	return v, errors.Join(err, ix.release())
}

func (ix *Index) viewSet(ctx context.Context, name string, data any, fill Fill) (*View, error) {
	for {
		set, err := ix.set(ctx, name, data, fill)
		if err != nil {
			return nil, ix.disk.fail(err)
		}
		v, err := ix.view(set)
		if !errors.Is(err, errForgotten) {
			return v, err
		}
	}
}

// set gives the set of a name, which is filled.
func (ix *Index) set(ctx context.Context, name string, data any, fill Fill) (*Set, error) {
	for {
		ix.mu.Lock()
		set := ix.sets[name]
		if set == nil {
			break
		}
		ix.mu.Unlock()
		set.used.Store(ix.db.uses.Add(1))
		select {
		case <-set.filled:
			if set.err == nil || !set.ended {
				return set, set.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	set := &Set{Name: name, Data: data, totals: totals{fields: map[Field]fieldTotal{}}, users: 1, filled: make(chan struct{})}
	set.used.Store(ix.db.uses.Add(1))
	ix.sets[name] = set
	limit := ix.next // versions from here on are decided by Apply
	ix.mu.Unlock()
	set.err = ix.fill(ctx, set, limit, fill)
	set.ended = set.err != nil && ctx.Err() != nil
	ix.mu.Lock()
	set.users--
	if set.err != nil {
		ix.forget(set)
	}
	ix.mu.Unlock()
	close(set.filled)
	if set.err == nil {
		ix.db.trim()
	}
	return set, set.err
}

// fill fills a set.
func (ix *Index) fill(ctx context.Context, set *Set, limit uint32, fill Fill) error {
	const many = 256 // that are added at once
	type version struct {
		id  []byte
		rev int64
	}
	var found []version
	add := func() error {
		ix.write.Lock()
		defer ix.write.Unlock()
		numbers := make([]uint32, 0, len(found))
		for _, f := range found {
			number, rev, ok, err := ix.known(f.id)
			if err != nil {
				return err
			}
			if ok && rev == f.rev && number < limit { // else it is another version than the one that was looked at
				numbers = append(numbers, number)
			}
		}
		found = found[:0]
		ix.mu.Lock()
		defer ix.mu.Unlock()
		for _, number := range numbers {
			set.add(ix, number)
		}
		return nil
	}
	err := fill(ctx, func(id []byte, rev int64) error {
		found = append(found, version{append([]byte(nil), id...), rev})
		if len(found) < many {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return add()
	})
	if err != nil {
		return err
	}
	return add()
}

// forget lets go of a set. The caller holds ix.mu.
func (ix *Index) forget(set *Set) {
	set.gone = true
	if ix.sets[set.Name] == set {
		delete(ix.sets, set.Name)
	}
}

// ForgetSets lets go of all sets, and of those that are being filled: what they are of means something else by now.
func (ix *Index) ForgetSets() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, set := range ix.sets {
		ix.forget(set)
	}
}

// trim forgets sets that there is no room for.
func (d *DB) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	type kept struct {
		ix    *Index
		set   *Set
		used  int64
		bytes int
	}
	var all []kept
	count, bytes := map[*Index]int{}, 0
	for _, ix := range d.open {
		ix.mu.RLock()
		for _, set := range ix.sets {
			count[ix]++
			k := kept{ix, set, set.used.Load(), set.bytes()}
			bytes += k.bytes
			if set.users == 0 {
				all = append(all, k)
			}
		}
		ix.mu.RUnlock()
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.used, b.used) })
	for _, k := range all {
		if bytes <= d.o.SetBytes && count[k.ix] <= d.o.Sets {
			continue
		}
		k.ix.mu.Lock()
		if k.set.users == 0 {
			k.ix.forget(k.set)
			count[k.ix]--
			bytes -= k.bytes
		}
		k.ix.mu.Unlock()
	}
}
