package index

import (
	"encoding/binary"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A View is an Index as it was at one moment, seen by someone. It is not safe for concurrent use, and has to be closed.
type View struct {
	ix       *Index
	it       *pebble.Iterator
	set      *Set   // nil: all records
	next     uint32 // numbers from here on are not seen
	epoch    uint32
	onDisk   uint32 // numbers below are read from Pebble, those from here on from memory
	died     []uint32
	ids      ids
	in       words
	totals   totals
	lengths  map[Field][]uint16
	values   map[Field][]int64
	vectors  map[Field]vectors
	segments []*segment
}

// View gives all records as they are now.
func (ix *Index) View() (*View, error) { return ix.view(nil) }

func (ix *Index) view(set *Set) (*View, error) {
	if err := ix.acquire(); err != nil {
		return nil, err
	}
	v, err := ix.capture(set)
	if err != nil {
		return nil, errors.Join(err, ix.release())
	}
	// The iterator may have what has been written since; that is left out by its numbers.
	v.it, err = ix.disk.kv.NewIter(&pebble.IterOptions{LowerBound: ix.prefix[:], UpperBound: above(ix.prefix[:])})
	if err != nil {
		return nil, ix.disk.fail(errors.Join(err, v.release()))
	}
	return v, nil
}

func (ix *Index) capture(set *Set) (*View, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	v := &View{
		ix: ix, set: set, next: ix.next, epoch: ix.epoch, died: ix.died, ids: ix.ids, onDisk: ix.fresh.first,
		lengths: maps.Clone(ix.lengths), values: maps.Clone(ix.values), vectors: make(map[Field]vectors, len(ix.vectors)),
	}
	if ix.full != nil {
		v.segments, v.onDisk = append(v.segments, ix.full), ix.full.first
	}
	v.segments = append(v.segments, ix.fresh)
	t := ix.all
	if set != nil {
		if set.gone {
			return nil, errForgotten
		}
		set.users++
		v.in, t = set.in.now(), set.totals
	}
	v.totals = totals{t.records, maps.Clone(t.fields)}
	for f, m := range ix.vectors {
		v.vectors[f] = m.vectors
	}
	return v, nil
}

// Close ends the view.
func (v *View) Close() error { return v.ix.disk.fail(errors.Join(v.it.Close(), v.release())) }

func (v *View) release() error {
	if v.set != nil {
		v.ix.mu.Lock()
		v.set.users--
		v.ix.mu.Unlock()
	}
	return v.ix.release()
}

// Set is who is seen; nil: all records are.
func (v *View) Set() *Set { return v.set }

// Forget has the Index let go of the set of the view, which goes on with it.
func (v *View) Forget() {
	v.ix.mu.Lock()
	defer v.ix.mu.Unlock()
	v.ix.forget(v.set)
}

// Len is how many records are seen.
func (v *View) Len() int { return v.totals.records }

// sees says whether a version is seen.
func (v *View) sees(number uint32) bool {
	if number >= v.next || v.set != nil && !v.in.has(number) {
		return false
	}
	died := atomic.LoadUint32(&v.died[number])
	return died == 0 || died > v.epoch
}

// postings appends who has a term, of those who are seen.
func (v *View) postings(dst []posting, f Field, term string) ([]posting, error) {
	from := len(dst)
	prefix := v.ix.termPrefix(keyPostings, f, term)
	v.it.SetBounds(prefix, above(prefix))
	var err error
	for ok := v.it.First(); ok; ok = v.it.Next() {
		if len(v.it.Key()) != len(prefix)+4 {
			return dst, errDamaged
		}
		base := binary.BigEndian.Uint32(v.it.Key()[len(prefix):]) << chunkBits
		if dst, err = readBlocks(dst, base, v.it.Value()); err != nil {
			return dst, err
		}
	}
	if err := v.it.Error(); err != nil {
		return dst, err
	}
	for len(dst) > from && dst[len(dst)-1].number >= v.onDisk {
		dst = dst[:len(dst)-1]
	}
	for _, s := range v.segments {
		l, _ := s.of(f, term, v.next)
		dst = append(dst, l...)
	}
	if v.set == nil && v.totals.records == int(v.next) { // all versions are seen
		return dst, nil
	}
	out := dst[:from]
	for _, p := range dst[from:] {
		if v.sees(p.number) {
			out = append(out, p)
		}
	}
	return out, nil
}
